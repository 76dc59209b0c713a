"""Messages of rules in a blind run: formatted from anonymised values while they are in memory, parsed once stored."""

import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from engine.random_accounts import (
    NOW,
    SYMBOLS,
    TERMS,
    almost_proposals,
    broken_worlds,
    caps,
    exit_proposals,
    open_proposals,
    states,
    worlds,
)
from pitboss.core import codec
from pitboss.core.instant import DAY_MS
from pitboss.core.rule_message import Price, RuleMessage, Symbols, rule_message
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.venues.perp.blind.anonymiser import make_anonymiser
from pitboss.venues.perp.blind.translation import symbol_of
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.state import open_world
from pitboss.venues.perp.testing import judge
from test_rules import CASES

ANONYMISER = make_anonymiser(SYMBOLS, 3, {"BTC": 100_000.0, "DOGE": 0.2, "ETH": 2_500.0})
CAPS = PerpCaps(symbols=SYMBOLS)
STATE = State(open_world(Decimal(10_000), NOW // DAY_MS))
intents = st.one_of(open_proposals(), almost_proposals(), st.sampled_from([*SYMBOLS, "XMR"]).flatmap(exit_proposals))


def assert_text_and_values_agree(verdict: Verdict, symbol: str) -> None:
    if verdict.outcome != "refused" or "failed:" in verdict.detail or "worked out:" in verdict.detail:
        return
    assert isinstance(verdict.detail, RuleMessage), verdict.detail
    stored = codec.loads(codec.dumps(verdict))["detail"]
    assert type(stored) is str
    expected = ANONYMISER.stored_detail(stored, verdict.code or "", symbol)
    assert ANONYMISER.verdict(verdict, symbol).detail == expected


@pytest.mark.parametrize("name", CASES)
def test_every_rule_is_anonymised_alike_from_its_values_and_from_its_stored_text(name: str) -> None:
    scene = CASES[name][1]()
    verdict = scene.judge().verdict
    assert verdict.outcome == "refused"
    assert_text_and_values_agree(verdict, symbol_of(scene.intent))


@invariant(states(st.one_of(worlds(), broken_worlds())), caps(), intents)
def test_any_refusal_is_anonymised_alike_from_its_values_and_from_its_stored_text(
    state: State, limits: PerpCaps, intent: Any
) -> None:
    assert_text_and_values_agree(judge(limits, TERMS, state, intent, NOW).verdict, symbol_of(intent))


@pytest.mark.parametrize(
    "probe",
    [
        lambda guess: {guess: 1, "action": "close", "symbol": "?", "reason": "?"},
        lambda guess: {"action": "cancel", "symbol": "?", "reason": "?", "order_id": guess},
        lambda guess: {"action": "close", "symbol": guess, "reason": "?"},
        lambda guess: {"action": "close", "symbol": f"{guess} ", "reason": "?"},
        lambda guess: {"action": "open_long", "symbol": f"my {guess}", "reason": "?", "size_usd": 100},
    ],
)
def test_a_message_does_not_say_whether_a_guessed_coin_is_traded(probe: Any) -> None:
    def verdict(intent: Any) -> Verdict:
        return judge(CAPS, TERMS, STATE, intent, NOW).verdict

    shown: set[str] = set()
    for guess in ("BTC", "DOGE", "ETH", "SOL", "XRP"):
        intent = probe(guess)
        true = ANONYMISER.true_proposal(intent)
        shown.add(ANONYMISER.judge(verdict)(intent).detail)
        shown.add(ANONYMISER.stored_detail(str(verdict(true).detail), verdict(true).code or "", symbol_of(true)))
    assert len(shown) == 1, shown
    assert "[coin]" in shown.pop()


def test_a_message_is_stored_and_compared_as_its_text_and_keeps_its_values_in_memory() -> None:
    message = rule_message("{symbol} at {price}", symbol=Symbols(("BTC", "ETH")), price=Price(TERMS.taker))
    assert message == f"BTC, ETH at {TERMS.taker}"
    assert codec.dumps([message]) == codec.dumps([str(message)])
    copy = pickle.loads(pickle.dumps(message))
    assert (copy, copy.template, copy.values) == (message, message.template, message.values)


test_long = long_versions(globals())
