"""Files that are computed from a complete run and can be computed again: its index, its composed page, the series of its charts.

They are in the cache folder of the workspace. Their names contain the digest of the run and the version of pitboss; a file that is
missing or damaged is no error, and one that cannot be written is left out.
"""

import hashlib
import io
import json
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import zstandard

from pitboss import __version__
from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.workspace import Workspace
from pitboss.report.chart_series import ChartSeries
from pitboss.report.markup import Html
from pitboss.report.shell import ReportPage
from pitboss.store.runs import Run

FORMAT = 1
"""Of the files; files of other formats are not read."""
INDEX, PAGE, SERIES = "index", "page", "series"
KINDS = (INDEX, PAGE, SERIES)
LEVEL = 3
_DIGEST = 64


def path_of(workspace: Workspace, run: Run, kind: str) -> Path:
    """Where a file of a run is."""
    return workspace.run_cache / f"{run.id}-{(run.digest or '')[:16]}-{kind}-{__version__}-{FORMAT}.zst"


def are_stored(workspace: Workspace, run: Run) -> bool:
    """Whether all files of a run are there."""
    return all(path_of(workspace, run, kind).is_file() for kind in KINDS)


def write(workspace: Workspace, run: Run, kind: str, data: bytes) -> None:
    """Write a file of a run, whole or not at all; a folder that cannot be written to is ignored."""
    body = zstandard.ZstdCompressor(level=LEVEL).compress(data)
    path = path_of(workspace, run, kind)
    part = path.with_name(f".{path.name}.{new_id()[:8]}.part")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(hashlib.sha256(body).hexdigest().encode() + body)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def read(workspace: Workspace, run: Run, kind: str) -> bytes | None:
    """Read a file of a run; None if it is missing or its content is not what was written."""
    try:
        data = path_of(workspace, run, kind).read_bytes()
    except OSError:
        return None
    digest, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    return zstandard.ZstdDecompressor().decompress(body)


def page_bytes(page: ReportPage) -> bytes:
    """A composed page without the series of its charts, which are a file of their own."""
    return json.dumps(
        {
            "name": page.name,
            "top": list(page.top),
            "paragraphs": [[isinstance(each, Html), str(each)] for each in page.paragraphs],
            "parts": [list(part) for part in page.parts],
            "foot": page.foot,
            "style": page.style,
            "shapes": page.shapes,
        }
    ).encode()


def read_page(data: bytes) -> ReportPage:
    """The inverse of `page_bytes`."""
    stored = json.loads(data)
    return ReportPage(
        stored["name"],
        [Html(each) for each in stored["top"]],
        [Html(text) if is_html else text for is_html, text in stored["paragraphs"]],
        [(key, short, name, Html(content)) for key, short, name, content in stored["parts"]],
        stored["foot"],
        stored["style"],
        Html(stored["shapes"]),
    )


def series_bytes(series: ChartSeries) -> bytes:
    """The series of a run's charts as the bytes of an `npz` file."""
    names = {"baselines": list(series.baselines), "prices": list(series.prices)}
    file = io.BytesIO()
    arrays = [*series.baselines.values(), *series.prices.values()]
    np.savez(
        file,
        allow_pickle=False,
        names=np.frombuffer(json.dumps(names).encode(), np.uint8),
        **{f"a{number}": array for number, array in enumerate(arrays)},
    )
    return file.getvalue()


def read_series(data: bytes) -> ChartSeries:
    """The inverse of `series_bytes`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        names = json.loads(file["names"].tobytes())
        arrays = iter([file[f"a{number}"] for number in range(len(names["baselines"]) + len(names["prices"]))])
        return ChartSeries(
            {name: next(arrays) for name in names["baselines"]}, {name: next(arrays) for name in names["prices"]}
        )
