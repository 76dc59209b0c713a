"""Replay: the same digest however the work was split, and records that match what was executed.

Markets and decisions come from the seeded streams of the reference; a model is a function of what it is shown, so any
difference in a prompt becomes a difference in the run.
"""

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest

from example_counts import seeds
from pitboss.agent.loop import ToolLoop
from pitboss.core import codec
from pitboss.core.curve import points
from pitboss.core.errors import RunCancelled, TransientError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, iso, parse_instant
from pitboss.core.ports import ModelRequest
from pitboss.core.snapshot import GENESIS, Record, check
from pitboss.core.state import State
from pitboss.models.decisions import DecisionFile
from pitboss.models.scripted import Line, ScriptedModel, calls, says, together
from pitboss.sim.course import ticks_between
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import hydrate
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state, read_state
from pitboss.venues.perp.intents import DECISION, TERMINAL
from pitboss.venues.perp.metrics import compute
from pitboss.venues.perp.outcome import PerpLedger, fills, read_ledger
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, interval_name, make_market, plain_skill, play
from pitboss.venues.perp.venue import VENUE
from reference.streams import Case, random_case

BASE = 5 * MINUTE_MS
MIDNIGHT = parse_instant("2025-06-04")
Build = Callable[[], PerpCourse]


# Ways to make the same run -------------------------------------------------------------------------------------------


def request_of(case: Case, **more: Any) -> PerpRequest:
    given = case.skill
    skill = plain_skill(
        given["context"]["symbols"], given["schedule"]["every"], context=given["context"], risk=given["risk"]
    )
    return PerpRequest(
        skill=skill,
        from_at=case.from_ms,
        to_at=case.to_ms,
        equity_usd=Decimal(case.equity),
        taker_bps=Decimal(case.taker_bps),
        maker_bps=Decimal(case.maker_bps),
        slippage_bps_per_million=Decimal(case.slippage_bps_per_million),
        penalty_bps=Decimal(case.penalty_bps),
        decision_latency_ms=case.latency_ms,
        close_at_end=case.close_at_end,
        **more,
    )


def with_decisions(seed: int, commit_records: int = 50, planned: bool = True) -> PerpCourse:
    case = random_case(seed)
    market = make_market(case.bars, interval_name(case.base_ms), case.funding, case.marks)
    decisions = DecisionFile({at: (proposal,) for at, proposal in case.decisions.items()})
    script = build(request_of(case), market, interval_name(case.base_ms), decisions)
    return dataclasses.replace(script, commit_records=commit_records, planned=planned)


def with_policy(seed: int, policy: str = "policy/random", commit_records: int = 50) -> PerpCourse:
    case = random_case(seed)
    market = make_market(case.bars, interval_name(case.base_ms), case.funding, case.marks)
    case.skill["context"]["bars_interval"] = interval_name(case.base_ms)
    script = build(request_of(case, model=policy), market, interval_name(case.base_ms))
    return dataclasses.replace(script, commit_records=commit_records)


def hashed_reply(request: ModelRequest) -> Line:
    """A model whose every answer hangs on every character it is shown."""
    words = request.system + "\x00".join(message.text for message in request.messages)
    mood = int.from_bytes(hashlib.sha256(words.encode()).digest()[:4])
    if mood % 11 == 0:
        return TransientError("a bad moment")
    if mood % 7 == 0:
        return says("let me think")
    if mood % 5 == 0 and request.must_call is None:
        return together(calls("get_portfolio"), calls("fetch_recent_bars", symbol="BTC", interval="5m", lookback=3))
    if mood % 13 == 0:
        return together(calls(TERMINAL, action="no_op", reason="a"), calls(TERMINAL, action="no_op", reason="b"))
    if mood % 3 == 0:
        return calls(TERMINAL, action="close", symbol="BTC", reason=f"mood {mood}")
    action = "open_long" if mood % 2 else "open_short"
    return calls(TERMINAL, action=action, symbol="BTC", size_usd=mood % 3000, leverage=mood % 4, reason=f"mood {mood}")


