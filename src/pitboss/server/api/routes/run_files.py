"""`/api/runs/{id}/…`: what is downloaded or streamed of a run: exports, the report, the bundle, the events."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from starlette.background import BackgroundTask

from pitboss.report.shell import html_document
from pitboss.runs.export import lines
from pitboss.runs.pack import write_bundle
from pitboss.runs.report import page_of
from pitboss.runs.stored import journal_of
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run
from pitboss.server.api.tagged import NOT_MODIFIED, not_modified, tag_headers
from pitboss.server.problem import responses

router = APIRouter(prefix="/runs", tags=["runs"], responses=responses(404))

ExportKind = Literal["snapshots", "fills", "trades", "equity", "receipts", "decisions"]
LINES_TYPE = "application/jsonl"
EVENT_TYPE = "text/event-stream"
EVENT_SCHEMA = {
    "type": "object",
    "description": "One event; `data` is JSON.",
    "properties": {
        "event": {"type": "string", "enum": ["progress", "tick", "done"]},
        "data": {"type": "string"},
        "id": {"type": "string", "description": "The number of the record, of ticks only."},
    },
    "required": ["event", "data"],
}


@router.get(
    "/{run_id}/export",
    operation_id="export_run",
    summary="Export a run as JSON lines",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "One JSON object in each line. Amounts are exact decimals in strings.",
            "content": {LINES_TYPE: {"example": '{"at":"2025-02-10T00:05:00Z","equity_usd":"10000"}'}},
        },
        **NOT_MODIFIED,
    },
)
def export_run(
    run_id: str,
    caller: Viewer,
    workspace: OwnWorkspace,
    request: Request,
    what: Annotated[ExportKind, Query(description="What the lines hold.")] = "decisions",
) -> Response:
    """The lines of `pitboss runs export --what`. Exported decisions can be run again."""
    del caller
    run = named_run(workspace, run_id)
    tag = f"{run.digest}-{what}" if run.digest else ""
    if tag and (unchanged := not_modified(request, tag)):
        return unchanged

    exported = lines(what, run, journal_of(workspace, run).records())

    def content() -> Iterator[bytes]:
        for line in exported:
            yield line + b"\n"

    headers = {
        "Content-Disposition": f'attachment; filename="{run.id}-{what}.jsonl"',
        **(tag_headers(tag) if tag else {}),
    }
    return StreamingResponse(content(), headers=headers, media_type=LINES_TYPE)


@router.get(
    "/{run_id}/report",
    operation_id="report_of_run",
    summary="The report of a run as one HTML file",
    response_class=HTMLResponse,
    responses={200: {"description": "A file that opens offline.", "content": {"text/html": {}}}},
)
def report_of_run(
    run_id: str,
    caller: Viewer,
    workspace: OwnWorkspace,
    download: Annotated[bool, Query(description="Offer it as a file to be saved.")] = False,
) -> Response:
    """The same file as `pitboss report` writes."""
    del caller
    run = named_run(workspace, run_id)
    # The document has a policy of its own for its inline script; `sandbox` keeps that from acting in the name of the session.
    headers = {"Content-Security-Policy": "sandbox allow-scripts"}
    if download:
        headers["Content-Disposition"] = f'attachment; filename="pitboss-{run.id}.html"'
    return HTMLResponse(html_document(page_of(workspace, run)), headers=headers)


@router.get(
    "/{run_id}/bundle",
    operation_id="bundle_of_run",
    summary="The complete run as a file",
    response_class=FileResponse,
    responses={
        200: {
            "description": "A zip file for `pitboss runs verify` and `runs import`.",
            "content": {"application/zip": {}},
        }
    },
)
def bundle_of_run(run_id: str, caller: Viewer, workspace: OwnWorkspace) -> Response:
    """The whole run with the replies of its model. It can be verified on any machine."""
    del caller
    run = named_run(workspace, run_id)
    folder = Path(tempfile.mkdtemp(prefix="pitboss-bundle-"))
    try:
        file = folder / f"{run.id}.pitboss.zip"
        asyncio.run(write_bundle(workspace, run.id, file))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        file,
        media_type="application/zip",
        filename=file.name,
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


@router.get(
    "/{run_id}/events",
    operation_id="events_of_run",
    summary="Follow a run",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events `progress`, `tick` and `done`. Ticks have the number of their record as id.",
            "content": {
                EVENT_TYPE: {
                    "schema": EVENT_SCHEMA,
                    "examples": {
                        "progress": {
                            "value": 'event: progress\ndata: {"run_id":"3f9a1c2b4d5e","status":"running","progress_pct":41.5,'
                            '"ticks":1115,"total_ticks":2688,"ticks_per_s":310.0,"cost_usd":0.0,"saved_usd":0.0,'
                            '"wasted_usd":0.0,"speculation":{"asked":40,"used":33},"error_text":null}\n\n'
                        },
                        "tick": {
                            "value": 'event: tick\nid: 12\ndata: {"seq":12,"tick_at":"2025-02-10T06:00:00Z","times":1,'
                            '"outcome":"allowed","action":"open","code":null,"symbol":"BTC","equity_usd":10012.5,'
                            '"equity_at":"2025-02-10T06:00:00Z"}\n\n'
                        },
                    },
                }
            },
        }
    },
)
def events_of_run(
    run_id: str,
    caller: Viewer,
    workspace: OwnWorkspace,
    request: Request,
    after: Annotated[int, Query(ge=-1, le=2**62, description="Only ticks after this record.")] = -1,
    last_event_id: Annotated[str, Header(max_length=30, description="Sent by browsers that connect again.")] = "",
) -> StreamingResponse:
    """Progress about twice a second, the newest ticks, and at the end the document of the run. A run that has ended gives `done`
    at once. At most 256 ticks are sent at a time: of a faster run the newest.
    """
    run = named_run(workspace, run_id)
    if last_event_id.isdecimal() and len(last_event_id) < 19:
        after = int(last_event_id)
    events = request.app.state.run_feeds.stream(workspace, caller.owner, run.id, after)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers, media_type=EVENT_TYPE)
