"""Running a backtest in a workspace: what is written on the way, and what a run that did not end says about itself."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import ReplayMismatch, RunCancelled, UserError
from pitboss.core.instant import parse_instant
from pitboss.runs.run import ledger_of, resume, start, verify
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import LeaseLost
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill
from pitboss.venues.perp.venue import PerpVenue
from simulated_kill import Killed

FROM, TO, END = (parse_instant(f"2025-03-{day}") for day in ("27", "28", "31"))


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Iterator[Workspace]:
    settings = load_settings(home).model_copy(update={"database_url": str(tmp_path / "pitboss.db")})
    with open_workspace(settings) as opened:
        yield opened


def policy() -> PerpRequest:
    return PerpRequest(plain_skill(["BTC"], "5m", model="policy/momentum"), FROM, TO)


def standin() -> PerpRequest:
    return PerpRequest(plain_skill(["BTC"], "15m", model="standin/analyst"), FROM, TO)


def stop_after(ticks: int) -> Watch:
    """A watch that asks for a stop after so many ticks."""
    asked = iter(range(ticks))
    return Watch(stop=lambda: next(asked, None) is None)


def stopped_run_id(workspace: Workspace, request: PerpRequest, watch: Watch) -> str:
    """The id of a run that its watch has stopped."""
    ids: list[str] = []
    with pytest.raises(RunCancelled):
        asyncio.run(start(workspace, request, watch, ids.append))
    return ids[0]


def test_a_policy_run_is_stored_in_five_transactions(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The skill, the run, the claim, the records with the end of the replay, the result: each is a wait for the disk."""
    made: list[str] = []

    def counted(name: str) -> Any:
        real = getattr(workspace.database, name)

        @contextmanager
        def write() -> Iterator[Any]:
            made.append(name)
            with real() as opened:
                yield opened

        return write

    for name in ("write", "write_raw"):
        monkeypatch.setattr(workspace.database, name, counted(name))

    run = asyncio.run(start(workspace, policy()))

    assert made == ["write", "write", "write", "write_raw", "write"]
    assert (run.status, run.progress, verify(workspace, run.id)) == ("complete", 1.0, [])


def test_a_run_that_another_process_claims_while_it_is_loaded_is_left_to_that_one(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stopped_run_id(workspace, policy(), stop_after(8))
    load = PerpVenue.prepare

    def claimed_meanwhile(self: PerpVenue, *args: Any) -> Any:
        workspace.runs.claim(run_id, into="running")
        return load(self, *args)

    monkeypatch.setattr(PerpVenue, "prepare", claimed_meanwhile)
    with pytest.raises(UserError, match="is being executed by another process"):
        asyncio.run(resume(workspace, run_id))
    monkeypatch.undo()
    assert asyncio.run(resume(workspace, run_id, take_over=True)).status == "complete"


@pytest.mark.parametrize("request_of", [policy, standin])
def test_a_stopped_run_says_how_far_it_came_and_ends_like_one_that_was_not_stopped(
    workspace: Workspace, request_of: Callable[[], PerpRequest]
) -> None:
    whole = asyncio.run(start(workspace, request_of()))
    run_id = stopped_run_id(workspace, request_of(), stop_after(8))

    stopped = workspace.runs.get(run_id)
    assert stopped.status == "cancelled"
    assert 0 < stopped.ticks < whole.ticks
    assert stopped.ticks == ledger_of(workspace, stopped).ticks
    assert stopped.wall_s > 0

    resumed = asyncio.run(resume(workspace, run_id))
    assert (resumed.digest, resumed.metrics, resumed.ticks) == (whole.digest, whole.metrics, whole.ticks)
    assert resumed.wall_s > stopped.wall_s
    assert verify(workspace, run_id) == []


@pytest.mark.parametrize(
    ("end", "status"),
    [(Killed, "computing_metrics"), (KeyboardInterrupt, "cancelled"), (asyncio.CancelledError, "cancelled")],
)
def test_a_run_that_ended_between_its_last_record_and_its_metrics_is_completed(
    end: type[BaseException], status: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = asyncio.run(start(workspace, policy()))
    ids: list[str] = []

    def die(*_: object) -> None:
        raise end

    with monkeypatch.context() as patch:
        patch.setattr(PerpVenue, "measure", die)
        with pytest.raises(end):
            asyncio.run(start(workspace, policy(), on_start=ids.append))
    assert workspace.runs.get(ids[0]).status == status

    again = asyncio.run(resume(workspace, ids[0]))

    assert (again.status, again.digest, again.metrics) == ("complete", whole.digest, whole.metrics)


def test_a_resume_that_fails_over_a_changed_record_does_not_forget_what_was_spent(workspace: Workspace) -> None:
    run_id = stopped_run_id(workspace, standin(), stop_after(20))
    before = workspace.runs.get(run_id)
    with workspace.database.write() as connection:
        connection.exec_driver_sql("UPDATE records SET extra = x'00' WHERE seq = 3")

    with pytest.raises(ReplayMismatch):
        asyncio.run(resume(workspace, run_id))

    after = workspace.runs.get(run_id)
    assert (after.status, after.ticks, after.cost_usd) == ("error", before.ticks, before.cost_usd)
    assert after.wall_s >= before.wall_s
    assert after.error_text is not None
    assert "was changed" in after.error_text


def test_of_two_that_work_on_one_run_the_later_has_it_and_the_earlier_stops(workspace: Workspace) -> None:
    whole = asyncio.run(start(workspace, standin()))
    ids: list[str] = []

    def another_comes() -> bool:
        workspace.runs.claim(ids[0])
        return False

    with pytest.raises(LeaseLost):
        asyncio.run(start(workspace, standin(), Watch(stop=another_comes), ids.append))

    left = workspace.runs.get(ids[0])
    assert (left.status, left.error_text) == ("loading", None)
    assert asyncio.run(resume(workspace, ids[0])).digest == whole.digest


def test_a_run_that_the_full_disk_stopped_says_so_and_goes_on_when_there_is_room(workspace: Workspace) -> None:
    whole = asyncio.run(start(workspace, standin()))
    ids: list[str] = []

    def limit(pages: int) -> None:
        with workspace.database.write_raw() as cursor:  # the connection that commits use
            cursor.execute(f"PRAGMA max_page_count={pages}")

    with workspace.database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    limit(pages + pages // 2)
    with pytest.raises(UserError, match="the disk is full"):
        asyncio.run(start(workspace, standin(), on_start=ids.append))

    stopped = workspace.runs.get(ids[0])
    assert (stopped.status, "the disk is full" in str(stopped.error_text)) == ("error", True)
    assert 0 < stopped.ticks < whole.ticks
    assert stopped.ticks == ledger_of(workspace, stopped).ticks
    assert verify(workspace, stopped.id) == []

    limit(1 << 30)
    assert asyncio.run(resume(workspace, stopped.id)).digest == whole.digest
