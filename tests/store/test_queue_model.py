"""The queue against a slow, obvious model of it: any steps, in any order, give the same in both (Q1 to Q6)."""

import itertools
import shutil
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import postgres_server
from history_check import check
from pitboss.core.errors import BudgetExceeded, InvariantError, UserError
from pitboss.store import events
from pitboss.store.budgets import Budgets
from pitboss.store.database import open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained

STALE_MS, MOST, PER_USER, DAILY = 20_000, 3, 2, Decimal(10)
OWNERS = ("ada", "bob")


@dataclass
class Known:
    """A run as the model knows it."""

    number: int
    owner: str
    priority: int
    queued_at: int
    reserved: Decimal | None
    status: str = "queued"
    epoch: int = 0
    alive_at: int = 0
    losses: int = 0
    records: int = 0
    records_at_loss: int = 0
    cancel: bool = False
    for_workers: bool = True


@dataclass
class Model:
    """The queue as a list that is looked through from one end to the other."""

    at: int = 1_700_000_000_000
    runs: dict[str, Known] = field(default_factory=dict)

    def reserved(self, owner: str) -> Decimal:
        return sum((run.reserved or Decimal(0) for run in self.runs.values() if run.owner == owner), Decimal(0))

    def working(self, owner: str) -> int:
        return sum(
            run.owner == owner and run.for_workers and run.status in ("loading", "running")
            for run in self.runs.values()
        )

    def next(self) -> str | None:
        best = None
        for run_id, run in self.runs.items():
            ready = run.status == "queued" and run.for_workers and run.queued_at <= self.at
            if ready and self.working(run.owner) < PER_USER:
                rank = (-run.priority, run.queued_at, run_id)
                best = min(best, rank) if best else rank
        return best[2] if best else None

    def stale(self) -> list[str]:
        return [
            run_id
            for run_id, run in self.runs.items()
            if run.for_workers and run.status in ("loading", "running") and self.at - run.alive_at > STALE_MS
        ]

    def end(self, run_id: str, status: str) -> None:
        run = self.runs[run_id]
        run.status, run.reserved = status, None


