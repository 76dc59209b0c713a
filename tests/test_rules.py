"""Every rule of the book: one proposal just inside its limit that is allowed, one a unit beyond that is refused.

Codes, their order and their files are a promise to everything that was ever stored: they are pinned here.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Placed, act
from pitboss.engine.guard import Judgement
from pitboss.venues.perp import rules
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.rules import RULES
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder, open_world
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.world import OrderRequest, set_marks
from verdict_margins import margin_of

NOW = parse_instant("2025-06-03T12:00:00Z")
TERMS = TradingTerms(SHIPPED, daily_loss_halt_pct=Decimal(5), drawdown_halt_pct=Decimal(15))
MARKS = {"BTC": (Decimal(100_000), NOW), "ETH": (Decimal(2_500), NOW)}
ACCOUNT = set_marks(open_world(Decimal(10_000), NOW // DAY_MS), MARKS)
CAPS = PerpCaps(symbols=("BTC", "ETH"))
OPEN: dict[str, Any] = {"action": "open_long", "symbol": "BTC", "size_usd": 1_000, "reason": "because"}


@dataclass
class ProposalCase:
    """A proposal in front of the guard; by default everything is allowed."""

    intent: Any = field(default_factory=lambda: dict(OPEN))
    caps: PerpCaps = CAPS
    world: PerpWorld = ACCOUNT
    accepted_opens: tuple[int, ...] = ()
    now: int = NOW

    def judge(self) -> Judgement:
        return guard(self.caps, TERMS, State(self.world, accepted_opens=self.accepted_opens), self.intent, self.now)


def verdict(scene: ProposalCase) -> Verdict:
    return scene.judge().verdict


def open_case(**changes: Any) -> ProposalCase:
    return ProposalCase({**OPEN, **changes})


def position(size: str, symbol: str = "BTC", price: int = 100_000) -> Position:
    return Position(symbol, Decimal(size), Decimal(size) * price, NOW - HOUR_MS)


def test_the_codes_their_order_and_their_files_never_change() -> None:
    pinned = (
        ("R1_SHAPE", "r01_shape", "every"),
        ("R2_SCOPE", "r02_scope", "every"),
        ("R3_POSITION_CAP", "r03_position_cap", "opens"),
        ("R4_EXPOSURE_CAP", "r04_exposure_cap", "opens"),
        ("R5_LEVERAGE_CAP", "r05_leverage_cap", "opens"),
        ("R6_ORDER_SIZE", "r06_order_size", "opens"),
        ("R7_ORDER_RATE", "r07_order_rate", "opens"),
        ("R8_HALTED", "r08_halted", "opens"),
        ("R9_MARGIN", "r09_margin", "opens"),
        ("R10_STALE_DATA", "r10_stale_data", "opens"),
        ("R11_PRICE_BAND", "r11_price_band", "opens"),
        ("R12_DUPLICATE", "r12_duplicate", "every"),
        ("R13_VENUE", "r13_venue", "every"),
    )
    assert tuple((rule.code, rule.scope) for rule in RULES) == tuple((code, scope) for code, _, scope in pinned)
    folder = Path(rules.__file__).parent
    assert sorted(path.stem for path in folder.glob("r*.py")) == sorted(name for _, name, _ in pinned)
    for rule in RULES:
        assert len(rule.doc.strip().splitlines()) >= 3, f"{rule.code} does not say what it refuses"


def test_a_plain_open_is_allowed_with_every_margin() -> None:
    found = verdict(ProposalCase())
    assert (found.outcome, found.code) == ("allowed", None)
    assert [margin.code for margin in found.margins] == [rule.code for rule in RULES[2:10]]


# One limit each: (allowed, refused, code, what is left of the limit in either case) -------------------------------------

CASES: dict[str, tuple[Callable[[], ProposalCase], Callable[[], ProposalCase], str, str | None, str | None]] = {
    "position cap: 25 % of 10,000, lots of one dollar": (
        lambda: open_case(size_usd=2_500),
        lambda: open_case(size_usd=2_501),
        "R3_POSITION_CAP",
        "0",
        "-1",
    ),
    "position cap: what is held counts at mark": (
        lambda: replace(open_case(size_usd=500), world=replace(ACCOUNT, positions={"BTC": position("0.02")})),
        lambda: replace(open_case(size_usd=501), world=replace(ACCOUNT, positions={"BTC": position("0.02")})),
        "R3_POSITION_CAP",
        "0",
        "-1",
    ),
    "position cap: a limit above mark counts at its price": (
        lambda: open_case(size_usd=2_450, order_type="limit", limit_price=102_000),
        lambda: open_case(size_usd=2_451, order_type="limit", limit_price=102_000),
        "R3_POSITION_CAP",
        "1",
        "-0.02",
    ),
    "exposure cap: over all symbols": (
        lambda: replace(open_case(), caps=replace(CAPS, max_total_exposure_pct=Decimal(20)), world=_with_eth("0.4")),
        lambda: replace(
            open_case(size_usd=1_001), caps=replace(CAPS, max_total_exposure_pct=Decimal(20)), world=_with_eth("0.4")
        ),
        "R4_EXPOSURE_CAP",
        "0",
        "-1",
    ),
    "leverage: the skill's cap": (
        lambda: open_case(leverage=3),
        lambda: open_case(leverage=4),
        "R5_LEVERAGE_CAP",
        "0",
        "-1",
    ),
    "leverage: the asset's maximum": (
        lambda: replace(open_case(leverage=40), caps=replace(CAPS, max_leverage=Decimal(50))),
        lambda: replace(open_case(leverage=41), caps=replace(CAPS, max_leverage=Decimal(50))),
        "R5_LEVERAGE_CAP",
        "0",
        "-1",
    ),
    "leverage: at least one": (
        lambda: open_case(leverage=1),
        lambda: open_case(leverage=0),
        "R5_LEVERAGE_CAP",
        "2",
        "3",
    ),
    "leverage: whole": (
        lambda: open_case(leverage=Decimal("2.0")),
        lambda: open_case(leverage=Decimal("2.5")),
        "R5_LEVERAGE_CAP",
        "1",
        "0.5",
    ),
    "order size: the venue's minimum": (
        lambda: replace(open_case(size_usd=10), caps=replace(CAPS, min_order_usd=Decimal(1))),
        lambda: replace(open_case(size_usd=Decimal("9.99")), caps=replace(CAPS, min_order_usd=Decimal(1))),
        "R6_ORDER_SIZE",
        "0",
        "-1",
    ),
    "order size: the skill's minimum": (
        lambda: replace(open_case(size_usd=50), caps=replace(CAPS, min_order_usd=Decimal(50))),
        lambda: replace(open_case(size_usd=49), caps=replace(CAPS, min_order_usd=Decimal(50))),
        "R6_ORDER_SIZE",
        "0",
        "-1",
    ),
    "order size: the skill's maximum": (
        lambda: replace(open_case(), caps=replace(CAPS, max_order_usd=Decimal(1_000))),
        lambda: replace(open_case(size_usd=1_001), caps=replace(CAPS, max_order_usd=Decimal(1_000))),
        "R6_ORDER_SIZE",
        "0",
        "-1",
    ),
    "order rate: twelve an hour": (
        lambda: replace(open_case(), accepted_opens=(NOW - HOUR_MS, *[NOW - HOUR_MS + 1] * 11)),
        lambda: replace(open_case(), accepted_opens=(NOW - HOUR_MS + 1,) * 12),
        "R7_ORDER_RATE",
        "0",
        "-1",
    ),
    "halted: a loss of the day": (
        lambda: replace(open_case(), world=replace(ACCOUNT, day_reference=Decimal("10526"))),
        lambda: replace(open_case(), world=replace(ACCOUNT, day_reference=Decimal("10527"))),
        "R8_HALTED",
        "0.3",
        "-0.65",
    ),
    "halted: a fall from the peak": (
        lambda: replace(open_case(), world=replace(ACCOUNT, peak=Decimal(11_764))),
        lambda: replace(open_case(), world=replace(ACCOUNT, peak=Decimal(11_765))),
        "R8_HALTED",
        "0.6",
        "-0.25",
    ),
    "margin: notional / leverage and the fee": (
        lambda: replace(open_case(size_usd=9_995), caps=_wide()),
        lambda: replace(open_case(size_usd=9_996), caps=_wide()),
        "R9_MARGIN",
        "0.50225",
        "-0.4982",
    ),
    "stale data: ten minutes": (
        lambda: replace(open_case(), now=NOW + 600_000, caps=replace(CAPS, max_data_age_ms=600_000)),
        lambda: replace(open_case(), now=NOW + 600_001, caps=replace(CAPS, max_data_age_ms=600_000)),
        "R10_STALE_DATA",
        "0",
        "-0.001",
    ),
    "price band: a buy at most 5 % above mark": (
        lambda: open_case(order_type="limit", limit_price=105_000),
        lambda: open_case(order_type="limit", limit_price=105_001),
        "R11_PRICE_BAND",
        "0",
        "-1",
    ),
    "price band: a sell at most 5 % below mark": (
        lambda: open_case(action="open_short", order_type="limit", limit_price=95_000),
        lambda: open_case(action="open_short", order_type="limit", limit_price=94_999),
        "R11_PRICE_BAND",
        "0",
        "-1",
    ),
    "price band: a stop strictly below mark": (
        lambda: open_case(stop_loss=99_999),
        lambda: open_case(stop_loss=100_000),
        "R11_PRICE_BAND",
        "1",
        "0",
    ),
    "price band: a stop of a limit strictly below the limit": (
        lambda: open_case(order_type="limit", limit_price=98_000, stop_loss=97_999),
        lambda: open_case(order_type="limit", limit_price=98_000, stop_loss=98_000),
        "R11_PRICE_BAND",
        "1",
        "0",
    ),
    "price band: a take-profit of a short strictly below mark": (
        lambda: open_case(action="open_short", take_profit=99_999),
        lambda: open_case(action="open_short", take_profit=100_000),
        "R11_PRICE_BAND",
        "1",
        "0",
    ),
}


def _with_eth(size: str) -> PerpWorld:
    return replace(ACCOUNT, positions={"ETH": position(size, "ETH", 2_500)})


def _wide() -> PerpCaps:
    return replace(CAPS, max_position_pct=Decimal(100))


@pytest.mark.parametrize("name", CASES)
def test_a_unit_inside_the_limit_is_allowed_and_a_unit_beyond_is_refused(name: str) -> None:
    inside, beyond, code, left_inside, left_beyond = CASES[name]
    good, bad = verdict(inside()), verdict(beyond())
    assert (good.outcome, good.code) == ("allowed", None), good.detail
    assert (bad.outcome, bad.code) == ("refused", code), bad.detail
    assert bad.detail
    assert margin_of(good, code).left == Decimal(left_inside or 0)
    assert margin_of(bad, code).left == Decimal(left_beyond or 0)


# Rules without a number ---------------------------------------------------------------------------------------------

SHAPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"unknown": 1}),
    ({"size_usd": 100}, {"size_usd": "100"}),
    ({"size_usd": Decimal("1e3")}, {"size_usd": Decimal("1e309")}),
    ({"leverage": 1}, {"leverage": True}),
    ({"symbol": "BTC"}, {"symbol": 7}),
    ({"order_type": "limit", "limit_price": 99_000}, {"order_type": "limit"}),
    ({"order_type": "market"}, {"order_type": "stop"}),
    ({"reason": ""}, {"reason": None}),
    ({"action": "open_short"}, {"action": "short"}),
    ({"confidence": Decimal("0.5")}, {"confidence": Decimal("NaN")}),
]


@pytest.mark.parametrize(("good", "bad"), SHAPES)
def test_r1_shape_allows_what_is_well_formed_and_refuses_what_is_not(good: dict[str, Any], bad: dict[str, Any]) -> None:
    assert verdict(open_case(**good)).outcome == "allowed"
    found = verdict(open_case(**bad))
    assert (found.outcome, found.code) == ("refused", "R1_SHAPE")


REDUCES: list[tuple[dict[str, Any], bool]] = [
    ({"reduce_pct": 100}, True),
    ({"reduce_pct": Decimal("100.0001")}, False),
    ({"reduce_pct": Decimal("0.0001")}, True),
    ({"reduce_pct": 0}, False),
    ({"size_usd": 1}, True),
    ({"size_usd": 0}, False),
    ({"size_usd": 1, "reduce_pct": 1}, False),
    ({}, False),
]


@pytest.mark.parametrize(("fields", "good"), REDUCES)
def test_r1_shape_of_a_reduce_needs_exactly_one_measure_within_bounds(fields: dict[str, Any], good: bool) -> None:
    scene = ProposalCase({"action": "reduce", "symbol": "BTC", "reason": "less", **fields})
    scene.world = replace(ACCOUNT, positions={"BTC": position("0.02")})
    assert verdict(scene).code == (None if good else "R1_SHAPE")


@pytest.mark.parametrize(
    "intent", [None, {"action": "no_op", "reason": "wait"}, {"action": "no_op", "symbol": "BTC", "reason": ""}]
)
def test_null_and_no_op_are_no_ops(intent: Any) -> None:
    assert verdict(ProposalCase(intent)) == Verdict("noop")


def test_r2_scope_takes_the_skills_symbols_only_and_of_these_the_allowed_ones() -> None:
    both = replace(CAPS, allowed_symbols=("BTC",))
    assert verdict(ProposalCase(caps=both)).outcome == "allowed"
    assert verdict(replace(open_case(symbol="ETH"), caps=both)).code == "R2_SCOPE"
    assert verdict(open_case(symbol="SOL")).code == "R2_SCOPE"
    assert verdict(replace(open_case(symbol="NEW"), caps=replace(CAPS, symbols=("NEW",)))).code == "R2_SCOPE"


def test_r2_scope_never_flips_a_position_or_meets_its_own_order() -> None:
    same, other = (
        replace(ACCOUNT, positions={"BTC": position("0.001")}),
        replace(ACCOUNT, positions={"BTC": position("-0.001")}),
    )
    assert verdict(ProposalCase(world=same)).outcome == "allowed"
    assert verdict(ProposalCase(world=other)).code == "R2_SCOPE"
    for side, code in ((1, None), (-1, "R2_SCOPE")):
        order = WorkingOrder("o1", "limit", "BTC", side, Decimal("0.001"), NOW, NOW, Decimal(99_000))
        assert verdict(ProposalCase(world=replace(ACCOUNT, orders=(order,)))).code == code


@pytest.mark.parametrize("action", ["close", "reduce"])
def test_r2_scope_of_an_exit_needs_the_position(action: str) -> None:
    intent = {"action": action, "symbol": "BTC", "reason": "out", **({"reduce_pct": 50} if action == "reduce" else {})}
    assert (
        verdict(ProposalCase(intent, world=replace(ACCOUNT, positions={"BTC": position("0.02")}))).outcome == "allowed"
    )
    assert verdict(ProposalCase(intent)).code == "R2_SCOPE"


def test_r2_scope_of_a_cancel_needs_the_working_order() -> None:
    order = WorkingOrder("o1", "limit", "BTC", 1, Decimal("0.001"), NOW, NOW, Decimal(99_000))
    world = replace(ACCOUNT, orders=(order,))
    cancel = {"action": "cancel", "symbol": "BTC", "order_id": "o1", "reason": "off"}
    assert ProposalCase(cancel, world=world).judge().cancel_id == "o1"
    assert verdict(ProposalCase({**cancel, "order_id": "o2"}, world=world)).code == "R2_SCOPE"


def test_r6_order_size_refuses_what_rounds_down_to_nothing() -> None:
    marks = {"BTC": (Decimal(2_000_000), NOW)}
    dear = set_marks(open_world(Decimal(10**6), NOW // DAY_MS), marks)
    assert verdict(ProposalCase({**OPEN, "size_usd": 20}, world=dear)).outcome == "allowed"
    found = verdict(ProposalCase({**OPEN, "size_usd": 19}, world=dear))
    assert (found.code, found.detail) == ("R6_ORDER_SIZE", "the size rounds down to zero lots")


@pytest.mark.parametrize("halt", ["daily_loss", "drawdown", "operator", "invariant"])
def test_r8_halted_refuses_opens_under_every_halt_and_exits_under_none(halt: Any) -> None:
    assert verdict(ProposalCase()).outcome == "allowed"
    halted = replace(ACCOUNT, halts=(halt,), positions={"BTC": position("0.001")})
    assert verdict(ProposalCase(world=halted)).code == "R8_HALTED"
    assert (
        verdict(ProposalCase({"action": "close", "symbol": "BTC", "reason": "out"}, world=halted)).outcome == "allowed"
    )


def test_r8_halted_refuses_an_account_with_a_number_that_is_none() -> None:
    assert verdict(ProposalCase(world=replace(ACCOUNT, peak=Decimal("NaN")))).code == "R8_HALTED"


def test_r10_stale_data_refuses_without_a_price() -> None:
    assert verdict(ProposalCase(world=open_world(Decimal(10_000), NOW // DAY_MS))).code == "R10_STALE_DATA"
    zero = replace(ACCOUNT, marks={**ACCOUNT.marks, "BTC": Decimal(0)})
    assert verdict(ProposalCase(world=zero)).code == "R10_STALE_DATA"


def test_r12_duplicate_returns_the_stored_verdict_and_sends_nothing() -> None:
    first = ProposalCase().judge()
    state, given, _ = asyncio.run(act(State(ACCOUNT), first, PaperBroker(TERMS), NOW))
    again = guard(CAPS, TERMS, state, dict(OPEN), NOW)
    assert first.order is not None
    assert (again.order, again.verdict) == (None, replace(given, duplicate=True))
    other = guard(CAPS, TERMS, state, {**OPEN, "size_usd": 999}, NOW)
    assert other.order is not None


class RefusingBroker:
    """Refuses every order with the same words."""

    async def submit(self, world: Any, request: OrderRequest, at: int) -> Placed:
        del request, at
        return Placed(world, refusal="insufficient margin on the venue")

    async def cancel(self, world: Any, order_id: str, at: int) -> Placed:
        del order_id, at
        return Placed(world, refusal="already filled")


def test_r13_venue_keeps_the_brokers_reason_and_changes_nothing() -> None:
    state = State(ACCOUNT)
    accepted, good, receipts = asyncio.run(act(state, ProposalCase().judge(), PaperBroker(TERMS), NOW))
    assert (good.outcome, good.order_id, len(receipts), len(accepted.accepted_opens)) == ("allowed", "o1", 1, 1)
    after, bad, nothing = asyncio.run(act(state, ProposalCase().judge(), RefusingBroker(), NOW))
    assert (bad.outcome, bad.code, bad.detail) == ("refused", "R13_VENUE", "insufficient margin on the venue")
    assert (after.world, after.accepted_opens, nothing) == (state.world, (), ())
    assert [margin.code for margin in bad.margins] == [margin.code for margin in good.margins]
