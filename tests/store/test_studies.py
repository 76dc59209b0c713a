"""Studies in both databases: stored once, found by the prefix of their id, counted with their runs."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.store.lifecycle import Status
from pitboss.store.queue import Queue
from pitboss.store.run import Run
from pitboss.store.schema import runs
from pitboss.store.schema import studies as table
from pitboss.store.studies import RunsExist, Studies, StudyRun, full_runs, metrics_of_skill, study_runs, unique_runs

PLAN = {"kind": "grid", "name": "", "vary": ["risk.max_leverage=1,2"], "by": "sharpe"}


def test_a_study_is_kept_once_and_found_by_the_start_of_its_id(bench):
    studies = Studies(bench.database)
    studies.save("abc123", PLAN)
    studies.save("abc123", {**PLAN, "kind": "random"})
    studies.save("abd456", PLAN)
    assert studies.document("abc123") == PLAN
    assert studies.find("abc") == "abc123"
    with pytest.raises(UserError, match="more than one"):
        studies.find("ab")
    for prefix in ("x", "", "%", "_"):
        with pytest.raises(UserError, match=r"no study|more than one"):
            studies.find(prefix)


def test_a_study_counts_its_runs_and_no_others(bench):
    studies = Studies(bench.database)
    studies.save("one", PLAN)
    studies.save("two", PLAN)
    first, second = bench.queue.enqueue([bench.job(study_id="one"), bench.job(study_id="one")])
    bench.queue.enqueue([bench.job()])
    bench.runs.request_cancel(second)
    lines = {line.id: dict(line.counts) for line in studies.list()}
    assert lines == {"one": {"queued": 1, "cancelled": 1}, "two": {}}
    assert [line.id for line in studies.list()] == ["one", "two"], "the one with the newest run first"
    found = studies.progress("one")
    assert sorted((line.id, line.status) for line in found) == sorted([(first, "queued"), (second, "cancelled")])
    assert studies.progress("two") == []


def test_a_run_that_already_exists_is_reported_as_existing(bench):
    own = Queue(bench.database, bench.now, lambda: "same")
    own.enqueue([bench.job(study_id="one")])
    with pytest.raises(RunsExist), unique_runs():
        own.enqueue([bench.job(study_id="one")])
    assert len(Studies(bench.database).progress("one")) == 1


def test_a_document_that_was_changed_is_not_believed(bench):
    studies = Studies(bench.database)
    studies.save("one", PLAN)
    with bench.database.write() as connection:
        connection.execute(table.update().where(table.c.id == "one").values(document='{"kind":"arena"}'))
    with pytest.raises(ReplayMismatch):
        studies.document("one")
    with pytest.raises(ReplayMismatch):
        studies.list()


VALUES = ("1", "10", '"1"', "über", "a\\b", "[BTC,ETH]")
"""Some begin like others or look like a piece of JSON: what is only near must not fit."""


def filled(bench) -> None:
    """A study whose runs were made in no order, one of another study at the same points, one that was changed."""
    random = Random(1)
    points = [{"risk.x": first, "x": second} for first in VALUES for second in ("1", "2")]
    trials = [(number, repeat) for number in range(len(points)) for repeat in range(2)]
    random.shuffle(trials)
    jobs = [
        replace(
            bench.job(study_id="one"),
            model=f"policy/{'ab'[number % 2]}",
            params={
                "from_at": number,
                "to_at": number + 1,
                "note": {"risk.x": VALUES[(number + 1) % len(VALUES)]},
                "study": {"trial": number, "repeat": repeat, "point": points[number]},
            },
        )
        for number, repeat in trials
    ]
    ids = bench.queue.enqueue([*jobs, replace(jobs[0], study_id="two")])
    bench.runs.request_cancel(ids[3])
    bench.runs.set_report(ids[4], "/somewhere/page.html")
    with bench.database.write() as connection:
        connection.execute(runs.update().where(runs.c.id == ids[5]).values(cost_usd="9"))


def plainly(found: list[Run], point: Mapping[str, str]) -> list[Run]:
    """What is meant: every run is read whole, and looked at."""
    fitting = [run for run in found if point.items() <= run.params["study"]["point"].items()]
    return sorted(fitting, key=lambda run: (run.params["study"]["trial"], run.params["study"]["repeat"]))


POINTS = (
    {},
    *({"risk.x": value} for value in VALUES),
    {"x": "2"},
    {"x": "1", "risk.x": "1"},
    {"x": "3"},
    {"sk.x": "1"},
)


def test_filtered_runs_are_those_that_reading_every_run_whole_finds(bench):
    filled(bench)
    filters: list[tuple[Status | None, dict[str, str]]] = [(None, {}), (None, {"model": "policy/a"}), ("cancelled", {})]
    for point in POINTS:
        for status, more in filters:
            wanted = plainly(list(bench.runs.listing(1_000, status, study_id="one", **more).runs), point)
            assert full_runs(bench.runs, "one", status, more.get("model"), point) == wanted
            light = study_runs(bench.runs, "one", status, more.get("model"), point)
            assert [part.id for part in light] == [run.id for run in wanted]
    assert len(study_runs(bench.runs, "one")) == 2 * 2 * len(VALUES) - 1, "all but the one that was changed"


def test_a_part_says_of_a_run_what_the_whole_run_says(bench):
    filled(bench)
    for part, run in zip(study_runs(bench.runs, "one"), full_runs(bench.runs, "one"), strict=True):
        assert (part.mark, part.from_at, part.to_at) == (
            run.params["study"],
            run.params["from_at"],
            run.params["to_at"],
        )
        assert part.metrics == run.metrics
        for name in set(StudyRun.__dataclass_fields__) - {"mark", "from_at", "to_at", "body"}:
            assert getattr(part, name) == getattr(run, name)


def test_what_other_runs_of_a_skill_came_to_is_reported_without_those_of_the_study(bench):
    done, _ = bench.complete()
    assert metrics_of_skill(bench.runs, "trend", "one") == [{"sharpe": 1.25}]
    assert metrics_of_skill(bench.runs, "other", "one") == []
    (part,) = bench.queue.enqueue([bench.job(study_id="one")])
    epoch = bench.runs.claim(part, into="running")
    bench.runs.set_status(part, "computing_metrics", epoch)
    bench.runs.finish(part, epoch, digest="e" * 64, metrics={"sharpe": 2.0}, baselines={})
    assert metrics_of_skill(bench.runs, "trend", "one") == [{"sharpe": 1.25}]
    assert sorted(one["sharpe"] for one in metrics_of_skill(bench.runs, "trend", "two")) == [1.25, 2.0]
    with bench.database.write() as connection:
        connection.execute(runs.update().where(runs.c.id == done).values(cost_usd="9"))
    assert metrics_of_skill(bench.runs, "trend", "one") == []
