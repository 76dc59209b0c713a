"""The guard as a pure and total function: its invariants E1–E26, each over random accounts, caps and proposals.

E10 is reserved, E23 (concurrent decisions) and E24 (a signer bound to a verdict) belong to parts that are not here yet.
E19–E21 (halts over time) are in `test_halt_properties.py`.
"""

import io
import os
import subprocess
import sys
import time
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from decimal import ROUND_UP, Context, Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from engine.invariant import CALM as CALMLY
from engine.invariant import invariant, long_versions
from engine.random_accounts import (
    ANYTHING,
    DAY,
    HALTS,
    JSON,
    LOOSE,
    NOW,
    PRICES,
    SYMBOLS,
    TERMS,
    almost_proposals,
    broken_worlds,
    caps,
    exit_proposals,
    nested,
    open_proposals,
    states,
    worlds,
)
from pitboss.core import codec
from pitboss.core.instant import HOUR_MS
from pitboss.core.money import exact
from pitboss.core.rulebook import Finding
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import act
from pitboss.engine.guard import Judgement
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.case import make_case
from pitboss.venues.perp.course import read_state
from pitboss.venues.perp.intents import read_proposal
from pitboss.venues.perp.rules import RULES
from pitboss.venues.perp.state import PerpWorld, equity, open_world
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.world import set_marks
from venues.perp.scene import run_sync

BROKER = PaperBroker(TERMS)
ANY_STATE = states(st.one_of(worlds(), broken_worlds()))
CALM = states(worlds(calm=True))
CLEAN = set_marks(open_world(Decimal(10_000), DAY), {symbol: (price, NOW) for symbol, price in PRICES.items()})


def judge(limits: PerpCaps, state: State, intent: Any) -> Judgement:
    return guard(limits, TERMS, state, intent, NOW)


def judgement_bytes(judgement: Judgement) -> bytes:
    """What was decided, as bytes."""
    return codec.dumps([judgement.verdict, judgement.key, judgement.order, judgement.cancel_id, judgement.opens])


def act_on(state: State, judgement: Judgement) -> tuple[State, Verdict, Any]:
    return run_sync(act(state, judgement, BROKER, NOW))


def is_allowed(limits: PerpCaps, state: State, intent: Any) -> bool:
    return judge(limits, state, intent).verdict.outcome == "allowed"


def notionals(world: PerpWorld) -> dict[str, Fraction]:
    """Position at mark plus working opens at the worse of mark and limit, worked out once more, in fractions."""
    found: dict[str, Fraction] = {}
    for symbol, held in world.positions.items():
        found[symbol] = abs(Fraction(held.size)) * Fraction(world.marks[symbol])
    for order in world.orders:
        if order.kind in ("market", "limit"):
            mark = Fraction(world.marks.get(order.symbol, Decimal(0)))
            price = mark if order.limit is None else max(mark, Fraction(order.limit))
            found[order.symbol] = found.get(order.symbol, Fraction(0)) + Fraction(order.size) * price
    return found


def account_value(world: PerpWorld) -> Fraction:
    gained = [
        Fraction(held.size) * Fraction(world.marks[symbol]) - Fraction(held.cost)
        for symbol, held in world.positions.items()
    ]
    return Fraction(world.cash) + sum(gained, Fraction(0))


# Any input ------------------------------------------------------------------------------------------------------------


@invariant(caps(), ANY_STATE, ANYTHING, quick=45, proof=100_000)
def test_e1_any_json_in_any_state_gets_a_verdict_and_nothing_raises(
    limits: PerpCaps, state: State, intent: Any
) -> None:
    """E1 totality: whatever arrives and whatever state the account is in, there is a verdict, and it can be stored."""
    judgement = judge(limits, state, intent)
    assert judgement.verdict.outcome in ("allowed", "refused", "noop")
    assert (judgement.verdict.outcome == "refused") == (judgement.verdict.code is not None)
    stored = codec.dumps([judgement.verdict, codec.number_fragments(intent)])
    assert codec.loads(stored)


@invariant(st.one_of(worlds(), broken_worlds()), st.one_of(open_proposals(), almost_proposals()), quick=30)
def test_e1_no_proposal_breaks_a_rule_from_inside(world: PerpWorld, intent: Any) -> None:
    """E1: a hostile proposal is refused by a rule that works; it cannot make a rule fail and so halt the account."""
    assert not judge(LOOSE, State(world), intent).broken


