"""Studies on a real store: every point is executed once; they stop, resume, walk forward and are read back."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_market import FROM, TO, market, request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.errors import RunCancelled, TransientError, UserError
from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.jobs import batch as prepare
from pitboss.jobs import run_series as trace
from pitboss.jobs import study as studying
from pitboss.jobs import study_queue
from pitboss.jobs import study_status as standing
from pitboss.jobs.executors import local
from pitboss.jobs.plan import planned_runs
from pitboss.jobs.search import is_installed
from pitboss.jobs.study import StudyResult, cancel_study, study
from pitboss.jobs.study_lock import StudyLock
from pitboss.jobs.study_plans import BuiltPlan, sweep_plan
from pitboss.jobs.study_queue import StudyObserver, StudySettings
from pitboss.report.metric import metrics_of
from pitboss.runs import run as runner
from pitboss.runs.venues import venue_named
from pitboss.sim.study.axis import parse_axes
from pitboss.store.studies import Studies

HERE = StudySettings("here", 2)
POINTS = ("risk.max_position_pct=10,40", "model=policy/sma_cross,policy/momentum")


@pytest.fixture(scope="module")
def lake() -> Path:
    return market()


def open_folder(folder: Path, lake: Path) -> Workspace:
    folder.mkdir()
    (folder / "lake").symlink_to(lake, target_is_directory=True)
    return open_workspace(load_settings(folder))


@pytest.fixture
def workspace(tmp_path: Path, lake: Path) -> Iterator[Workspace]:
    with open_folder(tmp_path / "study", lake) as found:
        yield found


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[tuple[Workspace, StudyResult]]:
    """A study that is done, for tests that only read."""
    with open_folder(tmp_path_factory.mktemp("known") / "study", lake) as found:
        plan = sweep_plan(request(), parse_axes(POINTS), repeats=2)
        yield found, asyncio.run(study(found, plan.plan, plan.method, HERE))


def run_study(workspace: Workspace, made: BuiltPlan, watch: StudyObserver = studying.NO_OBSERVER) -> StudyResult:
    return asyncio.run(study(workspace, made.plan, made.method, HERE, watch))


def digests(done: StudyResult) -> list[str | None]:
    return [run.digest for runs in done.trials.values() for run in runs]


def test_every_point_is_one_ordinary_run_that_says_where_it_belongs(
    finished_study: tuple[Workspace, StudyResult],
) -> None:
    workspace, result = finished_study
    runs = [run for found in result.trials.values() for run in found]
    assert len(runs) == 4, "programs that ignore the seed are not repeated"
    assert {run.status for run in runs} == {"complete"}
    assert {run.study_id for run in runs} == {result.id}
    points = [run.params["study"]["point"] for run in runs]
    assert [(one["risk.max_position_pct"], one["model"]) for one in points] == [
        (share, model) for share in ("10", "40") for model in ("policy/sma_cross", "policy/momentum")
    ]
    assert [run.params["skill"]["risk"]["max_position_pct"] for run in runs] == [10, 10, 40, 40]
    assert all(runner.verify(workspace, run.id) == [] for run in runs)


def test_asking_for_the_same_again_makes_nothing_and_finds_everything(
    finished_study: tuple[Workspace, StudyResult],
) -> None:
    workspace, result = finished_study
    plan = sweep_plan(request(), parse_axes(POINTS), repeats=2)
    moved: list[str] = []
    again = run_study(workspace, plan, StudyObserver(moved=lambda run_id, status, share: moved.append(status)))
    assert digests(again) == digests(result)
    assert set(moved) == {"complete"}
    assert sum(workspace.runs.count(study_id=result.id).values()) == 4


def test_what_is_only_about_money_leaves_a_study_the_same_and_a_name_makes_it_another() -> None:
    axes = parse_axes(POINTS)
    plain = sweep_plan(request(), axes).plan.id
    assert sweep_plan(request(any_price=True, speculate="0"), axes).plan.id == plain
    others = {
        sweep_plan(request(seed=1), axes).plan.id,
        sweep_plan(request(), axes, name="b").plan.id,
        sweep_plan(request(), axes[:1]).plan.id,
        sweep_plan(request(), axes, repeats=2).plan.id,
        sweep_plan(request(days=20), axes).plan.id,
    }
    assert len(others | {plain}) == 6


def test_a_run_of_a_study_is_the_run_that_a_backtest_makes(
    finished_study: tuple[Workspace, StudyResult], tmp_path: Path, lake: Path
) -> None:
    _, result = finished_study
    with open_folder(tmp_path / "other", lake) as other:
        alone = request()
        skill = {**alone.skill, "risk": {"max_position_pct": 40}}
        run = asyncio.run(runner.start(other, replace(alone, skill=skill)))
    assert run.digest == digests(result)[2]


def test_a_study_that_is_stopped_leaves_nothing_to_spend_on_and_goes_on_to_the_same_digests(
    workspace: Workspace, finished_study: tuple[Workspace, StudyResult]
) -> None:
    plan = sweep_plan(request(), parse_axes(POINTS), repeats=2)
    ended: list[str] = []

    def moved(run_id: str, status: str, share: float) -> None:
        if status == "complete":
            ended.append(run_id)

    with pytest.raises(RunCancelled):
        run_study(workspace, plan, StudyObserver(moved=moved, stop=lambda: len(ended) >= 2))
    counts = workspace.runs.count(study_id=plan.plan.id)
    assert set(counts) <= {"complete", "cancelled"}
    assert counts["complete"] >= 2
    assert counts["cancelled"] >= 1
    again = run_study(workspace, sweep_plan(request(), parse_axes(POINTS), repeats=2))
    assert digests(again) == digests(finished_study[1])


def test_a_run_that_fails_stops_no_other_run_and_is_executed_the_next_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sweep_plan(request(days=3), parse_axes(["risk.max_position_pct=10,20,30"]))
    real, notes = studying.resume, list[str]()

    async def fails_once(place: Workspace, run_id: str, watch: Any) -> Any:
        if place.runs.get(run_id).params["study"]["trial"] == 1:
            place.runs.fail(run_id, place.runs.claim(run_id), "the line went dead")
            raise TransientError("the line went dead")
        return await real(place, run_id, watch)

    monkeypatch.setattr(studying, "resume", fails_once)
    result = run_study(workspace, plan, StudyObserver(note=notes.append))
    assert [run.error_text for run in result.failed] == ["the line went dead"]
    assert len(notes) == 1
    monkeypatch.setattr(studying, "resume", real)
    assert run_study(workspace, plan).failed == []


def test_a_stop_waits_for_the_ticks_in_hand_of_all_runs(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20,30"]))
    asked, ended = list[str](), list[str]()

    async def waits(place: Workspace, run_id: str, watch: Any) -> Any:
        epoch = place.runs.claim(run_id)
        for _ in range(len(asked) + 1):
            asked.append(run_id)
            await asyncio.sleep(0)
        ended.append(run_id)
        place.runs.set_status(run_id, "cancelled", epoch, wall_s=1.0)
        raise RunCancelled

    monkeypatch.setattr(studying, "resume", waits)
    with pytest.raises(RunCancelled):
        run_study(workspace, plan, StudyObserver(stop=lambda: len(asked) > 1))
    assert len(ended) == 2, "two were at work, and neither was cut off"
    assert workspace.runs.count(study_id=plan.plan.id) == {"cancelled": 3}


def test_a_bug_in_one_run_is_reported_and_stops_no_other_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20"]))
    real, notes = studying.resume, list[str]()

    async def breaks(place: Workspace, run_id: str, watch: Any) -> Any:
        if place.runs.get(run_id).params["study"]["trial"] == 0:
            place.runs.fail(run_id, place.runs.claim(run_id), "unexpected fault")
            raise ZeroDivisionError("by nought")
        return await real(place, run_id, watch)

    monkeypatch.setattr(studying, "resume", breaks)
    result = run_study(workspace, plan, StudyObserver(note=notes.append))
    assert [run.status for runs in result.trials.values() for run in runs] == ["error", "complete"]
    assert "by nought" in notes[0]


def test_a_point_that_makes_no_sense_is_refused_before_anything_is_stored(workspace: Workspace) -> None:
    for axis, message in (
        ("risk.max_leverage=1,0", "max_leverage"),
        ("risk.max_lever=1", "no such field"),
        ("model=policy/nobody", "policy/nobody"),
        ("seed=a", "not a whole number"),
        ("range=2025-03-10/2025-03-09", "empty"),
        ("range=2031-03-10/2031-03-12", "BTC"),
        ("run.taker=1", "no such field"),
        ("run.taker_bps=much", "does not fit"),
        ("run.taker_bps=4,-1", "run.taker_bps: -1 is not a number of at least 0"),
        ("run.news_latency_ms=-60000..0:60000", "run.news_latency_ms: -60000 is not"),
    ):
        with pytest.raises(UserError, match=message):
            run_study(workspace, sweep_plan(request(), parse_axes([axis])))
    assert workspace.runs.count() == {}


def test_ranges_seeds_and_settings_of_the_run_can_be_varied(workspace: Workspace) -> None:
    days = [f"{day}/{after}" for day, after in (("2025-03-10", "2025-03-12"), ("2025-03-14", "2025-03-17"))]
    words = (f"range={days[0]},{days[1]}", "seed=3..4", "run.taker_bps=0,9", "model=policy/random")
    result = run_study(workspace, sweep_plan(request(), parse_axes(words)))
    runs = [run for found in result.trials.values() for run in found]
    assert len(runs) == 8
    seen = {(run.params["from_at"], run.params["seed"], run.params["taker_bps"]) for run in runs}
    starts = {parse_instant("2025-03-10"), parse_instant("2025-03-14")}
    assert seen == {(start, seed, fee) for start in starts for seed in (3, 4) for fee in ("0", "9")}


def test_jobs_made_from_one_another_are_those_made_alone(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("risk.max_position_pct=10,20", "seed=0,7", "run.taker_bps=1,2", "context.bars_lookback=50,60")
    plan = sweep_plan(
        request(days=3), parse_axes([*words, "model=policy/random,policy/momentum,standin/analyst"]), repeats=2
    )
    planned = [member.request for member in planned_runs(plan.plan, plan.expected_trials)]
    some = range(0, len(planned), 5)  # every value of every field is among them
    alone, loaded = [runner.job_of(workspace, planned[place], owner="me") for place in some], list[object]()

    def counted(place: Workspace, one: Any, **more: Any) -> Any:
        loaded.append(one)
        return runner.job_of(place, one, **more)

    monkeypatch.setattr(prepare, "job_of", counted)
    preparation = prepare.JobBuilder(workspace)
    shared = [preparation.job(one, owner="me") for one in planned]
    assert len(loaded) == 6, "three deciders with two lookbacks each"
    for one, other in zip((shared[place] for place in some), alone, strict=True):
        assert codec.dumps(one.params) == codec.dumps(other.params)
        assert replace(one, params={}) == replace(other, params={})


def test_two_who_make_the_same_study_at_once_make_its_runs_once(workspace: Workspace) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20,30"]))

    async def both() -> list[StudyResult]:
        return list(await asyncio.gather(*(study(workspace, plan.plan, plan.method, HERE) for _ in range(2))))

    first, second = asyncio.run(both())
    assert digests(first) == digests(second)
    assert sum(workspace.runs.count(study_id=plan.plan.id).values()) == 3


def test_one_who_looks_before_and_writes_after_another_finds_the_others_runs(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20,30"]))
    planned = planned_runs(plan.plan, plan.expected_trials)
    Studies(workspace.database).save(plan.plan.id, plan.plan.document())
    first = studying.ensure_queued(workspace, plan.plan, planned[:2], HERE, studying.NO_OBSERVER)
    real, blind = Studies.progress, [True]

    def looked_before(studies: Studies, study_id: str) -> Any:
        return [] if blind and blind.pop() else real(studies, study_id)

    monkeypatch.setattr(Studies, "progress", looked_before)
    second = studying.ensure_queued(workspace, plan.plan, planned, HERE, studying.NO_OBSERVER)
    assert not blind
    assert list(second.ids[:2]) == list(first.ids)
    assert workspace.runs.count(study_id=plan.plan.id) == {"queued": 3}


def test_runs_that_a_killed_process_left_behind_are_gone_on_with(workspace: Workspace) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20"]))
    lot = studying.ensure_queued(
        workspace, plan.plan, planned_runs(plan.plan, plan.expected_trials), HERE, studying.NO_OBSERVER
    )
    workspace.runs.claim(lot.ids[0], into="running")  # by a process that then dies
    assert workspace.runs.count(study_id=plan.plan.id) == {"queued": 1, "running": 1}
    assert run_study(workspace, plan).failed == []


def test_runs_that_another_process_is_at_work_on_are_waited_for(workspace: Workspace) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20"]))
    lot = studying.ensure_queued(
        workspace, plan.plan, planned_runs(plan.plan, plan.expected_trials), HERE, studying.NO_OBSERVER
    )
    epoch = workspace.runs.claim(lot.ids[0], into="running")
    with StudyLock(workspace.home, plan.plan.id) as other:
        assert other.acquire()
        with pytest.raises(RunCancelled):
            run_study(workspace, plan, StudyObserver(stop=lambda: workspace.runs.get(lot.ids[1]).status == "complete"))
        run = workspace.runs.get(lot.ids[0])
        assert (run.status, run.lease_epoch, run.cancel_requested) == ("running", epoch, True)
    assert run_study(workspace, plan).failed == [], "the other is gone now"


def test_a_walk_forward_chooses_on_what_came_before_and_is_judged_on_what_follows(workspace: Workspace) -> None:
    axes = parse_axes(["model=policy/sma_cross,policy/momentum,policy/mean_reversion"])
    plan = sweep_plan(request(), axes, walk="10d/5d", by="total_return_pct")
    result = run_study(workspace, plan)
    inside = {trial: runs for trial, runs in result.trials.items() if trial.role == "in"}
    outside = {trial: runs for trial, runs in result.trials.items() if trial.role == "out"}
    assert (len(inside), len(outside)) == (9, 3)
    for trial in outside:
        rivals = {other.point: runs[0] for other, runs in inside.items() if other.window == trial.window}
        assert all(run.params["to_at"] <= trial.from_at for run in rivals.values())
        best = max(rivals.values(), key=lambda run: (run.metrics or {})["total_return_pct"])
        assert rivals[trial.point].id == best.id
    judged = standing.evaluated_study(workspace, result.id)
    forward = judged["forward"]
    assert forward["days"] == 15
    assert [window["window"] for window in forward["windows"]] == [0, 1, 2]
    growth = 1.0
    for runs in outside.values():
        growth *= 1 + (runs[0].metrics or {})["total_return_pct"] / 100
    assert forward["total_return_pct"] == pytest.approx(100 * (growth - 1), abs=1e-6)
    assert forward["tried_in_each"] == 3
    runs = [run for run in standing.runs_of(workspace, result.id) if run.mark["role"] == "in" or not run.mark["window"]]
    cancelled = standing._forward(standing.study_summary(workspace, result.id, runs), runs, {})
    assert (cancelled["tried_in_each"], cancelled["not_judged"]) == (3, 2)


def test_what_comes_after_a_stretch_does_not_change_what_is_chosen_on_it(
    workspace: Workspace, tmp_path: Path, lake: Path
) -> None:
    axes = parse_axes(["model=policy/sma_cross,policy/momentum,policy/mean_reversion"])
    reference = run_study(workspace, sweep_plan(request(), axes, walk="10d/5d"))
    with open_folder(tmp_path / "short", lake) as other:  # the same walk, ended after its first window
        short = run_study(other, sweep_plan(replace(request(), to_at=FROM + 15 * DAY_MS), axes, walk="10d/5d"))
    first = [trial for trial in reference.trials if trial.role == "out" and trial.window == 0]
    alone = [trial for trial in short.trials if trial.role == "out"]
    assert [trial.point for trial in first] == [trial.point for trial in alone]
    assert [reference.trials[trial][0].digest for trial in first] == [short.trials[trial][0].digest for trial in alone]


@pytest.mark.skipif(not is_installed(), reason="optuna is not installed")
def test_a_search_learns_goes_on_the_same_way_and_makes_nothing_twice(workspace: Workspace) -> None:
    def asked() -> BuiltPlan:
        return sweep_plan(
            request(days=4), parse_axes(["risk.max_position_pct=1..90", "seed=0,1"]), search=6, by="total_return_pct"
        )

    first = run_study(workspace, asked())
    assert [trial.number for trial in first.trials] == list(range(6))
    before = workspace.runs.count(study_id=first.id)
    again = run_study(workspace, asked())
    assert list(again.trials) == list(first.trials)
    assert workspace.runs.count(study_id=first.id) == before


def test_studies_are_listed_filtered_and_opened(finished_study: tuple[Workspace, StudyResult]) -> None:
    workspace, result = finished_study
    (line,) = [one for one in standing.study_list(workspace) if one["study_id"] == result.id]
    assert (line["kind"], line["skill"], line["counts"]) == ("grid", "studied", {"complete": 4})
    assert Studies(workspace.database).find(result.id[:5]) == result.id
    assert len(standing.runs_of(workspace, result.id, model="policy/momentum")) == 2
    assert len(standing.runs_of(workspace, result.id, point={"risk.max_position_pct": "40"})) == 2
    assert standing.runs_of(workspace, result.id, status="error") == []
    document = standing.study_summary(workspace, result.id)
    scores = [one["score"] for one in document["trials"]]
    assert scores == sorted(scores, reverse=True)
    with pytest.raises(UserError, match="no study 'zz'"):
        Studies(workspace.database).find("zz")


def test_luck_is_judged_over_all_trials_and_read_once(
    finished_study: tuple[Workspace, StudyResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, result = finished_study
    first = standing.evaluated_study(workspace, result.id)
    luck = first["luck"]
    assert luck["trials"] == 4
    assert 0 <= luck["deflated_sharpe"] <= 1
    assert luck["overfitting"]["days"] == 24
    best = next(trial for trial in first["trials"] if trial["trial"] == luck["best_trial"])
    run = workspace.runs.get(best["runs"][0]["run_id"])
    assert (run.metrics or {})["probabilistic_sharpe"] > luck["deflated_sharpe"]

    def never(*_: Any) -> Any:
        raise AssertionError("records were read again")

    monkeypatch.setattr(trace, "compute_series", never)
    assert standing.evaluated_study(workspace, result.id) == first


def test_every_other_run_of_the_skill_counts_as_a_try_too(workspace: Workspace) -> None:
    first = run_study(workspace, sweep_plan(request(), parse_axes(["risk.max_position_pct=10,40"])))
    before = standing.evaluated_study(workspace, first.id)["luck"]
    assert (before["runs"], before["runs_of_skill"]) == (2, 2)
    assert before["deflated_sharpe_of_skill"] == pytest.approx(before["deflated_sharpe"])
    for model in ("policy/momentum", "policy/mean_reversion"):
        asyncio.run(runner.start(workspace, replace(request(), model=model)))
    after = standing.evaluated_study(workspace, first.id)["luck"]
    assert after["deflated_sharpe"] == before["deflated_sharpe"]
    assert after["runs_of_skill"] == 4
    assert after["deflated_sharpe_of_skill"] < before["deflated_sharpe_of_skill"]


def test_what_is_kept_of_runs_may_be_half_written(finished_study: tuple[Workspace, StudyResult]) -> None:
    workspace, result = finished_study
    first = standing.evaluated_study(workspace, result.id)
    file = workspace.home / "studies" / f"{result.id}.jsonl"
    file.write_bytes(file.read_bytes()[:-500])
    file.with_suffix(".luck").unlink()
    assert standing.evaluated_study(workspace, result.id) == first


@pytest.mark.parametrize("kept", [b"", b'{"of":', b"[]", b'{"of":"other","found":{}}'])
def test_what_is_kept_of_luck_is_believed_only_if_it_is_of_these_runs(
    finished_study: tuple[Workspace, StudyResult], kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, result = finished_study
    first = standing.evaluated_study(workspace, result.id)
    file = workspace.home / "studies" / f"{result.id}.luck"
    content = file.read_bytes()
    file.write_bytes(kept)
    assert standing.evaluated_study(workspace, result.id) == first
    assert file.read_bytes() == content, "worked out again, to the same bytes"
    monkeypatch.setattr(standing, "overfit", lambda entries: pytest.fail("it is known"))
    assert standing.evaluated_study(workspace, result.id) == first


def test_daily_returns_come_to_the_return_that_the_run_reports(finished_study: tuple[Workspace, StudyResult]) -> None:
    workspace, result = finished_study
    runs = [run for found in result.trials.values() for run in found]
    found: Mapping[str, trace.RunSeries] = trace.load_series(workspace, result.id, runs)
    for run in runs:
        growth = 1.0
        for value in found[run.id].returns:
            growth *= 1 + value
        assert 100 * (growth - 1) == pytest.approx((run.metrics or {})["total_return_pct"], abs=1e-9)
        assert len(found[run.id].returns) == (TO - FROM) // DAY_MS


def test_every_metric_that_can_be_asked_for_is_one_that_a_run_has(
    finished_study: tuple[Workspace, StudyResult],
) -> None:
    _, result = finished_study
    (run, *_), *_ = result.trials.values()
    assert run.metrics is not None
    for name in metrics_of(venue_named("perp").metrics()):
        assert name in run.metrics, name
        assert run.metrics[name] is None or isinstance(run.metrics[name], int | float), name


def test_calling_off_takes_waiting_runs_out_of_the_queue(workspace: Workspace) -> None:
    plan = sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10,20"]))
    Studies(workspace.database).save(plan.plan.id, plan.plan.document())
    studying.ensure_queued(
        workspace, plan.plan, planned_runs(plan.plan, plan.expected_trials), HERE, studying.NO_OBSERVER
    )
    assert workspace.runs.count(study_id=plan.plan.id) == {"queued": 2}
    assert cancel_study(workspace, plan.plan.id) == 2
    assert workspace.runs.count(study_id=plan.plan.id) == {"cancelled": 2}
    assert run_study(workspace, plan).failed == []


@pytest.mark.usefixtures("forked_programs")
def test_workers_of_this_machine_come_to_the_same_digests(
    workspace: Workspace, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_queue, "build", lambda: None)  # files may be changing while tests run
    plan = sweep_plan(
        request(days=3), parse_axes(["risk.max_position_pct=10,20", "model=policy/momentum,policy/random"])
    )
    alone = run_study(workspace, plan)
    with open_folder(tmp_path / "pool", lake) as found:
        quick = found.settings.model_copy(update={"max_workers": 1, "worker_idle_s": 0.1})
        pool = replace(found, settings=quick)
        shared = asyncio.run(study(pool, plan.plan, plan.method, StudySettings("workers")))
        assert {run.worker is not None for runs in shared.trials.values() for run in runs} == {True}
        for process in local._started:
            process.wait(60)
    assert digests(shared) == digests(alone)
