"""Studies in both databases: kept once, found by the start of their id, counted with their runs."""

import pytest

from conftest import Bench
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.store.queue import Queue
from pitboss.store.schema import facts
from pitboss.store.studies import AlreadyThere, Studies, once

PLAN = {"kind": "grid", "name": "", "vary": ["risk.max_leverage=1,2"], "by": "sharpe"}


def test_a_study_is_kept_once_and_found_by_the_start_of_its_id(bench: Bench):
    studies = Studies(bench.database)
    studies.keep("abc123", PLAN)
    studies.keep("abc123", {**PLAN, "kind": "random"})
    studies.keep("abd456", PLAN)
    assert studies.document("abc123") == PLAN
    assert studies.find("abc") == "abc123"
    with pytest.raises(UserError, match="more than one"):
        studies.find("ab")
    for prefix in ("x", "", "%", "_"):
        with pytest.raises(UserError, match=r"no study|more than one"):
            studies.find(prefix)


def test_a_study_counts_its_runs_and_no_others(bench: Bench):
    studies = Studies(bench.database)
    studies.keep("one", PLAN)
    studies.keep("two", PLAN)
    first, second = bench.queue.enqueue([bench.job(study_id="one"), bench.job(study_id="one")])
    bench.queue.enqueue([bench.job()])
    bench.runs.request_cancel(second)
    lines = {line.id: dict(line.counts) for line in studies.list()}
    assert lines == {"one": {"queued": 1, "cancelled": 1}, "two": {}}
    assert [line.id for line in studies.list()] == ["one", "two"], "the one with the newest run first"
    found = studies.progress("one")
    assert sorted((line.id, line.status) for line in found) == sorted([(first, "queued"), (second, "cancelled")])
    assert studies.progress("two") == []


def test_a_run_that_somebody_else_has_made_is_told_as_just_that(bench: Bench):
    own = Queue(bench.database, bench.now, lambda: "same")
    own.enqueue([bench.job(study_id="one")])
    with pytest.raises(AlreadyThere), once():
        own.enqueue([bench.job(study_id="one")])
    assert len(Studies(bench.database).progress("one")) == 1


def test_a_document_that_was_changed_is_not_believed(bench: Bench):
    studies = Studies(bench.database)
    studies.keep("one", PLAN)
    with bench.database.write() as connection:
        connection.execute(facts.update().where(facts.c.key == "study/one").values(value='{"kind":"arena"}'))
    with pytest.raises(ReplayMismatch):
        studies.document("one")
    with pytest.raises(ReplayMismatch):
        studies.list()