@pytest.mark.parametrize(
    "intent",
    [
        nested(100),
        nested(900),
        {"action": "close", "symbol": nested(900), "reason": "deep"},
        {"action": "open_long", "symbol": "BTC", "reason": "x" * 100_000, "size_usd": Decimal("1e2000000")},
        {f"key{number}": number for number in range(2_000)},
        {"action": "open_long", "symbol": "BTC", "reason": "x", "size_usd": 10**5000, "leverage": Decimal("1e-999999")},
        {"action": "open_long", "symbol": "BTC", "reason": "\ud800", "size_usd": 10**30, "\udfff": None},
    ],
    ids=["nested", "deeper", "deep text", "huge", "wide", "extreme", "half a surrogate pair"],
)
def test_e1_the_worst_input_is_refused(intent: Any) -> None:
    """E1: nesting, huge numbers and long texts. How long a verdict takes is measured by `bench` (guard verdict)."""
    verdict = judge(LOOSE, State(CLEAN), intent).verdict
    assert verdict.outcome == "refused"
    assert codec.loads(codec.dumps([verdict, codec.number_fragments(intent)]))


def with_reversed_keys(value: Any) -> Any:
    """The same JSON value with the keys of every object in the other order."""
    if isinstance(value, dict):
        return {key: with_reversed_keys(item) for key, item in reversed(value.items())}
    if isinstance(value, list):
        return [with_reversed_keys(item) for item in value]
    return value


@invariant(caps(), states(worlds()), st.one_of(open_proposals(), almost_proposals(), JSON), quick=24)
def test_e2_the_verdict_depends_on_nothing_but_its_arguments(limits: PerpCaps, state: State, intent: Any) -> None:
    """E2 determinism: twice the same bytes, whatever the order of keys, the decimal context or the time zone."""
    first = judgement_bytes(judge(limits, state, intent))
    world = state.world
    other = replace(
        world,
        positions=with_reversed_keys(dict(world.positions)),
        marks=with_reversed_keys(dict(world.marks)),
        leverage=with_reversed_keys(dict(world.leverage)),
    )
    assert judgement_bytes(judge(limits, replace(state, world=other), with_reversed_keys(intent))) == first
    with localcontext(Context(prec=6, rounding=ROUND_UP)):
        assert judgement_bytes(judge(limits, state, intent)) == first
    with localcontext(Context(prec=60, rounding=ROUND_UP)):
        assert judgement_bytes(judge(limits, state, intent)) == first
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = "Asia/Kathmandu"
        time.tzset()
        assert judgement_bytes(judge(limits, state, intent)) == first
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


ELSEWHERE = """
from decimal import Decimal
from pitboss.core import codec
from pitboss.core.state import State
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.state import TradingTerms, open_world
from pitboss.venues.perp.world import set_marks
world = set_marks(open_world(Decimal(10_000), 0), {"BTC": (Decimal("100.5"), 0), "ETH": (Decimal(7), 0)})
limits = PerpCaps(symbols=("BTC", "ETH"), allowed_symbols=("BTC",))
found = []
for intent in [
    {"action": "open_long", "symbol": "BTC", "size_usd": 500, "reason": "a", "stop_loss": Decimal("99.9")},
    {"action": "open_short", "symbol": "ETH", "size_usd": 500, "reason": "b", "zebra": 1, "apple": 2},
    {"action": "open_short", "symbol": "BTC", "size_usd": 5000, "reason": "c", "leverage": 9},
]:
    found.append(guard(limits, TradingTerms(dict(SHIPPED)), State(world), intent, 0).verdict)
print(codec.digest(found))
"""


