"""Pruning: old runs go, what kept runs need stays, and what was spent stays known."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from sqlalchemy import func, select, text

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.core.ports import ModelReply
from pitboss.store import events
from pitboss.store import sealed_rows as rows
from pitboss.store.answers import Answers
from pitboss.store.prune import candidates, prune
from pitboss.store.schema import metadata, runs
from pitboss.store.spend import spend
from pitboss.store.uncertain_charges import UncertainCharges
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained

MODEL = "groq/m"


def ran(bench, paid=(), saved="0", model=MODEL, count=2, study_id=None):
    """A run that has ended, with the answers that it paid for (key, cost)."""
    bench.at += 1_000
    (run_id,) = bench.queue.enqueue([bench.job(study_id=study_id)])
    modelled(bench, run_id, model)
    lease = bench.queue.claim("w", into="running")
    pay(bench, run_id, paid)
    records = chained(count)
    bench.commit(bench.journal(run_id, lease.epoch), records)
    UncertainCharges(bench.database, run_id, lease.epoch).note(Decimal("0.01"))
    bench.runs.set_status(run_id, "computing_metrics", lease.epoch)
    bench.at += 1_000
    end = {"digest": records[-1].digest, "metrics": {}, "baselines": {}, "saved_usd": Decimal(saved)}
    bench.runs.finish(run_id, lease.epoch, **end)
    return run_id


def modelled(bench, run_id, model):
    """A job of `bench` has one model; these have several."""
    with bench.database.write() as connection:
        rows.change(connection, runs, rows.fetch(connection, runs, {"id": run_id}), {"model": model})


def pay(bench, run_id, paid, model=MODEL):
    answers = Answers(bench.database, bench.now)
    for key, cost in paid:
        usd = None if cost is None else Decimal(cost)
        asyncio.run(answers.put(key * 64, model, run_id, usd, ModelReply("", (), finish_reason="stop")))


def kept_keys(bench):
    with bench.database.read() as connection:
        return {key[0] for (key,) in connection.execute(text("SELECT key FROM answers"))}


def sizes(bench):
    with bench.database.read() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
            if name not in ("past_spend", "budgets")
        }


def test_a_pruned_run_leaves_nothing_but_what_it_cost(bench):
    kept = ran(bench)
    before, spent = sizes(bench), spend(bench.database)
    removed = ran(bench, [("a", "0.10"), ("b", "0.20"), ("c", None)])
    total = spend(bench.database)

    pruned = prune(bench.database, [removed])

    assert (pruned.runs, pruned.answers) == ([removed], 3)
    assert sizes(bench) == before
    assert [(one.cost_usd, one.uncertain_usd) for one in spent] == [(0, Decimal("0.01"))]
    assert [(one.skill, one.model, one.calls, one.unpriced, one.cost_usd, one.uncertain_usd) for one in total] == [
        ("trend", MODEL, 3, 1, Decimal("0.3"), Decimal("0.02"))
    ]
    assert spend(bench.database) == [replace(total[0], uncertain_usd=Decimal("0.01"))], "what is uncertain goes with it"
    assert verify_run(bench.database, kept) == []
    assert prune(bench.database, [removed]).runs == []


def test_an_answer_stays_while_a_kept_run_may_have_been_given_it(bench):
    removed = ran(bench, [("a", "0.10"), ("b", "0")])
    ran(bench, saved="0.10")
    bench.at += 10
    late = ran(bench, [("c", "0.10")])

    prune(bench.database, [removed, late])

    assert kept_keys(bench) == {"a", "b"}, "what came after the last run that saved ended, nobody was given"


def test_an_answer_goes_that_no_kept_run_can_have_been_given(bench):
    removed = ran(bench, [("a", "0.10"), ("f", "0")])
    ran(bench, saved="0.5", model="groq/other")
    saved_nothing = ran(bench)

    prune(bench.database, [removed])
    assert kept_keys(bench) == {"f"}, "one that cost nothing would not show in what was saved"
    prune(bench.database, [saved_nothing])
    assert kept_keys(bench) == {"f"}, "it is nobody's now, and small"


@pytest.mark.parametrize(("model", "stays"), [(MODEL, True), ("llm/m", True), ("groq/other", False)])
def test_a_run_that_is_at_work_may_be_given_anything_of_its_model(bench, model, stays):
    removed = ran(bench, [("a", "0.10")])
    (run_id,) = bench.queue.enqueue([bench.job()])
    modelled(bench, run_id, model)

    prune(bench.database, [removed])

    assert ("a" in kept_keys(bench)) == stays


def test_a_second_payment_for_the_same_question_goes_with_its_run_and_the_first_stays(bench):
    first = ran(bench, [("a", "0.10")], saved="0.1")
    second = ran(bench, [("a", "0.30")])
    ran(bench, saved="0.1")
    before = sum(line.cost_usd for line in spend(bench.database))

    prune(bench.database, [second])

    assert Answers(bench.database, bench.now).get("a" * 64).run_id == first
    assert Answers(bench.database, bench.now).paid_usd(second) == 0
    assert sum(line.cost_usd for line in spend(bench.database)) == before == Decimal("0.4")


def test_only_ended_runs_go(bench):
    ended = ran(bench)
    working, _ = bench.running()
    (queued,) = bench.queue.enqueue([bench.job()])

    assert prune(bench.database, [queued, working, ended]).runs == [ended]
    assert candidates(bench.database, keep=0) == []


def test_what_goes_is_chosen_by_number_time_status_and_study(bench):
    ids = [ran(bench, study_id=f"s{n % 2}") for n in range(6)]
    cut = bench.runs.get(ids[3]).created_at

    assert candidates(bench.database, keep=4) == ids[1::-1]
    assert candidates(bench.database, before_at=cut) == ids[2::-1]
    assert candidates(bench.database, before_at=cut, keep=2) == ids[:1]
    assert candidates(bench.database, study_id="s1") == ids[5::-2]
    assert candidates(bench.database, keep=0, status="error") == []
    with pytest.raises(UserError, match="no runs are selected"):
        candidates(bench.database)


def test_kept_runs_verify_and_the_store_stays_in_bounds_whatever_was_pruned(bench):
    kept = [ran(bench, [("a", "0.1")]), ran(bench, saved="0.1")]
    before = sizes(bench)
    for _ in range(3):
        many = [ran(bench, [("k", "0.01")]) for _ in range(3)]
        prune(bench.database, many)
    after = sizes(bench)

    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} in ({}, {"answers": 1})
    assert [verify_run(bench.database, run_id) for run_id in kept] == [[], []]
    assert {event.run_id for event in events.read_events(bench.database)} == set(kept)


def stored_bytes(bench):
    """What the database really holds, free pages left out."""
    with bench.database.read() as connection:
        pages, free, size = (
            connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size, pages * size


@pytest.mark.parametrize("at_once", [8, pytest.param(40, marks=pytest.mark.proof)])
def test_the_store_grows_by_the_same_for_every_run_and_pruning_holds_it_there(file_bench, at_once: int):
    bench = file_bench

    def some() -> list[str]:
        return [ran(bench, count=60) for _ in range(at_once)]

    ran(bench, [("a", "0.1")], count=60)
    held, kept = [stored_bytes(bench)[0]], list[str]()
    for _ in range(3):
        kept = some()
        held.append(stored_bytes(bench)[0])
    growth = [after - before for before, after in pairwise(held)]
    print(f"{at_once} runs of 60 records: {growth} bytes, {max(growth) // at_once:,} for a run")
    assert max(growth) < 1.15 * min(growth)

    total = stored_bytes(bench)[1]
    for _ in range(2):  # as many are made as are pruned, again and again
        prune(bench.database, candidates(bench.database, keep=at_once))
        assert [run_id for run_id in kept if verify_run(bench.database, run_id)] == []
        used, file = stored_bytes(bench)
        print(f"kept {at_once}: {used:,} bytes used of {file:,}")
        assert used < held[0] + 1.1 * max(growth)
        kept = some()
        assert stored_bytes(bench)[1] <= total, "what was freed is used again"
    assert [run_id for run_id in kept if verify_run(bench.database, run_id)] == []
    assert len(bench.runs.listing(1_000).runs) == 2 * at_once


def test_spending_is_reported_by_user_skill_model_and_day_to_the_last_digit(bench):
    one = ran(bench, [("a", "0.1"), ("b", "0.1"), ("d", "0.1")])
    bench.at += DAY_MS
    ran(bench, [("c", "0.000000000000000001")])
    first, second = spend(bench.database)

    assert (first.owner, first.calls, first.cost_usd) == ("local", 3, Decimal("0.3"))
    assert (second.day_at - first.day_at, second.cost_usd) == (DAY_MS, Decimal("1E-18"))
    assert spend(bench.database, to_at=second.day_at) == [first]
    assert spend(bench.database, from_at=second.day_at) == [second]
    assert spend(bench.database, owner="ada") == []
    bench.runs.delete(one)
    assert spend(bench.database) == [replace(first, uncertain_usd=Decimal(0)), second]
