"""Numbers of an answer against the facts of a conversation."""

import pytest

from pitboss.chat.number_check import FactNumbers, unsupported_numbers

FACTS = """\
total_return_pct 1.56353 (buy and hold -12.8334)
final_equity_usd 10,156.4
win_rate 0.4375
R3_POSITION_CAP: 8 times, first 2025-01-22T05:00:00Z
limit 2022.02, used 8087.69, left -6065.67 usd
5824515 tokens in, 35822 out"""


@pytest.fixture
def facts() -> FactNumbers:
    facts = FactNumbers()
    facts.add(FACTS)
    return facts


@pytest.mark.parametrize(
    "text",
    [
        "It returned 1.56 % against -12.83 % of buying and holding [run 3f9a11 tick 2031-07-07T09:15Z].",
        "The return was 1.6%, or 1.5635 percent.",
        "It lost 12.8 percent there, −12.83 to be exact.",
        "It ended with $10,156.40, about 10,000 dollars, some $10.2k.",
        "43.75 % of the trades won, roughly 44%.",
        "The rule refused 8 times; there are 3 of them and 2 more.",
        "The limit was $2,022.02, the order $8,087.69: $6,065.67 beyond.",
        "It read 5,824,515 tokens, about 5.8 million, nearly 5.82M.",
        "On 2025-02-11 at 23:00, on 22 January 2025, January 22nd, in March 2031, at 17:45:12.",
        "1. The first reason.\n2. The second.\n12) The twelfth.",
        "It looked at 4h bars and 15m bars over 72 hours, 30 days.",
        "The digest is 5c321bdfa722ac10400b6e089e0c304a, see sma_50 and R11_PRICE_BAND.",
        "There are 6 lines.",
        "",
    ],
)
def test_what_a_fact_holds_raises_no_alarm(text: str, facts: FactNumbers) -> None:
    assert unsupported_numbers(text, facts) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It returned 4.2 %.", ["4.2 %"]),
        ("It made 1,234 trades and earned $99.", ["1,234", "$99"]),
        ("The return was 1.57 %.", ["1.57 %"]),
        ("It lost 7 %.", ["7 %"]),
        ("It made $7.", ["$7"]),
        ("It ended with 10,200 dollars.", ["10,200"]),
        ("It was 3.7x and 42 or 42.", ["3.7x", "42"]),
    ],
)
def test_a_number_of_no_fact_is_found(text: str, found: list[str], facts: FactNumbers) -> None:
    assert unsupported_numbers(text, facts) == found


def test_the_facts_of_a_conversation_are_bounded() -> None:
    facts = FactNumbers()
    for part in range(4):
        facts.add(" ".join(str(number) for number in range(part * 20_000, (part + 1) * 20_000)))
    assert len(facts.values) == 50_000


def test_a_number_of_hundreds_of_digits_is_only_unsupported(facts: FactNumbers) -> None:
    number = "1" + "0" * 400
    assert unsupported_numbers(f"It earned about {number}.", facts) == [f"about {number}"]
