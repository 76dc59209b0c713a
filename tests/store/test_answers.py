"""Stored answers: durable when `put` returns, the same for every reader, and changes are detected."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.store.answers import Answers, read_reply, write_reply
from pitboss.store.database import open_database

KEY, CENT = "a" * 64, Decimal("0.01")
REPLY = ModelReply(
    "I hold.",
    (ToolCall("c1", "propose_order", '{"action":"no_op"}'),),
    Usage(900, 30, 500, 10, 5),
    "tool_calls",
    120.5,
    "id-1",
    "m-2",
    "signature",
    "",
)


@contextmanager
def counted(database: Any) -> Iterator[list[int]]:
    """How many transactions were written meanwhile."""
    made, real = [0], database.write_raw

    @contextmanager
    def write(lazily: bool = False) -> Iterator[Any]:
        made[0] += 1
        with real(lazily) as cursor:
            yield cursor

    database.write_raw = write
    try:
        yield made
    finally:
        del database.write_raw


def put(answers: Answers, key: str = KEY, run_id: str = "run1", cost: Decimal | None = CENT) -> None:
    asyncio.run(answers.put(key, "groq/m", run_id, cost, REPLY))


def test_an_answer_is_there_for_another_process_when_put_returns(bench, address):
    put(Answers(bench.database, bench.now))

    with open_database(address) as database:
        reply = Answers(database, bench.now).get(KEY)

    assert reply is not None
    assert (reply.reply, reply.run_id, reply.cost_usd, reply.model) == (REPLY, "run1", CENT, "groq/m")


def test_an_unknown_question_has_no_answer(bench):
    assert Answers(bench.database, bench.now).get(KEY) is None


def test_an_answer_waits_for_others_that_are_under_way_until_the_last_has_come(bench, monkeypatch):
    monkeypatch.setattr("pitboss.store.answers.GATHER_S", 0.1)
    answers = Answers(bench.database, bench.now)

    async def one_after_the_other() -> list[int]:
        first = [asyncio.create_task(answers.put(f"{n:064d}", "m", "run1", CENT, REPLY, more=True)) for n in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        before = list(made)
        await answers.put(f"{3:064d}", "m", "run1", CENT, REPLY)
        await asyncio.gather(*first)
        await answers.put(f"{4:064d}", "m", "run1", CENT, REPLY, more=True)  # nobody comes: it is not kept waiting
        return before

    with counted(bench.database) as made:
        assert asyncio.run(one_after_the_other()) == [0]

    assert made == [2]
    assert all(answers.get(f"{n:064d}") is not None for n in range(5))


def test_answers_that_come_together_share_one_commit(bench):
    answers = Answers(bench.database, bench.now)

    async def together() -> None:
        await asyncio.gather(*[answers.put(f"{n:064d}", "m", "run1", CENT, REPLY) for n in range(256)])

    with counted(bench.database) as made:
        asyncio.run(together())

    assert made == [1]
    assert answers.paid_usd("run1") == Decimal("2.56")
    assert len(list(answers.of_run("run1"))) == 256


def test_the_first_answer_to_a_question_stays_and_the_second_payment_is_counted(bench):
    answers = Answers(bench.database, bench.now)

    put(answers, run_id="first")
    put(answers, run_id="second", cost=Decimal("0.03"))

    reply = answers.get(KEY)
    assert reply is not None
    assert reply.run_id == "first"
    assert (answers.paid_usd("first"), answers.paid_usd("second")) == (CENT, Decimal("0.03"))


def test_two_workers_of_one_run_that_both_paid_for_an_answer_are_both_counted(bench):
    lost, holding = Answers(bench.database, bench.now), Answers(bench.database, bench.now)

    put(lost, cost=CENT)
    put(holding, cost=Decimal("0.03"))

    reply = holding.get(KEY)
    assert reply is not None
    assert reply.cost_usd == CENT
    assert holding.paid_usd("run1") == Decimal("0.04")


def test_an_unknown_cost_stays_unknown_and_counts_nothing(bench):
    answers = Answers(bench.database, bench.now)

    put(answers, cost=None)

    reply = answers.get(KEY)
    assert reply is not None
    assert reply.cost_usd is None
    assert answers.paid_usd("run1") == 0


def test_an_answer_survives_the_run_that_paid_for_it(bench):
    run_id, _ = bench.complete()
    answers = Answers(bench.database, bench.now)
    put(answers, run_id=run_id)

    bench.runs.delete(run_id)

    assert answers.get(KEY) is not None


def test_a_reply_is_stored_although_its_caller_no_longer_waits(bench):
    answers = Answers(bench.database, bench.now)

    async def leave() -> None:
        task = asyncio.create_task(answers.put(KEY, "m", "run1", CENT, REPLY))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())

    assert answers.get(KEY) is not None


def test_one_of_several_that_wait_may_leave(bench):
    answers = Answers(bench.database, bench.now)

    async def leave() -> None:
        leaving, staying = [asyncio.create_task(answers.put(key, "m", "run1", CENT, REPLY)) for key in (KEY, "b" * 64)]
        await asyncio.sleep(0)
        leaving.cancel()
        await staying

    asyncio.run(leave())

    assert answers.get("b" * 64) is not None


@pytest.mark.parametrize("column", ["key", "model", "run_id", "cost_usd", "created_at", "body"])
def test_a_changed_answer_is_never_given(bench, column):
    answers = Answers(bench.database, bench.now)
    put(answers)
    changed = {"created_at": 1, "body": b"x", "key": "c" * 64}.get(column, "9")
    with bench.database.write() as connection:
        connection.execute(text(f"UPDATE answers SET {column} = :changed"), {"changed": changed})

    with pytest.raises(ReplayMismatch, match="changed after it was written"):
        answers.get("c" * 64 if column == "key" else KEY)


def test_a_full_disk_is_reported_to_every_waiter(bench):
    answers = Answers(bench.database, bench.now)

    async def both() -> list[Any]:
        puts = [answers.put(key, "m", "run1", CENT, REPLY) for key in (KEY, "b" * 64)]
        return await asyncio.gather(*puts, return_exceptions=True)

    @contextmanager
    def full(lazily: bool = False) -> Iterator[Any]:
        raise UserError("the disk is full")
        yield

    bench.database.write_raw = full

    assert [str(error) for error in asyncio.run(both())] == ["the disk is full"] * 2


@given(
    said=st.text(st.characters(), max_size=40),
    arguments=st.text(st.characters(), max_size=40),
    tokens=st.integers(0, 10**9),
)
def test_what_is_read_back_is_what_was_said(said: str, arguments: str, tokens: int) -> None:
    reply = ModelReply(said, (ToolCall("i", "t", arguments),), Usage(tokens, 1), "length", 0.5, "p", "m", "s", said)

    assert read_reply(write_reply(reply)) == reply


def test_answers_do_not_wait_for_the_disk_and_the_next_ordinary_commit_does(file_bench):
    answers = Answers(file_bench.database, file_bench.now)
    asyncio.run(answers.put("0" * 64, "m", "run1", CENT, REPLY))
    with file_bench.database.write_raw() as cursor:
        (now,) = cursor.execute("PRAGMA synchronous").fetchone()
    assert now == 2, "FULL again"
    assert answers.get("0" * 64) is not None


def test_a_reply_that_is_only_paid_for_counts_every_time_and_is_never_served(bench):
    answers = Answers(bench.database, bench.now)
    reply = ModelReply("", (), finish_reason="error")
    for _ in range(3):
        asyncio.run(answers.put_paid("a" * 64, "m", "run1", Decimal("0.01"), reply))
    assert answers.paid_usd("run1") == Decimal("0.03")
    assert answers.get("a" * 64) is None
    assert asyncio.run(answers.put("a" * 64, "m", "run1", Decimal("0.01"), reply))
    assert answers.get("a" * 64) is not None


def test_closed_answers_keep_no_file_open_and_can_be_read_again(file_bench):
    put(Answers(file_bench.database, file_bench.now))
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        answers = Answers(file_bench.database, file_bench.now)
        assert answers.get(KEY) is not None
        answers.close()

    assert len(os.listdir("/dev/fd")) == before
    answers.close()
    assert answers.get(KEY) is not None
    answers.close()
