"""What routes and pages read of runs: the indexes, composed pages and chart series that the server keeps."""

from typing import Annotated

from fastapi import Depends, Request

from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.store.runs import Run


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