class Machine(RuleBasedStateMachine):
    """Any order of what people, workers, sweepers and zombies may do."""

    ids = Bundle("ids")
    leases = Bundle("leases")

    def open(self):
        raise NotImplementedError

    def __init__(self, make_bench):
        super().__init__()
        self.close, address = self.open()
        self.database = open_database(address, "one")
        self.bench = make_bench(self.database)
        self.model = Model(self.bench.at)
        self.chains = {}
        self.numbers = itertools.count()

    def teardown(self):
        found = check(events.read_events(self.database), self.model.runs, ended=False, stale_ms=STALE_MS, most=MOST)
        assert found.violations == []
        for run_id in self.model.runs:
            assert verify_run(self.database, run_id) == []
        self.database.close()
        self.close()

    @rule(ms=st.sampled_from([1, 5_000, STALE_MS - 1, STALE_MS, STALE_MS + 1, 60_000]))
    def time_goes_by(self, ms):
        self.bench.at += ms
        self.model.at += ms

    @rule(
        target=ids, owner=st.sampled_from(OWNERS), priority=st.integers(-1, 1), usd=st.sampled_from([None, "0.5", "4"])
    )
    def enqueue(self, owner, priority, usd):
        reserve = None if usd is None else Decimal(usd)
        job = self.bench.job(owner=owner, priority=priority, reserve_usd=reserve)
        if reserve is not None and self.model.reserved(owner) + reserve > DAILY:
            with pytest.raises(BudgetExceeded):
                self.bench.queue.enqueue([job], DAILY)
            return multiple()
        (run_id,) = self.bench.queue.enqueue([job], DAILY if reserve is not None else None)
        self.model.runs[run_id] = Known(next(self.numbers), owner, priority, self.model.at, reserve)
        return run_id

    @rule(target=leases, into=st.sampled_from(["loading", "running"]))
    def claim(self, into):
        lease = self.bench.queue.claim("w", per_user=PER_USER, into=into)
        wanted = self.model.next()
        assert (lease and lease.run_id) == wanted
        if lease is None:
            return multiple()
        run = self.model.runs[wanted]
        assert lease.epoch > run.epoch
        run.status, run.epoch, run.alive_at = into, lease.epoch, self.model.at
        return wanted, lease.epoch

    @rule(target=leases, run_id=ids)
    def a_person_takes_it(self, run_id):
        run = self.model.runs[run_id]
        if run.status == "complete":
            with pytest.raises(UserError):
                self.bench.runs.claim(run_id, into="running")
            return multiple()
        epoch = self.bench.runs.claim(run_id, into="running")
        assert epoch > run.epoch
        run.status, run.epoch, run.cancel, run.for_workers, run.losses = "running", epoch, False, False, 0
        run.alive_at = self.model.at
        return run_id, epoch

    def holds(self, run_id, epoch):
        run = self.model.runs[run_id]
        return run.epoch == epoch and run.status in ("loading", "running")

    @rule(lease=leases)
    def beat(self, lease):
        run_id, epoch = lease
        beat = self.bench.queue.beat({run_id: epoch})
        run = self.model.runs[run_id]
        assert (run_id in beat.lost) == (not self.holds(run_id, epoch))
        if self.holds(run_id, epoch):
            assert (run_id in beat.cancelled) == run.cancel
            run.alive_at = self.model.at

    @rule(lease=leases, more=st.integers(1, 3))
    def commit(self, lease, more):
        run_id, epoch = lease
        run = self.model.runs[run_id]
        chain = chained(run.records + more)
        journal = StoredJournal(self.database, run_id, epoch, logged=True)
        if run.epoch == epoch and run.status in ("error", "cancelled", "complete"):
            with pytest.raises(InvariantError):
                self.bench.commit(journal, chain[run.records :])
        elif not self.holds(run_id, epoch):
            with pytest.raises(LeaseLost):
                self.bench.commit(journal, chain[run.records :])
        else:
            self.bench.commit(journal, chain[run.records :], 0.5)
            run.records, run.alive_at = run.records + more, self.model.at

    @rule(lease=consumes(leases), how=st.sampled_from(["complete", "error", "cancelled", "release"]))
    def end(self, lease, how):
        run_id, epoch = lease
        run, runs = self.model.runs[run_id], self.bench.runs

        def do():
            if how == "release":
                self.bench.queue.release(run_id, epoch)
            elif how == "error":
                runs.fail(run_id, epoch, "why")
            elif how == "cancelled":
                runs.set_status(run_id, "cancelled", epoch)
            else:
                if run.status == "loading":
                    runs.set_status(run_id, "running", epoch)
                runs.set_status(run_id, "computing_metrics", epoch)
                runs.finish(run_id, epoch, digest=self.digest(run), metrics={}, baselines={})

        if self.holds(run_id, epoch):
            do()
            if how == "release" and not run.cancel:
                run.queued_at = run.queued_at if run.for_workers else self.model.at
                run.status, run.epoch, run.for_workers = "queued", epoch + 1, True
            elif how == "release":
                run.epoch += 1
                self.model.end(run_id, "cancelled")
            else:
                self.model.end(run_id, how)
        elif run.epoch != epoch or how == "release":
            with pytest.raises(LeaseLost):
                do()

    def digest(self, run):
        return chained(run.records)[-1].digest if run.records else "0" * 64

    @rule(run_id=ids)
    def cancel(self, run_id):
        run = self.model.runs[run_id]
        if run.status in ("complete", "error", "cancelled"):
            with pytest.raises(UserError):
                self.bench.runs.request_cancel(run_id)
            return
        self.bench.runs.request_cancel(run_id)
        run.cancel = True
        if run.status == "queued":
            self.model.end(run_id, "cancelled")

    @rule(run_id=ids)
    def queue_again(self, run_id):
        run = self.model.runs[run_id]
        if run.status not in ("error", "cancelled"):
            with pytest.raises(UserError):
                self.bench.queue.enqueue_again(run_id)
            return
        self.bench.queue.enqueue_again(run_id)
        run.status, run.queued_at, run.cancel, run.losses, run.for_workers = "queued", self.model.at, False, 0, True
        run.epoch += 1

    @rule()
    def sweep(self):
        stale = self.model.stale()
        swept = self.bench.queue.sweep(STALE_MS, MOST)
        assert sorted([*swept.requeued, *swept.failed, *swept.cancelled]) == sorted(stale)
        for run_id in stale:
            run = self.model.runs[run_id]
            run.epoch += 1
            if run.cancel:
                assert run_id in swept.cancelled
                self.model.end(run_id, "cancelled")
                continue
            if run.records > run.records_at_loss:
                run.losses = 0
            if run.losses == MOST:
                assert run_id in swept.failed
                self.model.end(run_id, "error")
            else:
                assert run_id in swept.requeued
                run.status, run.losses, run.records_at_loss = "queued", run.losses + 1, run.records

    @invariant()
    def both_say_the_same(self):
        stored = {run.id: run for run in self.bench.runs.listing(1_000).runs}
        assert stored.keys() == self.model.runs.keys()
        for run_id, run in self.model.runs.items():
            there = stored[run_id]
            assert (there.status, there.lease_epoch, there.requeues) == (run.status, run.epoch, run.losses)
            assert there.cancel_requested == run.cancel
        for owner in OWNERS:
            budget = Budgets(self.database).get(owner)
            assert budget.reserved_usd == self.model.reserved(owner)
            assert budget.spent_usd == 0


def test_the_queue_in_sqlite_does_what_the_model_does(make_bench, empty_file, tmp_path):
    _try(_on_sqlite(empty_file, tmp_path), make_bench, 6)


def test_the_queue_in_postgres_does_what_the_model_does(make_bench, empty_postgres):
    _try(_on_postgres(empty_postgres), make_bench, 3)


@pytest.mark.proof
def test_the_queue_does_what_the_model_does_for_long(make_bench, empty_postgres, empty_file, tmp_path):
    _try(_on_sqlite(empty_file, tmp_path), make_bench, 1_000)
    _try(_on_postgres(empty_postgres), make_bench, 100)


def _on_sqlite(empty, under):
    class OnSqlite(Machine):
        def open(self):
            folder = tempfile.mkdtemp(dir=under)
            return lambda: shutil.rmtree(folder), shutil.copy(empty, Path(folder) / "pitboss.db")

    return OnSqlite


def _on_postgres(empty):
    class OnPostgres(Machine):
        def open(self):
            lending = postgres_server.leased_database(empty)
            return lambda: lending.__exit__(None, None, None), lending.__enter__()

    return OnPostgres


def _try(machine, make_bench, examples):
    how = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: machine(make_bench), settings=how)
