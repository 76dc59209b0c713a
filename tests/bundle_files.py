"""Reads, writes, imports and forges bundle files."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import parse_instant
from pitboss.runs.bundle import MANIFEST, MEMBERS, seal_of
from pitboss.runs.unpack import ImportedBundle, import_bundle, open_checked

FROM, TO, END = (parse_instant(f"2025-03-{day}") for day in ("27", "28", "31"))
KEY = "a" * 64
Contents = dict[str, bytes]


def import_file(workspace: Workspace, path: Path, with_answers: bool = True) -> ImportedBundle:
    with open_checked(path) as bundle:
        return import_bundle(workspace, bundle, with_answers)


def read_members(path: Path) -> Contents:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def write_members(members: Contents, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return path


def forge_bundle(whole: Path, path: Path, change: Callable[[Contents, dict[str, Any]], None]) -> Path:
    """A bundle with a change and recomputed digests, as a forger would write it."""
    members = read_members(whole)
    manifest = json.loads(members[MANIFEST])
    change(members, manifest)
    for name in MEMBERS:
        data = members[name]
        manifest["contents"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    manifest["seal"] = seal_of(manifest)
    members[MANIFEST] = codec.dumps(manifest)
    return write_members(members, path)
