"""`/api/data`: the series in the lake, their coverage, imports and downloads. The lake is shared by all users of a workspace."""

import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field, create_model

from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.workspace import open_lake
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.core.suggestion import suggestion
from pitboss.data.coverage import coverage
from pitboss.data.demo import write_demo
from pitboss.data.importing import ImportResult, import_paths
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import names as source_names
from pitboss.runs.listing import holdings, times
from pitboss.server.access.caller import Author, Caller, OwnWorkspace, Viewer
from pitboss.server.api.downloads import BackgroundDownload, Downloads
from pitboss.server.api.run_body import read_moment
from pitboss.server.problem import Problem, refused_as, responses

router = APIRouter(prefix="/data", tags=["data"], responses=responses())
MOST_GAPS = 1_000
VenueName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Interval = Literal["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "8h", "12h", "1d"]
Kind = Literal["bars", "funding", "open_interest", "mark", "oracle", "l2", "news", "events", "meta", "listings"]
_FILE_NAME = re.compile(r"[A-Za-z0-9][\w .@=+()-]{0,150}")
MOST_NAME_BYTES = 200
"""File systems take names of 255 bytes."""


class SeriesDocument(BaseModel):
    """A series in the lake."""

    venue: str = Field(examples=["hyperliquid"])
    kind: str = Field(examples=["bars"])
    symbol: str | None = Field(examples=["BTC"])
    interval: str | None = Field(examples=["5m"])
    rows: int = Field(examples=[25920])
    first_at: str | None = Field(examples=["2025-01-01T00:00:00Z"])
    last_at: str | None
    gaps: int = Field(examples=[0])
    synthetic: bool = Field(description="Whether the data was generated.")


class CoveredDay(BaseModel):
    """A UTC day of a series."""

    day: str = Field(examples=["2025-02-10"])
    rows: int = Field(examples=[288])
    missing: float = Field(examples=[0.0], description="The share of the day, 0 to 1, that lies in gaps.")


class MissingSpan(BaseModel):
    """A span without rows."""

    from_at: str
    to_at: str


class CoverageDocument(BaseModel):
    """The coverage of a series by day."""

    days: list[CoveredDay]
    gaps: list[MissingSpan] = Field(description=f"At most {MOST_GAPS}, oldest first.")


_AS_TEXT: dict[str, Any] = {
    "path": (str, Field(examples=["BTC.csv"])),
    "first_at": (str | None, Field(examples=["2025-01-01T00:00:00Z"])),
    "last_at": (str | None, Field(examples=["2025-03-01T00:00:00Z"])),
    "notes": (list[str], Field(description="For the user.")),
}
ImportDocument = create_model(
    "ImportDocument",
    __doc__="What was imported of one series of a file.",
    **{field.name: _AS_TEXT.get(field.name, (field.type, ...)) for field in fields(ImportResult)},
)
"""`ImportResult` with its times as text."""


class NewDownload(BaseModel):
    """What to download. Sources need different parts of it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"source": "hyperliquid", "symbols": ["BTC"], "intervals": ["1h"], "from": "2026-10-01"}]
        },
    )
    source: str = Field(max_length=40, description="hyperliquid, binance, pyth, rss, cryptopanic or calendar.")
    symbols: list[Annotated[str, Field(min_length=1, max_length=40)]] = Field(default_factory=list, max_length=500)
    intervals: list[Interval] = Field(default_factory=list, max_length=11)
    kinds: list[Kind] = Field(default_factory=list, max_length=10, description="By default those that are usual.")
    from_: str = Field("", alias="from", max_length=40)
    to: str = Field("", max_length=40, description="End, exclusive; now if empty.")
    urls: list[Annotated[str, Field(max_length=2_000, pattern=r"^https?://")]] = Field(
        default_factory=list, max_length=50, description="Addresses of feeds or calendars. Needs the role operator."
    )
    files: bool = Field(False, description="Published files instead of the API (binance).")
    venue: VenueName | None = Field(None, description="Venue under which the data is stored; the source's by default.")
    replace: bool = Field(False, description="New rows replace stored ones that differ. Needs the role operator.")


class DownloadDocument(BaseModel):
    """A download in the background of the server."""

    download_id: str = Field(examples=["5c24aa01"])
    source: str
    symbols: list[str]
    intervals: list[str]
    status: Literal["running", "complete", "error", "cancelled"]
    progress_pct: float
    label: str = Field(description="The series that is being fetched.")
    added_rows: int
    error_text: str
    hint: str
    began_at: str
    results: list[dict[str, Any]]


@router.get("", operation_id="list_data", summary="List the series in the lake")
def list_data(caller: Viewer, workspace: OwnWorkspace) -> list[SeriesDocument]:
    """Every series with its extent and its number of gaps."""
    del caller
    return [SeriesDocument(**row) for row in holdings(workspace.lake)]


@router.get("/coverage", operation_id="data_coverage", summary="Coverage of a series by day", responses=responses(404))
def data_coverage(
    caller: Viewer,
    workspace: OwnWorkspace,
    venue: Annotated[str, Query(min_length=1, max_length=60)],
    kind: Annotated[str, Query(max_length=40)] = "bars",
    symbol: Annotated[str, Query(max_length=60)] = "",
    interval: Annotated[str, Query(max_length=10)] = "",
) -> CoverageDocument:
    """The rows of each day from the first to the last, and the gaps between rows."""
    del caller
    named = [(row["venue"], row["kind"], row["symbol"] or "", row["interval"] or "") for row in _names(workspace)]
    if (venue, kind, symbol, interval) not in named:
        raise Problem(404, "not_found", "there is no such series", "`GET /api/data` lists them")
    covered = coverage(workspace.lake, kind, venue, symbol or None, interval or None)
    return CoverageDocument(
        days=[CoveredDay(day=iso(day.day_at)[:10], rows=day.rows, missing=day.missing) for day in covered.days],
        gaps=[MissingSpan(from_at=iso(gap.from_at), to_at=iso(gap.to_at)) for gap in covered.gaps[:MOST_GAPS]],
    )


async def _uploaded(
    request: Request, name: Annotated[str, Query(description="Its name, such as BTC.csv.")]
) -> AsyncIterator[Path]:
    """The body of the request in a file of its own, removed after the response."""
    if not _FILE_NAME.fullmatch(name) or len(name.encode()) > MOST_NAME_BYTES:
        raise UserError(
            "name: not the name of a file",
            "for example BTC.csv, without folders: letters, digits, spaces and . _ @ = + - ( )",
        )
    folder = Path(tempfile.mkdtemp(prefix="pitboss-upload-"))
    try:
        file = folder / name
        with file.open("wb") as writing:
            async for chunk in request.stream():  # the gate limits its size
                writing.write(chunk)
        if not file.stat().st_size:
            raise UserError("the body is empty", "send the content of the file as the body")
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@router.post(
    "/import",
    operation_id="import_data",
    summary="Import a file",
    response_model=list[ImportDocument],
    responses=responses(413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The content of the file: parquet, CSV, CSV.gz, feather, JSON lines, zip with one CSV.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def import_data(
    caller: Author,
    workspace: OwnWorkspace,
    file: Annotated[Path, Depends(_uploaded)],
    kind: Annotated[Kind | None, Query(description="What the rows are; by default as the columns say.")] = None,
    symbol: Annotated[str, Query(max_length=40, description="Symbol, such as BTC.")] = "",
    interval: Annotated[Interval | None, Query(description="Length of a bar.")] = None,
    venue: Annotated[VenueName, Query(description="Venue under which the data is stored.")] = "hyperliquid",
    replace: Annotated[bool, Query(description="New rows replace stored ones. Needs the role operator.")] = False,
) -> list[BaseModel]:
    """Send the file as the body. All of it is stored, or nothing; importing the same rows again changes nothing."""
    _require_operator(caller, replace, "replace")
    lake = open_lake(workspace.settings, writing=True)
    imported = import_paths(lake, [file], kind, symbol or None, interval, venue, replace, None, workspace.now())
    return [
        ImportDocument(**times({**asdict(result), "path": file.name, "notes": list(result.notes)}))
        for result in imported
    ]


@router.post("/demo", operation_id="write_demo_data", summary="Generate the demo market")
def write_demo_data(caller: Author, workspace: OwnWorkspace) -> list[SeriesDocument]:
    """BTC, ETH and SOL, 90 days of 5m bars, as the venue `demo`. It is synthetic."""
    del caller
    written = write_demo(open_lake(workspace.settings, writing=True))
    return [SeriesDocument(**times(asdict(info)), synthetic=True) for info in written]


@router.post(
    "/download",
    status_code=202,
    operation_id="start_download",
    summary="Download data from its publisher",
    responses=responses(409),
)
def start_download(body: NewDownload, caller: Author, workspace: OwnWorkspace, request: Request) -> DownloadDocument:
    """Begin a download in the background of the server. Only missing rows are requested; the same request continues it."""
    _require_operator(caller, body.replace, "replace")
    _require_operator(caller, bool(body.urls), "urls")
    if body.source not in source_names():
        raise UserError(f"unknown source {body.source!r}", suggestion(body.source, source_names()))
    download = BackgroundDownload(
        new_id(),
        caller.owner,
        body.source,
        DownloadRequest(
            body.venue or "",
            tuple(dict.fromkeys(body.symbols)),
            tuple(dict.fromkeys(body.intervals)),
            tuple(dict.fromkeys(body.kinds)),
            read_moment("from", body.from_, workspace.now) if body.from_ else 0,
            read_moment("to", body.to, workspace.now) if body.to else 0,
            "",
            tuple(body.urls),
            body.files,
        ),
        workspace.now(),
    )
    lake = open_lake(workspace.settings, writing=True)
    with refused_as(409, "conflict"):
        _downloads(request).start(download, lake, workspace.settings, body.replace)
    return DownloadDocument(**download.document())


@router.get("/downloads", operation_id="list_downloads", summary="List downloads")
def list_downloads(caller: Viewer, request: Request) -> list[DownloadDocument]:
    """The downloads since the server was started, newest first."""
    return [DownloadDocument(**download.document()) for download in _downloads(request).listed(caller.owner)]


@router.get(
    "/downloads/{download_id}", operation_id="show_download", summary="Show a download", responses=responses(404)
)
def show_download(download_id: str, caller: Viewer, request: Request) -> DownloadDocument:
    """The progress of a download, and its result when it has ended."""
    return DownloadDocument(**_named(request, caller, download_id).document())


@router.post(
    "/downloads/{download_id}/cancel",
    operation_id="cancel_download",
    summary="Cancel a download",
    responses=responses(404),
)
def cancel_download(download_id: str, caller: Author, request: Request) -> DownloadDocument:
    """Stop a download. The rows that it has stored are kept."""
    download = _named(request, caller, download_id)
    download.stop()
    return DownloadDocument(**download.document())


def _named(request: Request, caller: Caller, download_id: str) -> BackgroundDownload:
    download = _downloads(request).get(caller.owner, download_id)
    if download is None:
        raise Problem(404, "not_found", "there is no such download", "the list is empty after a restart of the server")
    return download


def _downloads(request: Request) -> Downloads:
    return request.app.state.downloads


def _names(workspace: OwnWorkspace) -> list[dict[str, Any]]:
    return [asdict(files) for files in workspace.lake.series_files()]


def _require_operator(caller: Caller, wanted: bool, name: str) -> None:
    if wanted and not caller.may("operator"):
        raise Problem(403, "forbidden", f"{name} needs the role operator; {caller.name} is {caller.role}")
