"""Whole runs anonymised: nothing true is sent, and the same decisions give the same run as with open eyes."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blind_leaks import BlindLeakScanner, texts
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import HOUR_MS
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.scripted import calls
from pitboss.venues.perp.blind.anonymiser import PerpAnonymiser
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.metrics import compute
from venues.perp.blind.blind_runs import (
    FROM,
    LOOKS,
    SYMBOLS,
    BlindRun,
    InquisitiveModel,
    market_of,
    request_of,
    run_blind,
)

MARKET = market_of()


@pytest.fixture(scope="module")
def inquisitive_model() -> BlindRun:
    return run_blind(InquisitiveModel(), MARKET, request_of(hours=20))


# Nothing true is sent ---------------------------------------------------------------------------------------------------


def test_a_run_that_calls_every_tool_and_is_refused_in_many_ways_sends_nothing_true(
    inquisitive_model: BlindRun,
) -> None:
    assert inquisitive_model.leaks() == []
    said = "\n".join(texts(codec.plain(inquisitive_model.requests)))
    verdicts = [
        v
        for record in inquisitive_model.records
        if record.kind == "tick"
        for v in codec.loads(record.covered)["verdicts"]
    ]
    refused = {verdict["code"] for verdict in verdicts}
    assert {"R2_SCOPE", "R3_POSITION_CAP", "R11_PRICE_BAND"} <= refused
    assert len([verdict for verdict in verdicts if verdict["outcome"] == "allowed"]) > 20
    # What had to be hidden was really there to be sent: every part of the prompt, every tool, refusals within a tick.
    for part in ("## News", "## Upcoming events", "## Open orders", "## Trade history", "## Lessons", "## Risk state"):
        assert part in said
    for part in (
        "thesis at entry",
        "detail: <data>",
        "refused by R11_PRICE_BAND",
        "limit_price",
        "liquidation 0.",
        "## Closed trades",
    ):
        assert part in said, part
    offered = {tool.name for request in inquisitive_model.requests for tool in request.tools}
    assert "get_top_traders" not in offered, "what was recorded of others cannot be anonymised"
    called = {
        call.name for request in inquisitive_model.requests for message in request.messages for call in message.calls
    }
    assert called >= set(LOOKS) - {"get_top_traders"}


def test_an_open_run_is_full_of_what_the_scanner_looks_for() -> None:
    leaks = run_blind(InquisitiveModel(), MARKET, request_of(blind=False, hours=3)).leaks()
    kinds = {leak.split()[0] for leak in leaks}
    assert kinds == {"name", "price", "day", "year"}
    assert len(leaks) > 1_000


PLANTED: tuple[tuple[str, str], ...] = (
    ("a symbol", "and BTC too"),
    ("a symbol in small letters", "and eth too"),
    ("a pair", "the pair LINKUSDT"),
    ("a symbol within a word", "on HitBTC"),
    ("a name", "what Bitcoin did"),
    ("a venue that is a name", "on bItCoIn markets"),
    ("a day", "since 2024-05-06"),
    ("an instant", "opened_at 2024-05-06T12:15:00Z"),
    ("milliseconds", f"at {FROM + HOUR_MS}"),
    ("seconds", f"at {FROM // 1000}"),
    ("a year", "the best of 2024 so far"),
)


@pytest.mark.parametrize(("what", "leak"), PLANTED, ids=[what for what, _ in PLANTED])
def test_a_planted_leak_is_found(inquisitive_model: BlindRun, what: str, leak: str) -> None:
    scanner = BlindLeakScanner(MARKET, SYMBOLS)
    user = inquisitive_model.requests[40].messages[0].text
    assert scanner.find(user) == []
    middle = user.index("## Portfolio")
    assert scanner.find(f"{user[:middle]}{leak}\n{user[middle:]}"), what


def test_a_planted_price_is_found_wherever_it_stands(inquisitive_model: BlindRun) -> None:
    scanner = BlindLeakScanner(MARKET, SYMBOLS)
    bars = MARKET.bars["BTC", "1h"]
    price = f"{bars.close[100]:.6g}"
    for leak in (
        f"entry {price}, mark",
        f'{{"mark":"{price}"}}',
        f"09-26 12:00 1.5 1.6 {price} 1.55 300",
        f"stop {price}",
    ):
        assert scanner.find(leak), leak
    scanner.add([Decimal("61234.56789")])
    assert scanner.find("liquidation 61234.6, stop none")
    assert scanner.find("liquidation 61234.56789")


# The same decisions, the same run -----------------------------------------------------------------------------------


class PlannedProposals:
    """Proposes the next entry of a plan at each tick, with the anonymised names where the run is blind."""

    def __init__(self, plan: list[Any], told: Callable[[Any], Any] = lambda true: true) -> None:
        self.plan, self.told, self.tick = plan, told, -1

    def bind(self, script: PerpCourse) -> None:
        anonymiser = script.ports.context.anonymiser
        if isinstance(anonymiser, PerpAnonymiser):
            self.told = anonymiser.proposal

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.tick += 1
        return calls("propose_order", **self.told(self.plan[self.tick % len(self.plan)]))


def run_plan(plan: list[Any], market: Market, blind: bool, hours: int, seed: int = 3) -> BlindRun:
    answer = PlannedProposals(plan)
    request = request_of(blind, hours, seed, max_steps=1, retry_refused=0, tools={"built_in": []})
    request = replace(
        request, skill={**request.skill, "context": {**request.skill["context"], "memory": {"reflection_every": 1_000}}}
    )
    return run_blind(answer, market, request, answer.bind)


def recorded_events(run: BlindRun) -> list[Any]:
    """The parts of the records that do not depend on the texts the model got."""
    kept = ("proposals", "verdicts", "receipts", "equity", "before", "after", "flags")
    bodies = [codec.loads(record.covered) for record in run.records]
    return [[body.get(name) for name in kept] for body in bodies]


prices = st.sampled_from(["0.9", "0.97", "0.995", "1", "1.004", "1.03", "1.2"])


@st.composite
def proposal(draw: st.DrawFn) -> dict[str, Any]:
    symbol = draw(st.sampled_from((*SYMBOLS, *SYMBOLS, "DOGE")))
    level = Decimal(repr(float(MARKET.bars[symbol, "15m"].close[-1]))) if symbol in SYMBOLS else Decimal(100)
    found: dict[str, Any] = {
        "action": draw(st.sampled_from(("open_long", "open_short", "open_long", "close", "reduce", "no_op", "cancel"))),
        "symbol": symbol,
        "reason": "Because.",
    }
    if found["action"].startswith("open"):
        found["size_usd"] = draw(st.sampled_from((5, 700, Decimal("3333.33"), 9_000, 40_000)))
        found["leverage"] = draw(st.integers(1, 6))
    if found["action"] == "reduce":
        found["reduce_pct"] = draw(st.integers(1, 100))
    if found["action"] == "cancel":
        found["order_id"] = draw(st.sampled_from(("o1", "o2", "o3")))
    for key in ("stop_loss", "take_profit"):
        if draw(st.booleans()):
            found[key] = level * Decimal(draw(prices))
    if draw(st.booleans()) and found["action"].startswith("open"):
        found |= {"order_type": "limit", "limit_price": level * Decimal(draw(prices))}
    return found


@settings(max_examples=4)
@given(st.lists(proposal(), min_size=3, max_size=12), st.integers(0, 1_000))
def test_the_same_decisions_give_the_same_receipts_equity_and_metrics_blind_or_open(plan: list[Any], seed: int) -> None:
    check_same_course(plan, seed, 6)


@pytest.mark.proof
@settings(max_examples=400)
@given(st.lists(proposal(), min_size=3, max_size=40), st.integers(0, 10**9))
def test_the_same_decisions_give_the_same_run_over_many_plans(plan: list[Any], seed: int) -> None:
    check_same_course(plan, seed, 24)


def check_same_course(plan: list[Any], seed: int, hours: int) -> None:
    opened, blind = run_plan(plan, MARKET, False, hours, seed), run_plan(plan, MARKET, True, hours, seed)
    assert recorded_events(blind) == recorded_events(opened)
    assert blind.worlds == opened.worlds
    measured = [
        compute(run.ledger.outcome(FROM, FROM + hours * HOUR_MS, 900_000, Decimal(10_000)), 1)
        for run in (opened, blind)
    ]
    assert codec.dumps(measured[0]) == codec.dumps(measured[1])
    assert opened.state.memory == blind.state.memory, "what is remembered is true, whatever is shown"


def test_regimes_and_room_are_reported_alike_blind_or_open() -> None:
    plan = [{"action": "no_op", "symbol": "BTC", "reason": "Wait."}]
    opened, blind = run_plan(plan, MARKET, False, 6), run_plan(plan, MARKET, True, 6)
    anonymiser = blind.script.ports.context.anonymiser
    assert anonymiser is not None

    def told(run: BlindRun, names: dict[str, str]) -> list[dict[str, str]]:
        found = []
        for request in run.requests:
            user = request.messages[0].text
            lines = {names[block.split("\n", 1)[0]]: block.split("\n")[1] for block in user.split("\n### ")[1:]}
            caps = {
                names[line[2:].split(":")[0]]: line.split(":", 1)[1]
                for line in user.splitlines()
                if "size_usd" in line and line.startswith("- ") and line[2:].split(":")[0] in names
            }
            found.append({"regimes": lines, "caps": caps})
        return found

    assert told(blind, {alias.name: alias.symbol for alias in anonymiser.aliases}) == told(
        opened, {name: name for name in SYMBOLS}
    )


# The same run again ---------------------------------------------------------------------------------------------------


def test_a_blind_run_comes_out_the_same_again_and_with_another_seed_its_text_differs() -> None:
    one, again = (
        run_blind(InquisitiveModel(), MARKET, request_of(hours=4)),
        run_blind(InquisitiveModel(), MARKET, request_of(hours=4)),
    )
    assert one.state.prev_digest == again.state.prev_digest
    other = run_blind(InquisitiveModel(), MARKET, request_of(hours=4, seed=4))
    assert other.requests[0] != one.requests[0]


def test_a_kept_mapping_is_used_instead_of_a_new_one() -> None:
    first = run_blind(InquisitiveModel(), MARKET, request_of(hours=2))
    anonymiser = first.script.ports.context.anonymiser
    assert anonymiser is not None
    kept = replace(request_of(hours=2, seed=99), disguise=anonymiser.plain())
    assert run_blind(InquisitiveModel(), MARKET, kept).requests[0] == first.requests[0]


def test_the_mapping_does_not_depend_on_anything_after_the_first_tick() -> None:
    late = market_of(seed=5)
    for key, bars in late.bars.items():
        later = int(bars.open_at.searchsorted(FROM))
        bars.close[later:] *= 3.0
        assert key in late.bars
    one, other = (
        run_blind(InquisitiveModel(), market, request_of(hours=1)).script.ports.context.anonymiser
        for market in (MARKET, late)
    )
    assert one == other


def test_a_model_that_names_the_true_symbol_trades_nothing_and_learns_nothing() -> None:
    said: dict[str, list[str]] = {}
    for guess in ("BTC", "DOGE"):
        plan = [{"action": "open_long", "symbol": guess, "size_usd": 500, "reason": f"It is {guess}."}]
        answer = PlannedProposals(plan)
        request = request_of(True, 2, max_steps=3, retry_refused=2, tools={"built_in": ["read_my_prior_decisions"]})
        run = run_blind(answer, MARKET, request)
        assert not run.ledger.receipts
        # All but the model's own turns, which are its own words.
        said[guess] = [
            message.text for asked in run.requests for message in asked.messages if message.role != "assistant"
        ]
    assert said["BTC"] == said["DOGE"]
    assert not any("BTC" in text or "DOGE" in text for text in said["BTC"])