def test_e2_two_processes_with_different_hash_seeds_give_the_same_bytes() -> None:
    """E2: nothing depends on the order in which a process hashes its strings."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, env=environment, check=True, text=True
    )
    here = io.StringIO()
    with redirect_stdout(here):
        exec(ELSEWHERE, {})
    assert done.stdout == here.getvalue() != ""


@invariant(caps(), states(worlds()), st.one_of(almost_proposals(), JSON, st.none()), quick=24)
def test_e3_what_is_not_a_proposal_does_nothing(limits: PerpCaps, state: State, intent: Any) -> None:
    """E3: null is a no-op and a malformed proposal is refused by R1; neither sends anything."""
    judgement = judge(limits, state, intent)
    if intent is None:
        assert judgement.verdict == Verdict("noop")
    if judgement.verdict.code == "R1_SHAPE" or intent is None:
        assert judgement.order is None
        assert judgement.cancel_id is None
        after, _, receipts = act_on(state, judgement)
        assert (after.world, after.accepted_opens, receipts) == (state.world, state.accepted_opens, ())


# What an accepted open guarantees -------------------------------------------------------------------------------------


@invariant(caps(), states(worlds()), open_proposals(), quick=40, proof=100_000)
def test_e4_an_accepted_open_is_in_scope(limits: PerpCaps, state: State, intent: dict[str, Any]) -> None:
    """E4: its symbol is one of the skill's, on the allow list when there is one, and listed by the venue."""
    if is_allowed(limits, state, intent):
        assert intent["symbol"] in limits.symbols
        assert not limits.allowed_symbols or intent["symbol"] in limits.allowed_symbols
        assert intent["symbol"] in TERMS.assets


@invariant(caps(), states(worlds(calm=True)), open_proposals(wild=False), quick=40, proof=100_000)
def test_e5_e6_an_accepted_open_leaves_every_cap_unbroken(
    limits: PerpCaps, state: State, intent: dict[str, Any]
) -> None:
    """E5, E6: after it, with pending orders at their worst, the symbol and the sum of symbols are inside their caps."""
    judgement = judge(limits, state, intent)
    if judgement.verdict.outcome != "allowed":
        return
    after, _, _ = act_on(state, judgement)
    sizes, value = notionals(after.world), account_value(state.world)
    assert sizes[intent["symbol"]] <= Fraction(limits.max_position_pct) / 100 * value
    assert sum(sizes.values()) <= Fraction(limits.max_total_exposure_pct) / 100 * value


@invariant(caps(), CALM, open_proposals(), quick=40)
def test_e7_accepted_leverage_is_whole_capped_and_what_the_account_then_has(
    limits: PerpCaps, state: State, intent: dict[str, Any]
) -> None:
    """E7: leverage is within [1, min(cap, the asset's maximum)] and is read back from the account at once."""
    judgement = judge(limits, state, intent)
    if judgement.verdict.outcome != "allowed":
        return
    asked = intent.get("leverage", 1)
    assert 1 <= asked <= min(limits.max_leverage, TERMS.assets[intent["symbol"]].max_leverage)
    after, _, _ = act_on(state, judgement)
    assert after.world.leverage[intent["symbol"]] == asked


def is_valid_price(price: Decimal, size_decimals: int) -> bool:
    """Whether the venue takes a price: whole, or five significant figures and 6 − size decimals."""
    trimmed = price.normalize()
    places = max(0, -trimmed.as_tuple().exponent)  # type: ignore[operator]
    return places == 0 or (len(trimmed.as_tuple().digits) <= 5 and places <= 6 - size_decimals)


@invariant(caps(), CALM, open_proposals(wild=False), quick=40)
def test_e8_accepted_sizes_and_prices_are_the_venues_and_err_toward_less_risk(
    limits: PerpCaps, state: State, intent: dict[str, Any]
) -> None:
    """E8: whole lots inside the size bounds, never more than was asked; prices of the venue's precision, never worse."""
    order = judge(limits, state, intent).order
    if order is None:
        return
    asset, mark = TERMS.assets[order.symbol], state.world.marks[order.symbol]
    notional = Fraction(order.size) * Fraction(mark)
    assert (Fraction(order.size) / Fraction(asset.lot)).denominator == 1
    assert 0 < notional <= Fraction(intent["size_usd"])
    assert notional >= max(limits.min_order_usd, 10)
    assert limits.max_order_usd is None or notional <= Fraction(limits.max_order_usd)
    for price in (order.limit, order.stop, order.take_profit):
        assert price is None or is_valid_price(price, asset.size_decimals)
    if order.limit is not None:
        assert order.side * (order.limit - intent["limit_price"]) <= 0
    if order.stop is not None:
        assert abs(order.stop - mark) <= abs(intent["stop_loss"] - mark)


