"""A run's own past: what it caches, that nothing later is in it, and that it is the same after a resume."""

import asyncio
import dataclasses
import hashlib
import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import seeds
from pitboss.agent.loop import ToolLoop
from pitboss.core import codec
from pitboss.core.errors import RunCancelled
from pitboss.core.instant import HOUR_MS, MINUTE_MS, iso, parse_instant
from pitboss.core.ports import ModelRequest
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import GENESIS, Record, seal
from pitboss.models.scripted import Line, ScriptedModel, calls, together
from pitboss.prompt import render
from pitboss.sim.past import DECISIONS, RunPast, was_asked
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tools.history_text import decision_line
from pitboss.tools.registry import permit
from pitboss.tools.toolbox import Toolbox
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state, read_state
from pitboss.venues.perp.intents import DECISION, TERMINAL
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, make_market, plain_skill, play
from pitboss.venues.perp.trades import round_trips
from pitboss.venues.perp.venue import VENUE

BASE = 5 * MINUTE_MS
START = parse_instant("2025-06-03T22:00:00Z")
TOOLS = ["read_my_prior_decisions", "get_pnl_summary", "get_current_position"]


def hashed_reply(request: ModelRequest) -> Line:
    """A model that looks back at every tick, and whose every answer hangs on every character it was told."""
    words = "\x00".join(message.text for message in request.messages)
    mood = int.from_bytes(hashlib.sha256(words.encode()).digest()[:4])
    if request.must_call is None and len(request.messages) == 1:
        return together(calls("read_my_prior_decisions", count=50), calls("get_pnl_summary"))
    if mood % 4 == 0:
        return calls(TERMINAL, action="no_op", symbol="BTC", reason=f"mood {mood}")
    if mood % 4 == 1:
        return calls(TERMINAL, action="close", symbol="BTC", reason=f"mood {mood}")
    action = "open_long" if mood % 2 else "open_short"
    return calls(TERMINAL, action=action, symbol="BTC", size_usd=mood % 3000, leverage=1 + mood % 3, reason=f"m {mood}")


def script(count: int = 40, commit_records: int = 3, mind: Callable[[ModelRequest], Line] = hashed_reply) -> PerpCourse:
    """A model that looks back, on a walk with funding over a midnight."""
    document = plain_skill(tools={"built_in": TOOLS}, max_steps=3, risk={"max_orders_per_hour": 100})
    skill = read_skill(document)
    loop = ToolLoop(
        "scripted/model",
        ScriptedModel(mind),
        PerpPrompts(skill),
        Toolbox(tuple(permit(VENUE.tools(), TOOLS, "write")), RunPast(TERMINAL)),
        DECISION,
        skill.max_steps,
    )
    rows, price = [], 100_000.0
    for place in range(-60, count):
        step = (int.from_bytes(hashlib.sha256(f"{place}".encode()).digest()[:2]) % 401 - 200) * 2.0
        opens, price = price, round(price + step, 1)
        rows.append((START + place * BASE, opens, max(opens, price) + 20, min(opens, price) - 20, price))
    funding = {"BTC": [(hour, 0.0001) for hour in range(START, START + count * BASE, HOUR_MS)]}
    request = PerpRequest(document, START, START + count * BASE)
    return build(request, make_market({"BTC": rows}, funding=funding), "5m", loop, commit_records=commit_records)


def run_in_pieces(make: Callable[[], PerpCourse], patience: int) -> tuple[str, list[Record]]:
    """Stop every `patience` ticks, and go on from the stored bytes with everything else new."""
    journal = MemoryJournal()
    while True:
        made, left = make(), patience
        stored = journal.latest_state()
        state = first_state(made) if stored is None else read_state(stored[1])

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        try:
            ended = asyncio.run(replay(made, journal, state, Watch(stop=stop)))
        except RunCancelled:
            journal = MemoryJournal(journal)
            continue
        return ended.prev_digest, list(journal.records())


def test_an_agent_reads_what_it_decided_at_every_earlier_tick_and_nothing_else() -> None:
    _, journal, _ = play(script())
    records = [record for record in journal.records() if record.kind == "tick"]
    assert len(records) == 40
    for place, record in enumerate(records):
        (result, _), *_ = [
            [call["result"] for call in step["calls"]] for step in codec.loads(record.covered)["steps"] if step["calls"]
        ]
        lines = result.splitlines()
        if not place:
            assert lines == [f"no decision before {iso_of(record)}"]
            continue
        assert [line.split()[0] for line in lines[1:]] == [iso_of(one) for one in reversed(records[:place])]


def iso_of(record: Record) -> str:
    return iso(record.tick_at)


@pytest.mark.parametrize("patience", seeds(1, 7, 2, 19, quick=2))
def test_a_run_that_was_stopped_answers_like_one_that_never_was(patience: int) -> None:
    state, journal, ledger = play(script())
    assert ledger.accepted > 5  # there is a past to tell
    digest, records = run_in_pieces(script, patience)
    assert digest == state.prev_digest
    assert [record.covered for record in records] == [record.covered for record in journal.records()]


