"""`replay/<run id>`: a run's own answers lead to its own digest, and anything else is refused."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from pitboss.agent.loop import ToolLoop
from pitboss.agent.request_policy import RequestPolicy
from pitboss.core.errors import ReplayMismatch, TransientError
from pitboss.core.ports import Message, Model, ModelReply, ModelRequest, ToolCall
from pitboss.core.snapshot import Record
from pitboss.models.replayed import Replayed
from pitboss.models.scripted import ScriptedModel, calls, calls_text, says, together
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, make_market, plain_skill, play

STEP = 300_000
FROM = 1_748_736_000_000
TICKS = 8
ROWS = [(FROM + (n - 60) * STEP, 100.0 + n % 7, 103.0 + n % 7, 98.0 + n % 7, 101.0 + n % 5) for n in range(60 + TICKS)]

OPEN = calls("propose_order", action="open", symbol="SOL", side="long", size_usd=500, leverage=2, reason="up")
HOLD = calls("propose_order", action="no_op", reason="wait")


def script(model: Model, thesis: str = "Rise.", repairs: Literal["none", "beyond"] = "beyond") -> PerpCourse:
    skill = plain_skill(
        ["SOL"],
        model="standin/analyst",
        max_steps=3,
        tools={"built_in": ["get_portfolio", "fetch_recent_bars"]},
        strategy={"mode": "thesis", "thesis": thesis, "avoid": "Nothing."},
    )
    made = build(PerpRequest(skill, FROM, FROM + TICKS * STEP), make_market({"SOL": ROWS}))
    loop = made.ports.decider
    assert isinstance(loop, ToolLoop)
    return replace(
        made, ports=replace(made.ports, decider=replace(loop, model=model, policy=RequestPolicy(repairs=repairs)))
    )


def record_run(replies: Sequence[ModelReply | Exception]) -> tuple[str, list[Record]]:
    remaining = iter(replies)
    state, journal, _ = play(script(ScriptedModel(lambda request: next(remaining, HOLD))))
    return state.prev_digest, list(journal.records())


def replay_digest(records: list[Record], **more: Any) -> str:
    return play(script(Replayed(records, "3f9a"), **more))[0].prev_digest


@pytest.mark.parametrize(
    "replies",
    [
        [OPEN],
        [calls("get_portfolio"), OPEN, says("hm"), HOLD],
        [calls_text("propose_order", "{not json"), HOLD],
        [calls_text("propose_order", '"words"'), calls_text("propose_order", '"{}"'), HOLD],
        [calls_text("propose_order", "[" * 30_000), HOLD],
        [calls_text("get_portfolio", "x" * 20_000), HOLD],
        [calls_text("get_portfolio", "null"), calls_text("get_portfolio", ""), HOLD],
        [calls("nobody_knows", x=1), HOLD],
        [together(OPEN, HOLD)],
        [together(*[calls("get_portfolio")] * 20), HOLD],
        [calls("propose_order", action="open", symbol="SOL", side="long", size_usd=1.25, leverage=2, reason="½ up")],
        [ModelReply("", problem="the provider refused to answer")] * 5,
        [ModelReply("so far", finish_reason="length")] * 5,
        [ModelReply("")] * 5,
        [TransientError("busy"), OPEN],
        [calls("get_portfolio"), TransientError("gone in the middle"), OPEN],
        [says("let me"), says("think"), says('{"action":"no_op"}'), HOLD],
    ],
)
def test_a_replay_ends_in_the_digest_of_its_run(replies: Sequence[ModelReply | Exception]) -> None:
    digest, records = record_run(replies)

    assert replay_digest(records) == digest


def test_a_replay_reads_nothing_but_the_covered_half() -> None:
    digest, records = record_run([OPEN])

    assert replay_digest([replace(record, extra=b"null") for record in records]) == digest


def test_another_prompt_is_a_miss_that_names_the_first_difference() -> None:
    _, records = record_run([OPEN])

    with pytest.raises(ReplayMismatch, match=r"replay/3f9a has no answer .* that of tick 2025-06-01T00:00:00Z"):
        replay_digest(records, thesis="Fall.")


def test_a_tick_after_the_end_of_the_recording_is_a_miss() -> None:
    _, records = record_run([HOLD])

    with pytest.raises(ReplayMismatch, match=r"its last prompt was that of tick 2025-06-01T00:10:00Z"):
        replay_digest(records[:3])


def test_more_answers_than_were_recorded_are_a_miss() -> None:
    _, records = record_run([HOLD])
    model = ScriptedModel(lambda request: HOLD)
    play(script(model))
    first = model.requests[0]
    model = Replayed(records, "3f9a")
    asyncio.run(model.complete(first))
    again = replace(first, messages=(*first.messages, Message("assistant", "", HOLD.calls)))

    with pytest.raises(ReplayMismatch, match="has 1 answers for tick 2025-06-01T00:00:00Z and was asked for number 2"):
        asyncio.run(model.complete(again))


def test_a_run_without_a_model_has_nothing_to_answer_with() -> None:
    skill = plain_skill(["SOL"], model="policy/hold")
    _, journal, _ = play(build(PerpRequest(skill, FROM, FROM + TICKS * STEP), make_market({"SOL": ROWS})))
    request = ModelRequest("s", (Message("user", "u"),), ())

    with pytest.raises(ReplayMismatch, match="decided by a program"):
        asyncio.run(Replayed(journal.records(), "3f9a").complete(request))


def test_a_reply_costs_nothing_and_has_ids_of_its_own() -> None:
    _, records = record_run([OPEN])
    model = ScriptedModel(lambda request: HOLD)
    play(script(model))

    reply = asyncio.run(Replayed(records, "3f9a").complete(model.requests[0]))

    assert (reply.cost_usd, reply.saved_usd, reply.latency_ms) == (0, 0, 0)
    assert isinstance(reply.calls[0], ToolCall)
    assert reply.calls[0].name == "propose_order"