@invariant(
    st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(0, 4), quick=15, proof=5_000
)  # minutes between opens
def test_e9_no_sliding_hour_holds_more_accepted_opens_than_the_cap(pauses: list[int], most: int) -> None:
    """E9: any window of an hour, wherever it begins, holds at most the capped number of accepted opens."""
    limits = replace(LOOSE, max_orders_per_hour=most, max_data_age_ms=10**12)
    state = State(CLEAN)
    accepted: list[int] = []
    at = NOW
    for number, pause in enumerate(pauses):
        at += pause * 60_000
        intent = {"action": "open_long", "symbol": "BTC", "size_usd": 100, "reason": f"number {number}"}
        judgement = guard(limits, TERMS, state, intent, at)
        state, verdict, _ = run_sync(act(state, judgement, BROKER, at))
        if verdict.outcome == "allowed":
            accepted.append(at)
        else:
            assert verdict.code == "R7_ORDER_RATE"
    for start in accepted:
        assert len([moment for moment in accepted if start <= moment < start + HOUR_MS]) <= most


# Halts and exits ------------------------------------------------------------------------------------------------------


@invariant(worlds(), st.lists(st.sampled_from(HALTS), min_size=1, unique=True), open_proposals(), quick=20)
def test_e11_while_halted_nothing_is_opened(world: PerpWorld, halts: list[Any], intent: dict[str, Any]) -> None:
    """E11: with any halt on, no open is accepted, whatever the caps."""
    assert not is_allowed(LOOSE, State(replace(world, halts=tuple(halts))), intent)


@st.composite
def held_with_exit(draw: st.DrawFn) -> tuple[PerpWorld, dict[str, Any]]:
    world = draw(st.one_of(worlds(), broken_worlds()).filter(lambda world: bool(world.positions)))
    symbol = draw(st.sampled_from(sorted(world.positions)))
    return replace(world, halts=draw(st.sampled_from([(), HALTS]))), draw(exit_proposals(symbol))


@invariant(caps(), held_with_exit(), quick=40, proof=50_000)
def test_e12_every_state_lets_a_position_be_closed_or_reduced(
    limits: PerpCaps, case: tuple[PerpWorld, dict[str, Any]]
) -> None:
    """E12: halts, broken numbers, missing marks, delisting: nothing traps a position whose size is known."""
    world, intent = case
    whole = world.positions[intent["symbol"]].size.copy_abs()
    judgement = judge(limits, State(world, accepted_opens=(NOW,) * 50), intent)
    if not whole.is_finite():
        assert judgement.verdict.code == "R2_SCOPE"
        return
    assert judgement.verdict.outcome == "allowed"
    order = judgement.order
    assert order is not None
    assert order.side == -world.positions[intent["symbol"]].side
    assert 0 < order.size <= whole
    if intent["action"] == "close":
        assert order.size == whole


# Between verdicts -----------------------------------------------------------------------------------------------------


def tighter_caps(one: PerpCaps, other: PerpCaps) -> PerpCaps:
    """Each cap the tighter of two."""
    orders = [most for most in (one.max_order_usd, other.max_order_usd) if most is not None]
    lists = [set(allow) for allow in (one.allowed_symbols, other.allowed_symbols) if allow]
    both = set.intersection(*lists) if lists else set()
    return PerpCaps(
        max_position_pct=min(one.max_position_pct, other.max_position_pct),
        max_total_exposure_pct=min(one.max_total_exposure_pct, other.max_total_exposure_pct),
        max_leverage=min(one.max_leverage, other.max_leverage),
        min_order_usd=max(one.min_order_usd, other.min_order_usd),
        max_order_usd=min(orders) if orders else None,
        max_orders_per_hour=min(one.max_orders_per_hour, other.max_orders_per_hour),
        price_band_pct=min(one.price_band_pct, other.price_band_pct),
        max_data_age_ms=min(one.max_data_age_ms, other.max_data_age_ms),
        symbols=tuple(symbol for symbol in one.symbols if symbol in other.symbols),
        allowed_symbols=tuple(sorted(both)) if lists else (),
    )


@invariant(caps(), caps(), states(worlds(calm=True)), open_proposals(), quick=40, proof=100_000)
def test_e13_tightening_a_cap_never_lets_through_what_was_refused(
    one: PerpCaps, other: PerpCaps, state: State, intent: dict[str, Any]
) -> None:
    """E13 monotone: what the tighter caps accept, the looser ones accept too."""
    if is_allowed(tighter_caps(one, other), state, intent):
        assert is_allowed(one, state, intent)
        assert is_allowed(other, state, intent)


