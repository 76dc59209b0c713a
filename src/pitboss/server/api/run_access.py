"""What routes and pages take of a request about a run: the run of its path, its index, page and charts, and the conditions of its query."""

from dataclasses import dataclass, field
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request

from pitboss.report.chart_series import ChartSeries
from pitboss.report.shell import ReportPage
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run_index import RowFilter, RunIndex
from pitboss.server.access.caller import OwnWorkspace
from pitboss.server.api.lookup import named_run
from pitboss.server.api.run_reader import RunReader
from pitboss.store.lifecycle import ENDED
from pitboss.store.runs import Run

PATIENCE_S = 0.1
"""How long a request waits for the page of a run before it is answered without."""


async def _reader(request: Request) -> RunReader:
    state = request.app.state
    if not hasattr(state, "run_reader"):
        state.run_reader = RunReader(IndexedRuns())
    return state.run_reader


Reader = Annotated[RunReader, Depends(_reader)]
"""What this server reads of runs, and keeps."""


async def _named_run(run_id: str, workspace: OwnWorkspace) -> Run:
    return await run_sync(named_run, workspace, run_id)


NamedRun = Annotated[Run, Depends(_named_run)]
"""The run of the path."""


async def _index(run: NamedRun, workspace: OwnWorkspace, reader: Reader) -> RunIndex:
    return await reader.index(workspace, run)


IndexOfRun = Annotated[RunIndex, Depends(_index)]
"""The index of the run of the path, with all records that are stored now."""


async def _series(run: NamedRun, workspace: OwnWorkspace, reader: Reader) -> ChartSeries | None:
    return await reader.series(workspace, run, PATIENCE_S) if run.status in ENDED else None


SeriesOfRun = Annotated[ChartSeries | None, Depends(_series)]
"""The series of the charts of the run of the path; None while it is executed, and until its page is composed."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What is shown of a run that has ended: nothing of one without records, and no page yet while it is being composed."""

    is_empty: bool = True
    page: ReportPage | None = None
    index: RunIndex = field(default_factory=RunIndex)
    """That of the whole run if there is a page."""


async def _ended(run: NamedRun, workspace: OwnWorkspace, reader: Reader) -> EndedRun | None:
    if run.status not in ENDED:
        return None
    if run.status != "complete" and not len(await reader.index(workspace, run)):
        return EndedRun()
    # the page first: without it the index is not needed, and its worker is about to write both
    page = await reader.page(workspace, run, PATIENCE_S)
    return EndedRun(is_empty=False) if page is None else EndedRun(False, page, await reader.index(workspace, run))


Ended = Annotated[EndedRun | None, Depends(_ended)]
"""What is shown of the run of the path; None while it is executed."""


def run_tag(run: Run, *parts: object) -> str:
    """The entity tag of something that only a complete run and the query determine; empty for any other run."""
    return "-".join(map(str, (run.id, (run.digest or "")[:16], *parts))) if run.status == "complete" else ""


Word = Annotated[str, Query(max_length=100)]


async def _conditions(
    code: Word = "",
    action: Word = "",
    outcome: Annotated[str, Query(max_length=20, description="An outcome, or `proposed` for all proposals.")] = "",
    flag: Word = "",
    symbol: Word = "",
    text: Annotated[str, Query(max_length=200, description="A part of the reason, in any case.")] = "",
) -> RowFilter:
    return {"code": code, "action": action, "outcome": outcome, "flag": flag, "symbol": symbol, "text": text}


Conditions = Annotated[RowFilter, Depends(_conditions)]
"""Which decisions of a run are wanted, from the query of a request."""
