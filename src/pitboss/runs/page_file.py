"""Write HTML pages to files, and link them to the reports of runs."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pitboss.bootstrap.machine import new_id
from pitboss.core.errors import UserError


def write_page_file(html: str, path: Path, make_folder: bool) -> Path:
    """Write a page and return its absolute path. Only `make_folder` creates the folder that it is in.

    A reader sees the file as it was before or as it is afterwards, never a part of it.
    """
    path = path.absolute()
    if not path.name:
        raise UserError(f"{path} is a folder", "name a file with --out")
    # a unique name, because another process may write the same page
    part = path.with_name(f".{path.name}.{new_id()[:8]}.part")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(html, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None
    finally:
        with suppress(OSError):
            part.unlink()  # also after an interrupt
    return path


def with_report_link(run: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The document of a run with a link, relative to `folder`, to its report if that exists."""
    report = run.get("report")
    if not report or not Path(report).is_file():
        return dict(run)
    return {**run, "href": quote(os.path.relpath(report, folder))}