@exact
def scaled_world(world: PerpWorld, factor: int) -> PerpWorld:
    return replace(
        world,
        cash=world.cash * factor,
        initial=world.initial * factor,
        peak=world.peak * factor,
        day_reference=world.day_reference * factor,
        last_equity=world.last_equity * factor,
        positions={
            symbol: replace(held, size=held.size * factor, cost=held.cost * factor)
            for symbol, held in world.positions.items()
        },
        orders=tuple(replace(order, size=order.size * factor) for order in world.orders),
    )


@invariant(caps(), states(worlds()), open_proposals(), st.integers(2, 1000), quick=40)
def test_e14_an_account_k_times_as_large_gets_the_same_verdict(
    limits: PerpCaps, state: State, intent: dict[str, Any], factor: int
) -> None:
    """E14 scaling: equity, order bounds and size times k change nothing; only the venue's own minimum is absolute."""
    mark, asset = state.world.marks.get(intent["symbol"]), TERMS.assets.get(intent["symbol"])
    if mark is None or asset is None:
        return
    lots = max(1, int(Decimal(intent["size_usd"]) / (mark * asset.lot)))
    limits = replace(limits, min_order_usd=max(limits.min_order_usd, Decimal(10)))
    large = replace(
        limits,
        min_order_usd=limits.min_order_usd * factor,
        max_order_usd=None if limits.max_order_usd is None else limits.max_order_usd * factor,
    )
    small_intent = {**intent, "size_usd": lots * asset.lot * mark}
    large_intent = {**intent, "size_usd": lots * asset.lot * mark * factor}
    one = judge(limits, state, small_intent).verdict
    other = judge(large, replace(state, world=scaled_world(state.world, factor)), large_intent).verdict
    assert (one.outcome, one.code) == (other.outcome, other.code)


@invariant(
    caps(), states(st.one_of(worlds(), broken_worlds())), st.one_of(open_proposals(), almost_proposals()), quick=30
)
def test_e15_a_refusal_changes_nothing_but_what_has_been_seen(limits: PerpCaps, state: State, intent: Any) -> None:
    """E15: after a refusal the account, the rate window and everything else are as before."""
    judgement = judge(limits, state, intent)
    if judgement.verdict.outcome == "refused":
        after, verdict, receipts = act_on(state, judgement)
        assert receipts == ()
        assert after.world is state.world
        assert replace(after, seen={}) == replace(state, seen={})
        assert after.seen == {judgement.key: verdict}


@invariant(caps(), states(worlds()), st.one_of(open_proposals(), almost_proposals()), quick=40)
def test_e16_the_code_names_the_first_broken_rule_of_the_book(limits: PerpCaps, state: State, intent: Any) -> None:
    """E16: asked one by one from the last to the first, the rules name the same refusal."""
    verdict = judge(limits, state, intent).verdict
    with localcontext(Context(prec=60)):
        case = make_case(limits, TERMS, state.world, *read_proposal(intent), NOW, state.accepted_opens)
        first = None
        for rule in reversed(RULES):
            if rule.scope == "every" or case.proposal is None or case.proposal.opens:
                found = rule.check(case)
                first = rule.code if isinstance(found, Finding) and found.refusal else first
    if verdict.outcome != "noop":
        assert verdict.code == first


@invariant(broken_worlds(), open_proposals(), quick=30)
def test_e17_an_account_that_cannot_be_valued_opens_nothing(world: PerpWorld, intent: dict[str, Any]) -> None:
    """E17: one number missing or not finite anywhere in the account, and every open is refused."""
    assert not is_allowed(LOOSE, State(world), intent)


@invariant(worlds(calm=True), open_proposals(wild=False), st.integers(1, 10**9), quick=20)
def test_e17_a_stale_or_missing_price_opens_nothing(world: PerpWorld, intent: dict[str, Any], late_ms: int) -> None:
    """E17: a price older than allowed, or none, and every open of that symbol is refused."""
    symbol = intent["symbol"]
    old = replace(world, marked_at={**world.marked_at, symbol: NOW - LOOSE.max_data_age_ms - late_ms})
    assert not is_allowed(LOOSE, State(old), intent)
    gone = {name: mark for name, mark in world.marks.items() if name != symbol}
    assert not is_allowed(LOOSE, State(replace(world, marks=gone, positions={})), intent)


