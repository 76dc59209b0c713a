"""The life of a run: legal moves only, leases that fence, ids by their beginning."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import InvariantError, UserError
from pitboss.store.lifecycle import LeaseLost, Status, require_move
from pitboss.testing.journal import chained, state_after

STATUSES = get_args(Status)
LEGAL = {
    ("loading", "running"),
    ("running", "computing_metrics"),
    ("computing_metrics", "complete"),
    *((active, active) for active in ("loading", "running", "computing_metrics")),
    *((before, after) for before in STATUSES[:4] for after in ("error", "cancelled")),
}


def test_a_new_run_is_queued_with_everything_it_was_given(bench):
    run = bench.runs.get(bench.queued())

    assert (run.status, run.progress, run.lease_epoch, run.cancel_requested) == ("queued", 0.0, 0, False)
    assert run.params == {"from": "2025-06-01", "seed": 0}
    assert (run.model, run.data_digest, run.created_at, run.started_at) == ("policy/hold", "d" * 64, bench.at, None)


def test_a_finished_run_shows_how_it_ended(bench):
    run_id, records = bench.complete()
    run = bench.runs.get(run_id)

    assert (run.status, run.progress, run.digest) == ("complete", 1.0, records[-1].digest)
    assert (run.cost_usd, run.wall_s, run.ticks, run.report) == (Decimal("0.1"), 1.5, 3, "reports/one.html")
    assert (run.metrics, run.baselines) == ({"sharpe": 1.25}, {"cash": {"sharpe": None}})
    assert (run.started_at, run.finished_at) == (bench.at, bench.at)


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_only_the_moves_of_the_lifecycle_are_allowed(before, after):
    """Q1."""
    if (before, after) in LEGAL:
        require_move("r", before, after)
    else:
        with pytest.raises(InvariantError, match=f"cannot go from {before} to {after}"):
            require_move("r", before, after)


def test_an_illegal_move_leaves_the_run_as_it_was(bench):
    run_id, epoch = bench.running()

    with pytest.raises(InvariantError, match="cannot go from running to complete"):
        bench.runs.set_status(run_id, "complete", epoch)

    assert bench.runs.get(run_id).status == "running"


@pytest.mark.parametrize("end", ["error", "cancelled"])
def test_a_run_that_broke_off_is_resumed_by_a_claim_with_a_higher_epoch(bench, end):
    run_id, epoch = bench.running()
    if end == "error":
        bench.runs.fail(run_id, epoch, "budget", cost_usd=Decimal("4.20"), ticks=7)
    else:
        bench.runs.request_cancel(run_id)
        bench.runs.set_status(run_id, "cancelled", epoch)
    ended = bench.runs.get(run_id)
    assert ended.finished_at == bench.at
    bench.at += 1000

    resumed = bench.runs.claim(run_id)
    bench.runs.set_status(run_id, "running", resumed)

    run = bench.runs.get(run_id)
    assert resumed == epoch + 1
    assert (run.status, run.error_text, run.finished_at, run.cancel_requested) == ("running", None, None, False)
    assert (run.started_at, run.heartbeat_at) == (bench.at - 1000, bench.at)
    assert (ended.error_text, ended.cost_usd) == (("budget", Decimal("4.2")) if end == "error" else (None, 0))


def test_a_complete_run_cannot_be_claimed(bench):
    run_id, _ = bench.complete()

    with pytest.raises(UserError, match="is complete"):
        bench.runs.claim(run_id)


def test_a_worker_that_lost_its_lease_can_write_nothing_more(bench):
    """E2, Q2."""
    run_id, old = bench.running()
    new = bench.runs.claim(run_id)
    bench.runs.set_status(run_id, "running", new)
    before = bench.runs.get(run_id)

    for write in (
        lambda: bench.runs.heartbeat(run_id, old),
        lambda: bench.runs.set_status(run_id, "computing_metrics", old),
        lambda: bench.runs.fail(run_id, old, "late"),
        lambda: bench.runs.note(run_id, old, ticks=9),
    ):
        with pytest.raises(LeaseLost, match="another worker took this run"):
            write()

    assert bench.runs.get(run_id) == before


def test_a_scan_for_stale_runs_takes_only_those_without_a_recent_sign_of_life(bench):
    run_id, epoch = bench.running()
    bench.at += 20_000

    with pytest.raises(UserError, match="is being worked on"):
        bench.runs.claim(run_id, stale_after_ms=20_000)

    assert bench.runs.claim(run_id, stale_after_ms=19_999) == epoch + 1


def test_of_many_workers_that_want_a_queued_run_exactly_one_gets_it(bench):
    """Finding 10: asking and taking are one step."""
    run_id = bench.queued()

    def take(_: int) -> int | None:
        try:
            return bench.runs.claim(run_id, stale_after_ms=0)
        except UserError:
            return None

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(take, range(8)))

    assert sorted(got, key=str) == [1] + [None] * 7


def test_of_those_who_resume_at_once_one_gets_the_run_and_the_others_are_told(bench):
    run_id, _ = bench.running()
    epoch = bench.runs.get(run_id).lease_epoch

    def resume(_: int) -> int | str:
        try:
            return bench.runs.claim(run_id, into="running", expected_epoch=epoch)
        except UserError as error:
            return error.message

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(resume, range(8)))

    assert sorted(got, key=str) == [epoch + 1] + [f"run {run_id} is being executed by another process"] * 7


def test_people_who_take_over_at_once_get_different_epochs(bench):
    run_id = bench.queued()

    with ThreadPoolExecutor(8) as pool:
        epochs = list(pool.map(lambda _: bench.runs.claim(run_id), range(8)))

    assert sorted(epochs) == list(range(1, 9))


def test_a_taken_over_run_still_knows_that_it_should_stop(bench):
    run_id, _ = bench.running()
    bench.runs.request_cancel(run_id)
    bench.at += 60_000

    bench.runs.claim(run_id, stale_after_ms=0)

    assert bench.runs.cancel_requested(run_id)


def test_a_cancel_of_a_working_run_is_a_request_and_of_a_queued_one_is_done_at_once(bench):
    run_id, _ = bench.running()
    queued = bench.queued()

    assert not bench.runs.cancel_requested(run_id)
    assert bench.runs.request_cancel(run_id) == "running"
    assert bench.runs.cancel_requested(run_id)
    assert bench.runs.request_cancel(queued) == "cancelled"
    assert bench.runs.get(queued).finished_at == bench.at


def test_a_cancel_of_an_ended_run_is_a_mistake(bench):
    run_id, _ = bench.complete()

    with pytest.raises(UserError, match=r"already ended \(complete\)"):
        bench.runs.request_cancel(run_id)


def test_a_cancel_request_between_two_commits_does_not_disturb_the_worker(bench):
    run_id, epoch = bench.running()
    journal, records = bench.journal(run_id, epoch), chained(2)
    bench.commit(journal, records[:1], 0.25)
    bench.runs.request_cancel(run_id)

    asyncio.run(journal.commit(records[1:], state_after(records), 0.75))

    run = bench.runs.get(run_id)
    assert (run.cancel_requested, run.progress) == (True, 0.75)


def test_what_is_noted_stays_until_it_is_noted_again(bench):
    run_id, epoch = bench.running()
    bench.runs.note(run_id, epoch, cost_usd=Decimal("0.50"), wall_s=2.0)
    bench.runs.note(run_id, epoch, ticks=4)

    run = bench.runs.get(run_id)
    assert (run.cost_usd, run.ticks, run.wall_s) == (Decimal("0.5"), 4, 2.0)


def test_a_report_can_be_written_after_the_end(bench):
    run_id, _ = bench.complete()
    bench.runs.set_report(run_id, "elsewhere.html")

    assert bench.runs.get(run_id).report == "elsewhere.html"


def test_a_run_is_found_by_the_beginning_of_its_id(bench):
    first, second = bench.queued(), bench.queued()

    assert bench.runs.find(first) == first
    assert bench.runs.get(second[: len(second)]).id == second
    with pytest.raises(UserError, match=f"more than one run starts with 'ab': {first}, {second}") as many:
        bench.runs.find("ab")
    assert many.value.hint == "give more of the id"


def test_last_is_the_newest_run_that_belongs_to_no_study(bench):
    with pytest.raises(UserError, match="there is no run 'last'"):
        bench.runs.find("last")
    first = bench.queued()
    bench.at += 1
    second = bench.queued()
    bench.at += 1
    (part,) = bench.queue.enqueue([bench.job(study_id="one")])
    bench.at += 1
    skill = bench.skills.save("trend", "1" * 64, b"")
    bench.runs.owned_by("someone").create(skill.id, 1, "policy/hold", {})

    own = bench.runs.owned_by(bench.runs.get(first).owner)
    assert [own.find(name) for name in ("last", "last~0", "last~1")] == [second, second, first]
    assert own.get("last").id == second
    assert own.get(part).study_id == "one"
    with pytest.raises(UserError, match="there is no run 'last~2'") as raised:
        own.find("last~2")
    assert raised.value.hint == "the oldest is last~1"
    with pytest.raises(UserError, match="there is no run 'last~'"):
        own.find("last~")


def test_an_id_that_is_the_beginning_of_another_is_found_itself(bench):
    skill = bench.skills.save("trend", "1" * 64, b"")
    names = iter(["ab", "abc"])
    bench.new_id = lambda: next(names)
    bench.runs.create(skill.id, 1, "m", {})
    bench.runs.create(skill.id, 1, "m", {})

    assert bench.runs.find("ab") == "ab"
    assert bench.runs.find("abc") == "abc"


@pytest.mark.parametrize("unknown", ["zz", "", "AB", "%", "a_"])
def test_an_unknown_id_is_a_mistake_that_names_the_latest_runs(bench, unknown):
    with pytest.raises(UserError) as none:
        bench.runs.find(unknown)
    bench.at += 1
    run_id = bench.queued()
    with pytest.raises(UserError, match="there is no run") as some:
        bench.runs.find(unknown)

    assert (none.value.hint or "").startswith("there are no runs in ")
    assert some.value.hint == f"the latest are {run_id} (queued)"


def test_runs_are_listed_newest_first_and_by_status(bench):
    ids = []
    for _ in range(3):
        bench.at += 1
        ids.append(bench.queued())
    bench.runs.claim(ids[1])

    assert [run.id for run in bench.runs.listing().runs] == ids[::-1]
    assert [run.id for run in bench.runs.listing(limit=1).runs] == [ids[2]]
    assert [run.id for run in bench.runs.listing(status="loading").runs] == [ids[1]]


@pytest.mark.parametrize(
    "change",
    [
        "params = {bytes}",
        "cost_usd = 'much'",
        "status = 'complete'",
        "model = CAST(x'ff' AS TEXT)",
        "created_at = 'soon'",
    ],
)
def test_a_damaged_row_is_named_and_the_others_are_listed(bench, change):
    if not bench.database.journal_mode and change.startswith(("model", "created_at")):
        pytest.skip("Postgres itself refuses text that is none, and numbers that are none")
    ids = []
    for _ in range(3):
        bench.at += 1
        ids.append(bench.queued())
    with bench.database.write() as connection:
        change = change.format(bytes="x'7b'" if bench.database.journal_mode else r"'\x7b'")
        connection.exec_driver_sql(f"UPDATE runs SET {change} WHERE id = '{ids[1]}'")

    listing = bench.runs.listing()

    assert [run.id for run in listing.runs] == [ids[2], ids[0]]
    assert listing.damaged == [ids[1]]


def test_deleting_a_run_removes_its_records_and_state_and_nothing_else(bench):
    gone, _ = bench.complete()
    kept, records = bench.complete()

    bench.runs.delete(gone)

    assert [run.id for run in bench.runs.listing().runs] == [kept]
    assert list(bench.journal(kept, 1).records()) == records
    with bench.database.read() as connection:
        for table in ("records", "run_states"):
            count = connection.exec_driver_sql(f"SELECT count(*) FROM {table} WHERE run_id = '{gone}'").scalar()
            assert count == 0


def test_a_run_that_is_being_worked_on_is_deleted_only_by_force_and_its_worker_then_stops(bench):
    run_id, epoch = bench.running()
    with pytest.raises(UserError, match="is running"):
        bench.runs.delete(run_id)

    bench.runs.delete(run_id, force=True)

    with pytest.raises(LeaseLost):
        bench.commit(bench.journal(run_id, epoch), chained(1))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["claim", "running", "computing_metrics", "fail", "cancelled", "cancel"]), max_size=12))
def test_whatever_is_asked_the_epoch_only_rises_and_the_row_stays_sealed(bench, asked):
    run_id, epoch = bench.queued(), 0
    for step in asked:
        before = bench.runs.get(run_id)
        try:
            if step == "claim":
                epoch = bench.runs.claim(run_id)
                assert epoch == before.lease_epoch + 1
            elif step == "fail":
                bench.runs.fail(run_id, epoch, "why")
            elif step == "cancel":
                bench.runs.request_cancel(run_id)
            else:
                bench.runs.set_status(run_id, step, epoch)
        except (UserError, InvariantError):
            assert bench.runs.get(run_id) == before
    bench.runs.set_report(run_id, "checks the seal before it writes")


def test_a_worker_that_has_loaded_everything_claims_straight_into_running(bench):
    run_id = bench.queued()
    epoch = bench.runs.claim(run_id, into="running")

    run = bench.runs.get(run_id)
    assert (epoch, run.status, run.started_at, run.heartbeat_at) == (1, "running", bench.at, bench.at)


def test_a_cancelled_run_shows_what_it_came_to(bench):
    run_id, epoch = bench.running()

    bench.runs.set_status(run_id, "cancelled", epoch, cost_usd=Decimal("0.30"), wall_s=2.5, ticks=8)

    run = bench.runs.get(run_id)
    assert (run.status, run.cost_usd, run.wall_s, run.ticks) == ("cancelled", Decimal("0.3"), 2.5, 8)