def test_the_summary_of_results_is_that_of_the_whole_run() -> None:
    count = 240

    def trading(request: ModelRequest) -> Line:
        """In and out in turn, and a look back at the last tick."""
        if len(request.messages) > 1:
            return calls(TERMINAL, action="no_op", symbol="BTC", reason="done")
        text = request.messages[0].text
        if render.time(START + (count - 1) * BASE) in text.splitlines()[1]:
            return calls("get_pnl_summary")
        action = "open_long" if "no open positions" in text else "close"
        return calls(TERMINAL, action=action, symbol="BTC", size_usd=1_000, leverage=1, reason="in and out")

    _, journal, ledger = play(script(count, mind=trading))
    last = [record for record in journal.records() if record.kind == "tick"][-1]
    before = [receipt for receipt in ledger.receipts if receipt.at < last.tick_at]
    assert len(before) > 450
    (step, *_) = [step for step in codec.loads(last.covered)["steps"] if step["calls"]]
    (told,) = [json.loads(call["result"]) for call in step["calls"] if call["name"] == "get_pnl_summary"]
    trades = round_trips(before)
    everything = told["windows"]["all"]
    assert everything["since"] == iso(START)
    assert everything["closed_trades"] == len(trades)
    assert everything["fills"] == sum(receipt.kind == "filled" for receipt in before)
    assert everything["realised_usd"] == render.amount(sum((trade.pnl_usd for trade in trades), Decimal(0)))


def test_the_same_script_played_twice_begins_without_a_past() -> None:
    made = script()
    first, _, _ = play(made)
    again, _, _ = play(made)
    assert again.prev_digest == first.prev_digest


def test_a_skill_without_tools_keeps_no_past() -> None:
    for tools, kept in (([], False), (["get_pnl_summary"], True)):
        request = PerpRequest(plain_skill(tools={"built_in": tools}, model="standin/analyst"), START, START + 10 * BASE)
        found = build(request, script().market)
        assert (found.past is not None) == kept


# What is kept -----------------------------------------------------------------------------------------------------------


def record(seq: int, receipts: list[Receipt], flags: tuple[str, ...] = ()) -> Record:
    """A small record of a tick."""
    covered = {
        "text": f"held {seq}",
        "flags": list(flags),
        "proposals": [],
        "verdicts": [],
        "steps": [],
        "receipts": receipts,
        "before": {"equity_usd": "10000"},
    }
    return seal(seq, "tick", seq * BASE, GENESIS, covered, {"cost_usd": "0"})


def funded(at: int) -> Receipt:
    return Receipt("funded", at, "BTC", "", {"amount_usd": Decimal("1.50"), "rate": Decimal("0.0001")})


def test_the_newest_two_hundred_decisions_and_all_receipts_are_at_hand() -> None:
    past = RunPast(TERMINAL)
    for seq in range(DECISIONS + 50):
        past.add_receipts([funded(seq * BASE - 1), funded(seq * BASE - 1)])
        past.add_tick(record(seq, []), [], ())
    end = (DECISIONS + 50) * BASE
    assert [one.at // BASE for one in past.decisions(end, 10_000)] == list(range(DECISIONS + 49, 49, -1))
    assert len(past.receipts(end)) == 2 * (DECISIONS + 50)
    assert len(past.receipts(end, 3)) == 3
    assert past.snapshot(10 * BASE, end) is None
    assert past.snapshot(60 * BASE, end)["text"] == "held 60"
    assert past.commands(end, 5) == []


@settings(max_examples=12, deadline=None)
@given(
    told=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60),
    cut=st.integers(0, 60),
    ask=st.integers(0, 61),
    count=st.integers(0, 40),
)
def test_a_past_read_back_from_records_is_the_past_that_was_lived(
    told: list[tuple[int, bool]], cut: int, ask: int, count: int
) -> None:
    records: list[Record] = []
    lived, resumed = RunPast(TERMINAL), RunPast(TERMINAL)
    for seq, (happened, asleep) in enumerate(told):
        before = [funded(seq * BASE - 1) for _ in range(happened)]
        after = [funded(seq * BASE)]
        flags = ("asleep",) if asleep else ()
        records.append(record(seq, [*before, *after], flags))
        if seq == cut:
            resumed.begin(lambda: iter(records), cut)
        for past in (lived, resumed) if seq >= cut else (lived,):
            past.add_receipts(before)
            past.add_tick(records[-1], after, flags)
    if len(told) <= cut:
        resumed.begin(lambda: iter(records), len(records))
    before = ask * BASE
    assert list(resumed.decisions(before, count)) == list(lived.decisions(before, count))
    assert list(resumed.receipts(before, count)) == list(lived.receipts(before, count))
    assert list(resumed.receipts(before)) == list(lived.receipts(before))
    assert resumed.snapshot((ask - 1) * BASE, before) == lived.snapshot((ask - 1) * BASE, before)
    assert all(one.at < before for one in lived.decisions(before, 500))
    assert all(one.at < before for one in lived.receipts(before, 500))
    assert lived.snapshot(before, before) is None


@pytest.mark.parametrize("flag", ["asleep", "ruined", "no_quote"])
def test_a_tick_at_which_no_decider_was_called_is_no_decision(flag: str) -> None:
    skipped, past = record(0, [], (flag,)), RunPast(TERMINAL)
    past.add_tick(skipped, [], (flag,))
    assert list(past.decisions(BASE)) == []
    assert not was_asked(skipped)


def test_what_an_agent_may_read_does_not_hang_on_what_its_answers_cost() -> None:
    _, journal, _ = play(script())
    dear, cheap = RunPast(TERMINAL), RunPast(TERMINAL)
    records = list(journal.records())
    paid = [dataclasses.replace(one, extra=one.extra.replace(b'"cost_usd":"0"', b'"cost_usd":"7"')) for one in records]
    cheap.begin(lambda: records, len(records))
    dear.begin(lambda: paid, len(paid))
    end = START + 40 * BASE
    assert [one.cost_usd for one in dear.decisions(end, 50)] != [one.cost_usd for one in cheap.decisions(end, 50)]
    assert [*map(decision_line, dear.decisions(end, 50))] == [*map(decision_line, cheap.decisions(end, 50))]
