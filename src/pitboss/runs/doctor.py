"""What is installed, reachable and misconfigured: the checks of `pitboss doctor`. Nothing is created or changed, no key is shown."""

import asyncio
import platform
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

from pitboss import __version__
from pitboss.bootstrap.key_entries import known_keys
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import has_database, lake_of, look_into, open_existing
from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.core.noun import noun
from pitboss.models import catalog
from pitboss.report.figures import plural
from pitboss.runs.venues import installed
from pitboss.store.migrate import OutdatedDatabase
from pitboss.store.migrations import HEAD

State = Literal["ok", "warn", "fail"]
LITTLE_SPACE, NO_SPACE = 5_000_000_000, 200_000_000
"""Bytes of free disk below which a warning, or a failure, is reported."""
_EXTRA = re.compile(r"""^([A-Za-z0-9_.-]+).*extra\s*==\s*['"]([\w-]+)['"]""")


@noun
class Diagnosis:
    """The result of one check. `hint` is what to do about it; empty where nothing needs to be done."""

    name: str
    state: State
    detail: str
    hint: str = ""


def diagnose(read_settings: Callable[[], Settings], model: str = "") -> Iterator[Diagnosis]:
    """Check everything, one after the other. `model` is also sent one small request, as `models test` does."""
    yield Diagnosis(
        "versions",
        "ok",
        f"pitboss {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.system()} {platform.machine()}",
    )
    yield _extras()
    yield Diagnosis("venues", "ok", ", ".join(installed()))
    try:
        settings = read_settings()
    except UserError as error:
        yield Diagnosis("settings", "fail", error.message, error.hint or "")
        return
    yield Diagnosis("settings", "ok", f"workspace {settings.home}")
    yield _guarded("keys", lambda: _keys(settings))
    yield _guarded("database", lambda: _database(settings))
    yield _guarded("data", lambda: _data(settings))
    yield _guarded("disk", lambda: _disk(settings.home))
    if model:
        yield _guarded("model", lambda: _model(settings, model))


def diagnosis_document(checks: list[Diagnosis]) -> dict[str, Any]:
    """The checks as JSON: `{ok, checks: [{name, state, ok, detail, hint}]}`; `ok` unless something is broken."""
    rows = [
        {"name": each.name, "state": each.state, "ok": each.state != "fail", "detail": each.detail, "hint": each.hint}
        for each in checks
    ]
    return {"ok": all(row["ok"] for row in rows), "checks": rows}


def _guarded(name: str, work: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return work()
    except UserError as error:
        return Diagnosis(name, "fail", error.message, error.hint or "")
    except (TransientError, InvariantError, BudgetExceeded, OSError) as error:
        return Diagnosis(name, "fail", str(error))


def _extras() -> Diagnosis:
    """Which optional parts are installed, from the metadata of the package."""
    try:
        matches = [match for line in requires("pitboss") or () if (match := _EXTRA.match(line))]
    except PackageNotFoundError:
        return Diagnosis("extras", "warn", "pitboss is not installed as a package", "install it with pip")
    present: dict[str, bool] = {}
    for match in matches:
        present[match[2]] = present.get(match[2], True) and _is_installed(match[1])
    missing = [name for name, is_there in sorted(present.items()) if not is_there]
    there = ", ".join(name for name, is_there in sorted(present.items()) if is_there) or "none"
    if not missing:
        return Diagnosis("extras", "ok", there)
    return Diagnosis(
        "extras", "ok", f"{there}; not installed: {', '.join(missing)}", f"pip install 'pitboss[{missing[0]}]'"
    )


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _keys(settings: Settings) -> Diagnosis:
    rows = [row for row in known_keys(settings) if row["in_environment"] or row["set_at"]]
    names = [f"{row['name']} ({'environment' if row['in_environment'] else 'stored'})" for row in rows]
    if not names:
        return Diagnosis(
            "keys",
            "warn",
            "none; programs and models on this machine need none",
            "`pitboss secrets set groq` stores one",
        )
    return Diagnosis("keys", "ok", ", ".join(names))


def _database(settings: Settings) -> Diagnosis:
    if not has_database(settings):
        return Diagnosis("database", "ok", "none yet; it is created when something is first stored")
    try:
        with look_into(settings) as workspace:
            runs = sum(workspace.runs.count().values())
            return Diagnosis(
                "database", "ok", f"{workspace.database.location}, migration {HEAD} (the newest), {plural(runs, 'run')}"
            )
    except OutdatedDatabase as error:
        return Diagnosis("database", "warn", error.message, error.hint or "")


def _data(settings: Settings) -> Diagnosis:
    from pitboss.data.quality import check_lake

    lake = lake_of(settings)
    if settings.lake:
        return Diagnosis("data", "ok", f"{plural(len(lake.list()), 'series', 'series')} at {settings.lake}")
    folder = settings.home / "lake"
    if not lake.venues():
        return Diagnosis("data", "warn", f"none in {folder}", "`pitboss data demo` generates some")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    findings = check_lake(lake)
    unusable = {finding.file for finding in findings if not finding.usable}
    content = f"{plural(len(lake.series_files()), 'series', 'series')}, {size / 1e6:,.1f} MB"
    if unusable:
        examples = ", ".join(sorted(unusable)[:3])
        return Diagnosis(
            "data", "fail", f"{content}; {plural(len(unusable), 'bad file')}: {examples}", "`pitboss data check`"
        )
    warnings = sum(finding.severity == "warning" for finding in findings)
    if warnings:
        return Diagnosis("data", "warn", f"{content}; {plural(warnings, 'warning')}", "`pitboss data check`")
    return Diagnosis("data", "ok", content)


def _disk(home: Path) -> Diagnosis:
    existing = next(folder for folder in (home, *home.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    state: State = "ok" if free >= LITTLE_SPACE else "warn" if free >= NO_SPACE else "fail"
    hint = "" if state == "ok" else "`pitboss runs prune` removes old runs"
    return Diagnosis("disk", state, f"{free / 1e9:,.1f} GB free at {existing}", hint)


def _model(settings: Settings, name: str) -> Diagnosis:
    from pitboss.bootstrap.model_stack import try_model

    if not catalog.describe(name).is_model:
        return Diagnosis("model", "ok", f"{name} is a program; nothing has to be reached")
    with open_existing(settings) as workspace:
        result = asyncio.run(try_model(workspace, name))
    answered = f"{result['answered_as'] or name} at {result['host']} answered after {result['latency_ms']:,.0f} ms"
    if result["kept_to_it"]:
        return Diagnosis("model", "ok", answered)
    problem = result["problem"] or "it did not follow the required format"
    return Diagnosis("model", "fail", f"{answered}; {problem}", f"`pitboss models test {name}` shows more")