@invariant(worlds(), open_proposals(), st.integers(0, 10**6), quick=20)
def test_e18_without_equity_nothing_is_opened(world: PerpWorld, intent: dict[str, Any], debt: int) -> None:
    """E18: with equity at or below zero only exits are left (E12 shows that they are)."""
    with localcontext(Context(prec=60)):
        poor = replace(world, cash=world.cash - equity(world) - debt, halts=())
    assert account_value(poor) <= 0
    assert not is_allowed(LOOSE, State(poor), intent)


@invariant(caps(), states(worlds(calm=True)), st.one_of(open_proposals(wild=False), almost_proposals()), quick=30)
def test_e22_the_same_intent_twice_is_answered_once(limits: PerpCaps, state: State, intent: Any) -> None:
    """E22 idempotence: the second time the stored verdict comes back, flagged, and nothing new is sent."""
    after, verdict, _ = act_on(state, judge(limits, state, intent))
    again = judge(limits, after, intent)
    assert again.order is None
    assert again.cancel_id is None
    assert again.verdict == replace(verdict, duplicate=True)
    final, second, receipts = act_on(after, again)
    assert final == after
    assert (second.order_id, receipts) == (verdict.order_id, ())
    later = guard(limits, TERMS, after, intent, NOW + 1)
    assert not later.verdict.duplicate, "another tick is another intent"


@invariant(caps(), states(worlds()), open_proposals(), quick=40)
def test_e26_an_accepted_open_records_every_margin_and_none_is_below_zero(
    limits: PerpCaps, state: State, intent: dict[str, Any]
) -> None:
    """E26: why it was accepted can be read off the verdict: each limit, what is used, what is left."""
    verdict = judge(limits, state, intent).verdict
    if verdict.outcome == "allowed":
        codes = {margin.code for margin in verdict.margins}
        priced = {"limit_price", "stop_loss", "take_profit"} & set(intent)
        expected = {rule.code for rule in RULES[2:10]} | ({"R11_PRICE_BAND"} if priced else set())
        assert codes == expected or codes == expected - {"R11_PRICE_BAND"}
        assert all(margin.left is not None and margin.left >= 0 for margin in verdict.margins)


@invariant(caps(), states(worlds()), st.one_of(open_proposals(), almost_proposals()), quick=30)
def test_e25_e26_the_stored_state_and_proposal_give_the_same_verdict(
    limits: PerpCaps, state: State, intent: Any
) -> None:
    """E25, E26: replayed from what a snapshot keeps, the verdict is the same to the byte."""
    judgement = judge(limits, state, intent)
    stored_state = read_state(codec.loads(codec.dumps(state)))
    stored_intent = codec.loads_exact(codec.dumps(codec.number_fragments(intent)))
    again = judge(limits, stored_state, stored_intent)
    if judgement.verdict.outcome == "allowed":
        assert judgement_bytes(again) == judgement_bytes(judgement)
    assert (again.verdict.outcome, again.verdict.code) == (judgement.verdict.outcome, judgement.verdict.code)


# The properties above are not empty -----------------------------------------------------------------------------------


REACHABLE = (None, *(rule.code for rule in RULES[1:11]))


@pytest.fixture(scope="module")
def reached_rules() -> set[str | None]:
    """The rules that refused some well-formed open, and None if one was accepted; random cases are tried until it is all."""
    found: set[str | None] = set()

    def reaches_all(case: tuple[PerpCaps, State, dict[str, Any]]) -> bool:
        verdict = judge(*case).verdict
        if verdict.outcome in ("allowed", "refused"):
            found.add(verdict.code)
        return found.issuperset(REACHABLE)

    cases = st.tuples(st.one_of(caps(), st.just(replace(LOOSE, symbols=SYMBOLS))), states(worlds()), open_proposals())
    with suppress(NoSuchExample):
        calmly = settings(CALMLY, max_examples=20_000, database=None, phases=[Phase.generate])
        find(cases, reaches_all, settings=calmly, random=Random(7))  # with which it takes few
    return found


@pytest.mark.parametrize("code", REACHABLE)
def test_the_random_accounts_reach_every_verdict(code: str | None, reached_rules: set[str | None]) -> None:
    """Each rule names some refusal of a well-formed open, and some are accepted: no property holds for want of cases."""
    assert code in reached_rules


test_long = long_versions(globals())