def walk(count: int, start: int = MIDNIGHT - 20 * BASE) -> dict[str, list[tuple[int, float, float, float, float]]]:
    """A calm walk of BTC over a midnight, with two bars missing."""
    rows, price = [], 100_000.0
    for place in range(-60, count):
        step = (int.from_bytes(hashlib.sha256(f"{place}".encode()).digest()[:2]) % 401 - 200) / 2
        opens, price = price, round(price + step, 1)
        if place not in (25, 26):
            rows.append((start + place * BASE, opens, max(opens, price) + 20, min(opens, price) - 20, price))
    return {"BTC": rows}


def with_model(
    reply: Callable[[ModelRequest], Line] = hashed_reply,
    prompts: bool | None = None,
    count: int = 40,
    commit_records: int = 7,
) -> PerpCourse:
    start = MIDNIGHT - 20 * BASE
    risk = {"max_order_usd": Decimal("2000.50"), "max_orders_per_hour": 100}
    document = plain_skill(
        tools={"built_in": ["fetch_recent_bars", "get_portfolio"]}, max_steps=4, retry_refused=1, risk=risk
    )
    request = PerpRequest(document, start, start + count * BASE, prompts=prompts)
    skill = read_skill(document)
    names = ["fetch_recent_bars", "get_portfolio"]
    loop = ToolLoop(
        "scripted/model",
        ScriptedModel(reply),
        PerpPrompts(skill),
        lambda observation, judge: hydrate(VENUE.tools(), names, ToolContext(observation, "write", judge)),
        DECISION,
        skill.max_steps,
        skill.retry_refused,
    )
    funding = {"BTC": [(hour, 0.0001) for hour in range(start, start + count * BASE, HOUR_MS)]}
    return build(request, make_market(walk(count), funding=funding), "5m", loop, commit_records=commit_records)


def links(records: Sequence[Record]) -> list[tuple[int, str, bytes]]:
    return [(record.seq, record.digest, record.covered) for record in records]


def run_in_pieces(make: Build, patience: Callable[[int], int]) -> tuple[State, list[Record], int]:
    """Cancel the run at its n-th check, n = patience(piece); go on from the stored bytes with everything else new."""
    journal, pieces = MemoryJournal(), 0
    while True:
        left = patience(pieces)
        pieces += 1
        script = make()
        stored = journal.latest_state()
        state = first_state(script) if stored is None else read_state(stored[1])

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        try:
            state = asyncio.run(replay(script, journal, state, Watch(stop=stop)))
        except RunCancelled:
            journal = MemoryJournal(journal)
            continue
        return state, list(journal.records()), pieces


# The same digest ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(*range(12)))
def test_a1_the_size_of_a_transaction_does_not_show(seed: int) -> None:
    whole = play(with_decisions(seed))
    for commit_records in (1, 2, 7, 10_000):
        state, journal, _ = play(with_decisions(seed, commit_records))
        assert state.prev_digest == whole[0].prev_digest
        assert links(list(journal.records())) == links(list(whole[1].records()))


@pytest.mark.parametrize("seed", seeds(*range(20, 60), quick=2))
def test_a1_a_run_stopped_again_and_again_ends_in_the_same_records(seed: int) -> None:
    """A1, P18: cancelled at every k-th check and resumed from stored bytes, a planned run is the same run."""
    expected_state, expected, _ = play(with_decisions(seed))
    records = list(expected.records())
    pieces = [stopped_and_resumed(seed, every, expected_state, records) for every in (1, 2, 5)]
    assert max(pieces) > 1 or len(records) <= 3  # a run with hardly an act has no place to stop at


def stopped_and_resumed(seed: int, every: int, expected_state: State, expected: list[Record]) -> int:
    commit_records = 1 if every == 1 else 3
    state, records, pieces = run_in_pieces(lambda: with_decisions(seed, commit_records), lambda piece: every + piece)
    assert state.prev_digest == expected_state.prev_digest
    assert links(records) == links(expected)
    assert codec.dumps(state) == codec.dumps(expected_state)
    return pieces


@pytest.mark.parametrize("policy", ["policy/random", "policy/momentum", "policy/sma_cross", "policy/mean_reversion"])
@pytest.mark.parametrize("seed", seeds(3, 4, quick=1))
def test_a1_a_policy_stopped_again_and_again_ends_in_the_same_records(policy: str, seed: int) -> None:
    expected_state, expected, _ = play(with_policy(seed, policy))
    state, records, _ = run_in_pieces(lambda: with_policy(seed, policy, 2), lambda piece: 1 + piece)
    assert state.prev_digest == expected_state.prev_digest
    assert links(records) == links(list(expected.records()))


