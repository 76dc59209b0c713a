"""What routes and pages read of runs: the indexes, composed pages and chart series that the server keeps, and the conditions of a query."""

from typing import Annotated

from fastapi import Depends, Query, Request

from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run_index import RowFilter
from pitboss.store.runs import Run

Word = Annotated[str, Query(max_length=100)]


def _indexed_runs(request: Request) -> IndexedRuns:
    state = request.app.state
    if not hasattr(state, "indexed_runs"):
        state.indexed_runs = IndexedRuns()
    return state.indexed_runs


Indexed = Annotated[IndexedRuns, Depends(_indexed_runs)]
"""The indexes of runs that this server keeps."""


def run_tag(run: Run, *parts: object) -> str:
    """The entity tag of something that only a complete run and the query determine; empty for any other run."""
    return "-".join(map(str, (run.id, (run.digest or "")[:16], *parts))) if run.status == "complete" else ""


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
