"""The queue on both databases: which worker gets a run, recovery of lost runs, and no write without the lease."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import text

from history_check import check
from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.store import events, sqlite
from pitboss.store.budgets import Budgets
from pitboss.store.database import open_database
from pitboss.store.import_run import insert_run
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import MOST_REQUEUES, STALE_MS, QueueDepth
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained, state_after


def enqueue(bench, count=1, **arguments):
    return bench.queue.enqueue([bench.job(**arguments) for _ in range(count)])


def told(bench, run_id):
    return [(event.kind, event.epoch) for event in events.read_events(bench.database, run_id)]


def finish(bench, lease, count=2):
    records = chained(count)
    journal = StoredJournal(bench.database, lease.run_id, lease.epoch, logged=True)
    bench.runs.set_status(lease.run_id, "running", lease.epoch)
    bench.commit(journal, records)
    bench.runs.set_status(lease.run_id, "computing_metrics", lease.epoch)
    bench.runs.finish(lease.run_id, lease.epoch, digest=records[-1].digest, metrics={}, baselines={})


def test_a_queued_run_is_claimed_worked_on_and_completed_and_its_history_says_so(bench):
    (run_id,) = enqueue(bench, owner="ada", study_id="s1", build="b1")

    lease = bench.queue.claim("w1", build="b1")
    assert lease is not None
    assert (lease.run_id, lease.epoch, lease.run.params) == (run_id, 1, {"seed": 0})
    finish(bench, lease)

    run = bench.runs.get(run_id)
    assert (run.status, run.owner, run.study_id, run.build, run.worker) == ("complete", "ada", "s1", "b1", "w1")
    assert told(bench, run_id) == [("enqueued", 0), ("claimed", 1), ("committed", 1), ("complete", 1)]
    assert check(events.read_events(bench.database), [run_id]).violations == []
    assert verify_run(bench.database, run_id) == []


def test_an_empty_queue_gives_nothing(bench):
    assert bench.queue.claim("w1") is None
    assert bench.queue.enqueue([]) == []


def test_a_run_created_for_the_foreground_is_not_claimed_by_workers(bench):
    bench.queued()
    bench.running()

    assert bench.queue.claim("w1") is None
    bench.at += 10 * STALE_MS
    assert bench.queue.sweep().requeued == []
    assert bench.queue.depth() == QueueDepth(0, 0, 0)


def test_the_highest_priority_goes_first_and_then_who_has_waited_longest(bench):
    wanted = []
    for priority in (0, 5, 0, 5, -1):
        bench.at += 1
        wanted += [(-priority, bench.at, run_id) for run_id in enqueue(bench, priority=priority)]

    got = [bench.queue.claim("w1").run_id for _ in wanted]

    assert got == [run_id for _, _, run_id in sorted(wanted)]


def test_a_run_is_taken_only_by_the_build_that_made_it(bench):
    (pinned,) = enqueue(bench, build="b1")
    assert bench.queue.claim("w1", build="b2") is None

    (free,) = enqueue(bench)
    assert bench.queue.claim("w1", build="b2").run_id == free
    assert bench.queue.claim("w1").run_id == pinned, "one who was told to takes any"


def test_a_user_has_no_more_runs_at_work_than_allowed_and_others_are_not_kept_waiting(bench):
    enqueue(bench, 3, owner="ada", priority=1)
    (other,) = enqueue(bench, owner="bob")

    first, second, third = [bench.queue.claim("w", per_user=2) for _ in range(3)]
    assert (first.run.owner, second.run.owner, third.run_id) == ("ada", "ada", other)
    assert bench.queue.claim("w", per_user=2) is None
    bench.runs.fail(first.run_id, first.epoch, "why")

    assert bench.queue.claim("w", per_user=2).run.owner == "ada"


def test_of_many_workers_each_run_goes_to_exactly_one_and_limits_hold(bench):
    """E1, finding 10."""
    ids = [*enqueue(bench, 10, owner="ada"), *enqueue(bench, 10, owner="bob")]

    def work(number):
        got = []
        while (lease := bench.queue.claim(f"w{number}", per_user=4)) is not None:
            got.append((lease.run_id, lease.epoch))
        return got

    with ThreadPoolExecutor(8) as pool:
        got = [one for many in pool.map(work, range(8)) for one in many]

    assert len(got) == len(set(got)) == 8
    assert {run_id for run_id, _ in got} <= set(ids)
    owners = [bench.runs.get(run_id).owner for run_id, _ in got]
    assert (owners.count("ada"), owners.count("bob")) == (4, 4)
    assert check(events.read_events(bench.database), ids, ended=False).violations == []


def test_a_silent_worker_loses_its_run_which_goes_on_elsewhere_where_it_stopped(bench):
    """E2, E3."""
    (run_id,) = enqueue(bench)
    lease, records = bench.queue.claim("w1", into="running"), chained(4)
    zombie = StoredJournal(bench.database, run_id, lease.epoch, logged=True)
    bench.commit(zombie, records[:2], 0.5)
    bench.at += STALE_MS
    assert bench.queue.sweep().requeued == [], "not yet"
    bench.at += 1
    assert bench.queue.sweep().requeued == [run_id]
    assert bench.queue.sweep().requeued == [], "once is enough"

    for write in (
        lambda: bench.commit(zombie, records[2:3]),
        lambda: bench.runs.heartbeat(run_id, lease.epoch),
        lambda: bench.runs.fail(run_id, lease.epoch, "late"),
        lambda: bench.queue.release(run_id, lease.epoch),
    ):
        with pytest.raises(LeaseLost):
            write()
    assert bench.queue.beat({run_id: lease.epoch}).lost == {run_id}
    assert bench.runs.get(run_id).status == "queued"

    heir = bench.queue.claim("w2", into="running")
    assert heir.epoch > lease.epoch
    journal = StoredJournal(bench.database, run_id, heir.epoch, logged=True)
    assert journal.latest_state()[0] == 2
    asyncio.run(journal.commit(records[2:], state_after(records), 0.9))
    with pytest.raises(LeaseLost):
        bench.commit(zombie, records[2:3])
    bench.runs.fail(run_id, heir.epoch, "enough")

    log = check(events.read_events(bench.database), [run_id], stale_ms=STALE_MS)
    assert (log.violations, log.refused, log.requeues, log.commits) == ([], 5, 1, 2)
    assert log.longest_reclaim_ms == STALE_MS + 1
    assert list(journal.records()) == records


def test_a_copy_of_a_queued_run_is_not_for_workers(bench):
    (run_id,) = enqueue(bench, study_id="s")
    original = bench.queue.claim("w1").run

    insert_run(bench.database, replace(original, id="copy"), [], None)

    bench.at += STALE_MS * 2
    assert bench.queue.sweep().requeued == [run_id]
    copy = bench.runs.get("copy")
    assert (copy.queued_at, copy.worker, copy.study_id, copy.owner) == (None, None, None, "local")


def test_no_write_to_a_run_without_a_lease_is_accepted(bench):
    (run_id,) = enqueue(bench)

    with pytest.raises(LeaseLost):
        bench.commit(StoredJournal(bench.database, run_id, 0), chained(1))

    assert bench.runs.get(run_id).progress == 0


def test_a_run_that_was_lost_keeps_its_place_before_all_that_came_after_it(bench):
    (first,) = enqueue(bench)
    lease = bench.queue.claim("w1")
    bench.at += 1
    later = enqueue(bench, 5)
    bench.at += STALE_MS
    bench.queue.sweep()

    again = bench.queue.claim("w2")
    assert again.run_id == first
    bench.queue.release(first, again.epoch)
    assert bench.queue.claim("w2").run_id == first
    assert bench.queue.claim("w2").run_id == later[0]
    assert lease.epoch == 1


def test_a_sign_of_life_keeps_the_lease_and_shows_who_should_stop(bench):
    ids = enqueue(bench, 3)
    leases = {lease.run_id: lease.epoch for lease in [bench.queue.claim("w") for _ in ids]}
    bench.runs.request_cancel(ids[1])
    bench.runs.delete(ids[2], force=True)
    for _ in range(3):
        bench.at += STALE_MS - 1
        beat = bench.queue.beat(leases)
        assert (beat.lost, beat.cancelled) == ({ids[2]}, {ids[1]})
        assert bench.queue.sweep().requeued == []
    assert bench.queue.beat({}).lost == frozenset()


def test_a_run_that_takes_every_worker_down_ends_in_error_with_the_cause(bench):
    (run_id,) = enqueue(bench)
    for attempt in range(MOST_REQUEUES + 1):
        lease = bench.queue.claim(f"w{attempt}")
        assert lease is not None
        bench.at += STALE_MS + 1
        swept = bench.queue.sweep()
        assert (swept.requeued, swept.failed) == (([run_id], []) if attempt < MOST_REQUEUES else ([], [run_id]))

    run = bench.runs.get(run_id)
    assert run.status == "error"
    assert "lost 4 times" in run.error_text
    assert "worker w3 sent no heartbeat for 20 s at 0%" in run.error_text
    assert bench.queue.claim("w9") is None
    with pytest.raises(LeaseLost):
        bench.runs.heartbeat(run_id, lease.epoch)
    assert check(events.read_events(bench.database), [run_id], stale_ms=STALE_MS).violations == []


def test_the_count_of_lost_workers_starts_again_when_the_run_has_made_progress_since(bench):
    (run_id,) = enqueue(bench)
    records = chained(2 * MOST_REQUEUES + 1)

    def lose(stored, released=False):
        """A worker commits up to this many records and is lost; with `released` it exits in order, and the next one is."""
        lease = bench.queue.claim("w", into="running")
        journal = StoredJournal(bench.database, run_id, lease.epoch, logged=stored % 2 == 0)
        known = 0 if journal.latest_state() is None else journal.latest_state()[0]
        if stored > known:
            asyncio.run(journal.commit(records[known:stored], state_after(records[:stored]), 0.5))
        if released:
            bench.queue.release(run_id, lease.epoch, "drained")
            bench.queue.claim("w", into="running")
        bench.at += STALE_MS + 1
        return bench.queue.sweep()

    for stored in range(1, len(records)):
        assert lose(stored, released=stored == 3).requeued == [run_id]
        assert bench.runs.get(run_id).requeues == 1, "the first loss since its last progress"
    for count in range(2, MOST_REQUEUES + 1):
        assert lose(0).requeued == [run_id]
        assert bench.runs.get(run_id).requeues == count
    assert lose(0).failed == [run_id], "it stands still: its workers are lost at the same record"
    assert "lost 4 times without progress" in bench.runs.get(run_id).error_text


def test_a_run_that_broke_off_can_be_queued_again_and_its_count_begins_anew(bench):
    (run_id,) = enqueue(bench)
    lease = bench.queue.claim("w1")
    with pytest.raises(UserError, match="is loading"):
        bench.queue.enqueue_again(run_id)
    bench.runs.fail(run_id, lease.epoch, "budget")

    bench.queue.enqueue_again(run_id, priority=3)

    run = bench.runs.get(run_id)
    assert (run.status, run.requeues, run.error_text, run.finished_at, run.priority) == ("queued", 0, None, None, 3)
    finish(bench, bench.queue.claim("w2"))
    assert check(events.read_events(bench.database), [run_id]).violations == []


def test_a_worker_that_leaves_gives_its_run_back_and_that_does_not_count(bench):
    (run_id,) = enqueue(bench)
    for _ in range(MOST_REQUEUES + 2):
        lease = bench.queue.claim("w1")
        bench.queue.release(run_id, lease.epoch, "drained")
    assert bench.runs.get(run_id).requeues == 0

    assert bench.queue.depth() == QueueDepth(1, 0, 0)
    assert bench.queue.claim("w1") is not None
    assert bench.queue.depth() == QueueDepth(0, 0, 1)


@pytest.mark.parametrize("how", ["queued", "held", "lost", "released"])
def test_a_cancel_is_final_wherever_the_run_is(bench, how):
    """Q5."""
    (run_id,) = enqueue(bench)
    if how == "queued":
        assert bench.runs.request_cancel(run_id) == "cancelled"
    else:
        lease = bench.queue.claim("w1")
        assert bench.runs.request_cancel(run_id) == "loading"
        if how == "held":
            assert bench.queue.beat({run_id: lease.epoch}).cancelled == {run_id}
            bench.runs.set_status(run_id, "cancelled", lease.epoch)
        elif how == "released":
            bench.queue.release(run_id, lease.epoch)
        else:
            bench.at += STALE_MS + 1
            assert bench.queue.sweep().cancelled == [run_id]
    assert bench.runs.get(run_id).status == "cancelled"
    assert bench.queue.claim("w2") is None
    assert check(events.read_events(bench.database), [run_id]).violations == []


def test_a_person_takes_a_run_out_of_the_queue_and_away_from_a_worker(bench):
    (run_id,) = enqueue(bench)
    lease = bench.queue.claim("w1")

    epoch = bench.runs.claim(run_id, into="running")

    assert bench.queue.beat({run_id: lease.epoch}).lost == {run_id}
    bench.at += STALE_MS * 5
    assert bench.queue.sweep().requeued == []
    bench.runs.fail(run_id, epoch, "why")
    assert check(events.read_events(bench.database), [run_id]).violations == []


def test_a_damaged_row_takes_no_worker_down_and_stays_damaged(bench):
    broken, lost, sound = (enqueue(bench)[0] for _ in range(3))
    leases = {lease.run_id: lease for lease in [bench.queue.claim("w") for _ in range(2)]}
    bench.queue.release(broken, leases[broken].epoch)
    bench.at += STALE_MS + 1
    with bench.database.write() as connection:
        connection.execute(text(f"UPDATE runs SET ticks = 9 WHERE id IN ('{broken}', '{lost}')"))

    assert bench.queue.sweep().requeued == []
    assert bench.queue.claim("w").run_id == sound
    assert bench.queue.claim("w") is None
    assert sorted(bench.runs.listing().damaged) == sorted([broken, lost])


def test_a_row_that_cannot_even_be_read_is_passed_by(file_bench):
    bench = file_bench
    broken, lost, sound = (enqueue(bench)[0] for _ in range(3))
    leases = {lease.run_id: lease for lease in [bench.queue.claim("w") for _ in range(2)]}
    bench.queue.release(broken, leases[broken].epoch)
    bench.at += STALE_MS + 1
    with bench.database.write() as connection:
        connection.execute(text(f"UPDATE runs SET model = CAST(x'ff' AS TEXT) WHERE id IN ('{broken}', '{lost}')"))

    assert bench.queue.sweep().requeued == []
    assert bench.queue.claim("w").run_id == sound
    assert bench.queue.claim("w") is None


def test_a_database_that_takes_no_writes_is_reported_and_not_taken_for_an_empty_queue(file_bench):
    bench = file_bench
    ids = enqueue(bench, 20)
    with bench.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")

    with pytest.raises(UserError, match="cannot be written"):
        bench.queue.claim("w")
    with bench.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only=OFF")
    assert bench.runs.count() == {"queued": len(ids)}


def test_a_worker_finds_out_what_it_has_after_a_claim_whose_answer_was_lost(bench):
    enqueue(bench, 2)
    mine, other = bench.queue.claim("w1"), bench.queue.claim("w2")

    assert [(lease.run_id, lease.epoch) for lease in bench.queue.leases_of("w1")] == [(mine.run_id, mine.epoch)]
    assert [lease.run_id for lease in bench.queue.leases_of("w2")] == [other.run_id]


def test_an_end_whose_answer_was_lost_is_written_once(bench):
    (run_id,) = enqueue(bench)
    lease = bench.queue.claim("w1")
    finish(bench, lease)
    before = bench.runs.get(run_id)
    bench.at += 5
    digest = before.digest

    bench.runs.finish(run_id, lease.epoch, digest=digest, metrics={}, baselines={}, wall_s=9.0)

    assert bench.runs.get(run_id) == before
    assert [kind for kind, _ in told(bench, run_id)].count("complete") == 1


def test_a_whole_study_is_queued_at_once_or_not_at_all(bench):
    jobs = [bench.job(study_id="s", reserve_usd=Decimal("0.40")) for _ in range(12)]

    with pytest.raises(BudgetExceeded, match=r"may spend \$4 a day"):
        bench.queue.enqueue(jobs, Decimal(4))
    assert bench.runs.count(study_id="s") == {}

    ids = bench.queue.enqueue(jobs[:10], Decimal(4))
    assert [run.id for run in bench.runs.listing(study_id="s").runs] == sorted(ids)
    assert bench.runs.count(study_id="s") == {"queued": 10}
    assert Budgets(bench.database).get("local").reserved_usd == 4


def test_the_database_and_not_the_worker_says_what_time_it_is(address, make_bench):
    """A worker whose clock is a day off neither loses its run nor takes another's."""
    with open_database(address) as database:
        bench = make_bench(database)
        database.clock = None if database.journal_mode is None else sqlite.now
        bench.at -= 10**9  # what this worker believes
        (run_id,) = enqueue(bench)
        lease = bench.queue.claim("w1")
        assert lease is not None
        assert bench.queue.sweep().requeued == []
        bench.commit(StoredJournal(database, run_id, lease.epoch), chained(1))
        assert bench.queue.sweep().requeued == []
        run = bench.runs.get(run_id)
        assert run.created_at == bench.at
        assert run.heartbeat_at > bench.at + 10**8


@pytest.mark.parametrize("per_user", [None, 2])
def test_the_next_run_is_found_by_its_index_and_not_by_sorting_the_queue(file_bench, per_user):
    bench = file_bench
    query = bench.queue._next(bench.at, per_user, "b1", set())
    said = str(query.compile(bench.database.engine, compile_kwargs={"literal_binds": True}))

    with bench.database.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {said}")]

    assert "ix_runs_queue" in plan[0]
    assert not any("ORDER BY" in step for step in plan)