@pytest.mark.parametrize("every", [1, pytest.param(2, marks=pytest.mark.proof), 9])
def test_a1_a_model_run_stopped_again_and_again_ends_in_the_same_records(every: int) -> None:
    """A1: at every tick a model that hangs on each character of its prompt; stopped after each, it sees the same."""
    expected_state, expected, ledger = play(with_model())
    state, records, pieces = run_in_pieces(with_model, lambda piece: every)
    assert pieces >= 40 // every
    assert links(records) == links(list(expected.records()))
    assert state.prev_digest == expected_state.prev_digest
    assert list(fills(ledger.receipts))
    assert {"model_error", "no_decision", "multiple_proposals"} & set(ledger.noops)


class Stumbling(DecisionFile):
    """A file of decisions that fails once at a chosen tick, in the middle of it."""

    fails_at = -1

    async def decide(self, observation: Any, judge: Any) -> Any:
        if observation.at == self.fails_at:
            raise OSError("the disk is full")
        return await super().decide(observation, judge)


@pytest.mark.parametrize("seed", seeds(*range(40, 52)))
def test_a1_a_failure_inside_a_tick_leaves_a_state_to_go_on_from(seed: int) -> None:
    """A1: a span and the acting tick after it belong together: if the tick fails, neither is half kept."""
    whole = with_decisions(seed)
    expected = links(list(play(whole)[1].records()))
    stumbling = Stumbling(whole.ports.decider.proposals)  # type: ignore[attr-defined]
    script = dataclasses.replace(whole, ports=dataclasses.replace(whole.ports, decider=stumbling), commit_records=3)
    acting = [at for at in stumbling.proposals if at < whole.to_at]
    for place in {0, len(acting) // 2, len(acting) - 1}:
        stumbling.fails_at = acting[place]
        journal = MemoryJournal()
        try:
            asyncio.run(replay(script, journal, first_state(script), Watch()))
        except OSError:
            stumbling.fails_at = -1
            stored = journal.latest_state()
            state = first_state(script) if stored is None else read_state(stored[1])
            asyncio.run(replay(script, journal, state, Watch()))
        assert links(list(journal.records())) == expected


@pytest.mark.parametrize("seed", seeds(*range(60, 72)))
def test_p15_the_order_in_which_symbols_are_listed_does_not_show(seed: int) -> None:
    case = random_case(seed)
    if len(case.bars) < 2:
        case = random_case(63)
    digests = set()
    for turned in (False, True):
        symbols = sorted(case.bars, reverse=turned)
        bars = {symbol: case.bars[symbol] for symbol in symbols}
        case.skill["context"]["symbols"] = symbols
        market = make_market(bars, interval_name(case.base_ms), case.funding, case.marks)
        decisions = DecisionFile({at: (proposal,) for at, proposal in case.decisions.items()})
        digests.add(play(build(request_of(case), market, interval_name(case.base_ms), decisions))[0].prev_digest)
    assert len(digests) == 1


def test_a_kept_prompt_and_a_forgotten_one_give_the_same_digest() -> None:
    kept, forgotten = play(with_model()), play(with_model(prompts=False))
    assert kept[0].prev_digest == forgotten[0].prev_digest
    extras = [codec.loads(record.extra) for record in forgotten[1].records() if record.kind == "tick"]
    assert all(extra["prompt"] is None for extra in extras)
    assert codec.loads(next(kept[1].records()).extra)["prompt"]


def test_a_run_that_is_over_is_not_run_again() -> None:
    script = with_decisions(5)
    state, journal, _ = play(script)
    again = asyncio.run(replay(script, MemoryJournal(journal), read_state(codec.plain(state)), Watch()))
    assert codec.dumps(again) == codec.dumps(state)


def test_one_different_decision_gives_another_digest() -> None:
    script = with_decisions(5)
    decider: Any = script.ports.decider
    at, (first, *_) = next(iter(decider.proposals.items()))
    changed = DecisionFile({**decider.proposals, at: ({**first, "reason": "for another reason"},)})
    other = dataclasses.replace(script, ports=dataclasses.replace(script.ports, decider=changed))
    assert play(script)[0].prev_digest != play(other)[0].prev_digest


# What the records say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(*range(80, 95)))
def test_records_chain_without_a_gap_and_cover_every_tick_and_bar_once(seed: int) -> None:
    script = with_decisions(seed)
    _, journal, ledger = play(script)
    records = list(journal.records())
    prev = GENESIS
    ticks: list[int] = []
    period = int(script.tick_at[1] - script.tick_at[0]) if len(script.tick_at) > 1 else BASE
    for seq, record in enumerate(records):
        check(record, seq, prev)
        prev = record.digest
        body = codec.loads(record.covered)
        if record.kind == "span":
            ticks.extend(range(record.tick_at, body["until_at"] + 1, period))
            assert body["ticks"] == (body["until_at"] - record.tick_at) // period + 1
        elif record.kind == "tick":
            ticks.append(record.tick_at)
    assert ticks == script.tick_at.tolist()
    assert [at for at, _ in points(ledger.equity)] == (script.tape.open_at + script.tape.interval_ms).tolist()
    assert ledger.ticks == len(ticks)


@pytest.mark.parametrize("seed", seeds(*range(80, 95)))
def test_spans_end_at_acting_ticks_and_at_midnight_and_nowhere_else(seed: int) -> None:
    script = with_decisions(seed)
    _, journal, _ = play(script)
    records = [record for record in journal.records() if record.kind != "close"]
    wanted = {at for at, proposals in script.ports.decider.proposals.items() if proposals}  # type: ignore[attr-defined]
    ruined_after = min(
        (record.tick_at for record in records if record.kind == "span" and codec.loads(record.covered)["flags"]),
        default=script.to_at,
    )
    for record, after in zip(records, [*records[1:], None], strict=True):
        if record.kind == "tick":
            assert record.tick_at in wanted
            continue
        body = codec.loads(record.covered)
        assert record.tick_at // DAY_MS == body["until_at"] // DAY_MS
        assert not any(record.tick_at <= at <= body["until_at"] for at in wanted if at < ruined_after)
        if after is not None:
            assert (
                after.kind == "tick"
                or after.tick_at % DAY_MS == 0
                or after.tick_at // DAY_MS > record.tick_at // DAY_MS
            )


class SteppingCourse(PerpCourse):
    """A course that never takes the one pass from an order to the next act."""

    def advance_past_fill(self, world: Any, start: int, choose_stop: Callable[[Any], int]) -> None:
        return None


@pytest.mark.parametrize("seed", seeds(*range(95, 115)))
@pytest.mark.parametrize("make", [with_decisions, with_policy])
def test_one_pass_from_an_order_to_the_next_act_gives_the_records_of_several_steps(
    seed: int, make: Callable[[int], PerpCourse]
) -> None:
    course = make(seed)
    steps = SteppingCourse(**{field.name: getattr(course, field.name) for field in dataclasses.fields(course)})
    (state, journal, _), (expected_state, expected_journal, _) = play(course), play(steps)
    assert [record.covered for record in journal.records()] == [record.covered for record in expected_journal.records()]
    assert codec.dumps(state) == codec.dumps(expected_state)


@pytest.mark.parametrize("seed", seeds(*range(95, 110)))
def test_receipts_stand_in_the_record_of_the_tick_they_came_before(seed: int) -> None:
    """What the world did by a tick is in the record that ends at it, whether the replay leapt or asked."""
    for planned in (True, False):
        _, journal, _ = play(with_decisions(seed, planned=planned))
        until = 0
        for record in journal.records():
            body = codec.loads(record.covered)
            ends = body.get("until_at", record.tick_at)
            for receipt in body["receipts"]:
                if receipt["kind"] in ("filled", "funded"):
                    hour = receipt["at"] // HOUR_MS * HOUR_MS if receipt["kind"] == "funded" else receipt["at"]
                    assert until <= hour < ends, (record.kind, receipt)
            # a range may end inside a bar: the bar is consumed, and its point lies after the end
            late = BASE - 1 if record.kind == "close" else 0
            assert all(until < at <= ends + late for at, _ in points(body["equity"]))
            until = ends


def test_the_closing_record_holds_what_came_after_the_last_tick() -> None:
    script = with_policy(7, "policy/buy_and_hold")
    state, journal, _ = play(script)
    last = list(journal.records())[-1]
    body = codec.loads(last.covered)
    assert (last.kind, last.tick_at, last.digest) == ("close", script.to_at, state.prev_digest)
    after_last = script.tape.open_at[script.tape.open_at >= script.tick_at[-1]] + script.tape.interval_ms
    assert [at for at, _ in points(body["equity"])] == after_last.tolist()
    assert body["after"]["equity_usd"] == list(points(body["equity"]))[-1][1]


def test_closing_at_the_end_sells_everything_at_the_last_close_without_slippage() -> None:
    rows = [(MIDNIGHT + place * BASE, 100.0, 101.0, 99.0, 100.0 + place) for place in range(-60, 12)]
    request = PerpRequest(
        plain_skill(["SOL"]), MIDNIGHT, MIDNIGHT + 12 * BASE, model="policy/buy_and_hold", close_at_end=True
    )
    state, _, ledger = play(build(request, make_market({"SOL": rows})))
    out = list(fills(ledger.receipts))[-1]
    assert (out["reason"], out["side"], out["price"], out["slippage_usd"], out["liquidity"]) == (
        "end",
        "sell",
        "111",
        "0",
        "taker",
    )
    assert state.world.positions == {}
    assert list(points(ledger.equity))[-1][1] == codec.plain(state.world.cash)
    assert out["at"] == MIDNIGHT + 11 * BASE


def test_closing_at_the_end_costs_its_fee_also_where_the_last_bars_are_missing() -> None:
    rows = [(MIDNIGHT + place * BASE, 100.0, 101.0, 99.0, 100.0) for place in range(-60, 10)]
    request = PerpRequest(
        plain_skill(["SOL"]), MIDNIGHT, MIDNIGHT + 12 * BASE, model="policy/buy_and_hold", close_at_end=True
    )
    course = build(request, make_market({"SOL": rows}))
    state, _, ledger = play(course)
    assert state.world.positions == {}
    assert list(points(ledger.equity))[-1] == (course.to_at, codec.plain(state.world.cash))
    metrics = compute(ledger.outcome(MIDNIGHT, course.to_at, BASE, course.initial_usd), 0)
    lost = metrics["total_fees_usd"] + metrics["total_slippage_usd"]
    assert metrics["total_return_pct"] == pytest.approx(-100 * lost / float(course.initial_usd))


def test_p16_a_run_that_never_acts_keeps_its_equity() -> None:
    """P16: one span a day, and the initial equity at every bar."""
    _, journal, ledger = play(with_policy(9, "policy/hold"))
    assert {record.kind for record in journal.records()} == {"span", "close"}
    assert len({usd for _, usd in points(ledger.equity)}) == 1
    assert (ledger.proposed, ledger.receipts) == (0, [])


def test_five_failures_in_a_row_end_the_run_and_it_can_go_on() -> None:
    failing = True

    def reply(request: ModelRequest) -> Line:
        return TransientError("503") if failing else calls(TERMINAL, action="no_op", reason="calm")

    journal, script = MemoryJournal(), with_model(reply)
    with pytest.raises(TransientError, match="5 times in a row; last: 503"):
        asyncio.run(replay(script, journal, first_state(script), Watch()))
    assert list(journal.records()) == []
    failing = False
    state = asyncio.run(replay(with_model(reply), journal, first_state(script), Watch()))
    assert not any(codec.loads(record.covered)["flags"] for record in journal.records())
    assert (state.model_errors, state.tick_at) == (0, script.to_at)


def test_a_resumed_run_asks_again_at_the_ticks_at_which_the_model_failed_last() -> None:
    asked, failing = 0, True

    def reply(request: ModelRequest) -> Line:
        nonlocal asked
        asked += 1
        is_up = asked in (1, 3) or not failing
        return calls(TERMINAL, action="no_op", reason="calm") if is_up else TransientError("503")

    journal, script = MemoryJournal(), with_model(reply)
    with pytest.raises(TransientError, match="5 times in a row"):
        asyncio.run(replay(script, journal, first_state(script), Watch()))
    flags = [codec.loads(record.covered)["flags"] for record in journal.records()]
    assert flags == [[], ["model_error"], []]  # a failure before an answer is kept: the run went on from it
    failing = False
    stored = journal.latest_state()
    assert stored is not None
    asyncio.run(replay(with_model(reply), journal, read_state(stored[1]), Watch()))
    ticks = [record for record in journal.records() if record.kind == "tick"]
    assert [record.tick_at for record in ticks] == script.tick_at.tolist()
    assert not any(codec.loads(record.covered)["flags"] for record in ticks[3:])


def test_a_failure_at_the_last_tick_is_stored_with_the_end_of_the_run() -> None:
    last = len(with_model(lambda request: TransientError("503")).tick_at)
    asked = 0

    def reply(request: ModelRequest) -> Line:
        nonlocal asked
        asked += 1
        return TransientError("503") if asked == last else calls(TERMINAL, action="no_op", reason="calm")

    _, journal, ledger = play(with_model(reply))
    assert ledger.noops == {"plain": last - 1, "model_error": 1}
    assert next(reversed(list(journal.records()))).kind == "close"


def test_four_failures_in_a_row_do_not_end_the_run() -> None:
    asked = 0

    def reply(request: ModelRequest) -> Line:
        nonlocal asked
        asked += 1
        return calls(TERMINAL, action="no_op", reason="calm") if asked % 5 == 0 else TransientError("503")

    _, _, ledger = play(with_model(reply))
    assert ledger.noops == {"model_error": 32, "plain": 8}


def test_paid_answers_are_committed_one_by_one_and_free_ones_together() -> None:
    def commits(price: Decimal | None) -> int:
        calm = dataclasses.replace(calls(TERMINAL, action="no_op", reason="calm"), cost_usd=price)
        return play(with_model(lambda request: calm))[1].commits

    assert commits(Decimal("0.01")) == commits(None) == 41
    assert commits(Decimal(0)) == 6


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    play(with_decisions(3), Watch(progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("policy", ["policy/random", "policy/momentum", "policy/sma_cross", "policy/buy_and_hold"])
@pytest.mark.parametrize("seed", [3, 11, 12])
def test_a_policy_and_the_file_of_its_own_decisions_give_the_same_fills(policy: str, seed: int) -> None:
    script = with_policy(seed, policy)
    _, journal, ledger = play(script)
    lines = []
    for record in journal.records():
        if record.kind == "tick":
            for proposal in codec.loads_exact(record.covered)["proposals"]:
                lines.append(
                    codec.dumps({"tick_at": iso(record.tick_at), "proposal": codec.number_fragments(proposal)})
                )
    decisions = DecisionFile.read(b"\n".join(lines), "decisions", set(script.tick_at.tolist()), DECISION)
    state, _, again = play(dataclasses.replace(script, ports=dataclasses.replace(script.ports, decider=decisions)))
    assert codec.dumps(again.receipts) == codec.dumps(ledger.receipts)
    assert codec.plain(again.equity) == codec.plain(ledger.equity)
    assert state.prev_digest == list(journal.records())[-1].digest


def test_ticks_are_the_multiples_of_the_period_inside_the_range() -> None:
    hour = HOUR_MS
    assert ticks_between(hour, 3 * hour, hour).tolist() == [hour, 2 * hour]
    assert ticks_between(hour + 1, 3 * hour, hour).tolist() == [2 * hour]
    assert ticks_between(hour, hour, hour).tolist() == []


@pytest.mark.parametrize("seed", seeds(*range(110, 122)))
def test_p20_the_ledger_filled_on_the_way_is_the_one_read_from_the_stored_records(seed: int) -> None:
    """P20: the metrics of a run are those of its records, also for a run that was stopped and went on."""
    script, journal, ledger = with_decisions(seed), MemoryJournal(), PerpLedger()
    asyncio.run(replay(script, journal, first_state(script), Watch(), ledger))
    stored = read_ledger(journal.records())
    assert codec.dumps([ledger.receipts, ledger.equity]) == codec.dumps([stored.receipts, stored.equity])
    for name in ("ticks", "asked", "proposed", "accepted", "rejections", "noops", "cost_usd"):
        assert getattr(ledger, name) == getattr(stored, name), name
    start, interval = int(script.tick_at[0]), script.tape.interval_ms
    found = [compute(one.outcome(start, script.to_at, interval, script.initial_usd), 0) for one in (ledger, stored)]
    assert codec.plain(found[0]) == codec.plain(found[1])
