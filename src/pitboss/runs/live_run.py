"""Runs an agent live, on any venue: the live driver with a stored run, its model, its status endpoint and stop signals.

A live run is stored, hash-chained and resumed from its last committed record like any other run. One process at a time
works on it: a file lock, released by the operating system when the process exits, prevents a second process on the same
machine, and the run's lease prevents any other.

A venue supplies a `LiveSide`: its world source, its ports, and what its status says. Everything of it opens before
anything is stored, so a mistake or an occupied port leaves no run behind.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from pitboss import __version__
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.live_process import CancelPoll, StopCause, exclusive_run, stop_signals
from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.live.board import Board
from pitboss.live.control import Control
from pitboss.live.status import serving
from pitboss.runs.live_session import Driving, Listener, LivePlan, LiveSide, StoredLiveRun, work_live
from pitboss.runs.venue import Venue
from pitboss.sim.request import BacktestRequest
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import to_plain
from pitboss.skill.schema import SkillDocument
from pitboss.store.runs import Run
from pitboss.store.skills import StoredSkill


@dataclass(frozen=True, slots=True)
class LiveRunResult:
    """The state of a live run when this process stops working on it."""

    run: Run
    how: StopCause
    board: Board


OpenSide = Callable[[Callable[[str], None]], AbstractAsyncContextManager[LiveSide]]
"""Opens the venue's part; its argument shows a remark to the user."""


async def run_live(
    workspace: Workspace, open_side: OpenSide, host: str, port: int, listener: Listener
) -> LiveRunResult:
    """Start or resume a live run, until its number of ticks is reached or a stop is requested."""
    page, board, clock = _Page(), Board(), SystemClock()
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(page.document, page.health, host, port, REDACTOR.redact))

        def notify(message: str) -> None:
            listener.entry(board.remark(clock.now(), message), board)

        side = await stack.enter_async_context(open_side(notify))
        run_id = _run_of(workspace, side.plan)
        with exclusive_run(workspace.home, run_id):
            epoch = workspace.runs.claim(run_id, into="running")
            stop = await stack.enter_async_context(stop_signals())
            cancelled = CancelPoll(
                lambda: workspace.runs.cancel_requested(run_id), lambda: workspace.runs.heartbeat(run_id, epoch)
            )
            stored_run = StoredLiveRun(workspace, run_id, epoch, address, board)
            how = await work_live(stored_run, side, Driving(stop, cancelled, Control(), page.show, listener))
        return LiveRunResult(workspace.runs.get(run_id), how, board)


class _Page:
    """Content of the status endpoint; empty until the run has started."""

    def __init__(self) -> None:
        self.tell: Callable[[], dict[str, Any]] = dict

    def show(self, tell: Callable[[], dict[str, Any]]) -> None:
        """Set where the content comes from."""
        self.tell = tell

    def document(self) -> dict[str, Any]:
        """Return the body of `/status`."""
        return self.tell()

    def health(self) -> dict[str, Any]:
        """Return the body of `/health`."""
        return {"ok": True}


# Stored run -----------------------------------------------------------------------------------------------------------


def _run_of(workspace: Workspace, plan: LivePlan) -> str:
    """Return the run to work on: an unfinished run with the same configuration, or a new one."""
    if plan.begin != "new":
        unfinished = _unfinished(workspace, plan)
        if unfinished is not None:
            decider_source.check_unchanged(workspace, unfinished.params)
            return unfinished.id
        if plan.begin == "resume":
            raise UserError(
                "there is no unfinished run of this skill with this model, account and time between ticks",
                "omit --resume to start one",
            )
    run_id, _ = create_run(workspace, plan.venue, plan.skill, plan.request, {**_identity(plan), **plan.params})
    return run_id


def create_run(
    workspace: Workspace, venue: Venue, skill: SkillDocument, request: BacktestRequest, more: Mapping[str, Any]
) -> tuple[str, StoredSkill]:
    """Store a new live run; returns its id and the stored version of its skill. `more` are further parameters."""
    params: dict[str, Any] = {
        **codec.plain(replace(request, skill={})),
        "venue": venue.name,
        **more,
        **decider_source.model_params(workspace, request, skill),
        "skill": codec.number_fragments(to_plain(skill)),
        "version": __version__,
    }
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(skill.normal()))
    name = decider_source.model_name(request, params)
    return workspace.runs.create(saved.id, saved.version, name, params), saved


def _identity(plan: LivePlan) -> dict[str, Any]:
    return {
        "venue": plan.venue.name,
        "skill_digest": skill_digest(plan.skill),
        "model": plan.model,
        "every_ms": plan.every_ms,
        **plan.identity,
    }


def _unfinished(workspace: Workspace, plan: LivePlan) -> Run | None:
    expected = _identity(plan)
    for run in workspace.runs.listing(1_000).runs:
        params = {**plan.earlier_identity, **run.params}
        if (
            run.status == "complete"
            or "deployed" in params
            or any(params.get(name) != value for name, value in expected.items())
        ):
            continue
        if run.status == "error" and plan.begin == "auto":
            raise UserError(
                f"run {run.id} of this skill ended in error: {run.error_text}",
                "--resume continues it, --new starts another",
            )
        return run
    return None
