"""Counting words: what is counted, what is not, and which coin a headline names."""

import pytest

from pitboss.tools.reading.lexicon import BAD, GOOD, mood, names


def test_good_and_bad_words_are_counted_once_each_in_any_case() -> None:
    found = mood("BTC Surges, surges again; hackers FEAR a rally. Unfearful")
    assert found.good == ("surges", "rally")
    assert found.bad == ("fear",)
    assert found.score == pytest.approx(1 / 3)


def test_a_text_without_listed_words_has_no_score() -> None:
    assert mood("Developers discuss the next meeting").score is None
    assert mood("").score is None


def test_no_word_is_good_and_bad() -> None:
    assert not GOOD & BAD
    assert all(word == word.lower() for word in GOOD | BAD)


@pytest.mark.parametrize(
    ("symbol", "text", "named"),
    [
        ("BTC", "$BTC up", True),
        ("BTC", "BTCUSD up", False),
        ("BTC", "bitcoin up", True),
        ("BTC", "Bitcoins up", False),
        ("ETH", "Ether slips", True),
        ("ETH", "together", False),
        ("LINK", "see the link", False),
        ("LINK", "LINK slips", True),
        ("SUI", "sui generis", False),
        ("A.B", "AxB", False),
        ("NEW", "NEW coin", True),
    ],
)
def test_a_coin_is_named_by_its_ticker_in_capitals_or_by_its_name(symbol: str, text: str, named: bool) -> None:
    assert names(symbol, text) is named
