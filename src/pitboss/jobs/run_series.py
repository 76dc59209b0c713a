"""The series of a finished run that comparisons need: its daily returns and the latencies of its model calls.

Computed from the run's records, which takes a while, and cached in a file beside the database under the run's digest; so are
slow statistics over all runs of a study. The cache can be deleted at any time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.curve import columns
from pitboss.core.snapshot import Record
from pitboss.runs.stored import journal_of
from pitboss.runs.venues import venue_of
from pitboss.sim.metrics import daily_returns
from pitboss.store.runs import Run
from pitboss.store.studies import StudyRun

FORM, LUCK_FORM = 1, 2
"""Versions of the cached formats; an entry of another version is computed again."""


@dataclass(frozen=True, slots=True)
class RunSeries:
    """The daily returns of one run, and the latencies of the model calls that were really made, in milliseconds."""

    returns: tuple[float, ...]
    calls: int = 0
    latency_ms: float | None = None
    slow_ms: float | None = None
    """The 95th percentile."""


def load_series(workspace: Workspace, study_id: str, runs: Sequence[Run | StudyRun]) -> dict[str, RunSeries]:
    """The series of complete runs, by id."""
    stored = _read(_file(workspace, study_id))
    by_id: dict[str, RunSeries] = {}
    computed: list[tuple[str, RunSeries]] = []
    for run in runs:
        if run.status != "complete" or run.digest is None:
            continue
        # The digest covers every equity point; latencies differ between runs of the same digest.
        key = series_key(run.id, run.digest)
        series = stored.get(key)
        if series is None:
            series = compute_series(workspace, run if isinstance(run, Run) else workspace.runs.get(run.id))
            computed.append((key, series))
        by_id[run.id] = series
    if computed:
        save_series(workspace, study_id, computed)
    return by_id


def series_key(run_id: str, digest: str) -> str:
    """The key of a series in the cache."""
    return f"{run_id}/{digest}"


def compute_series(workspace: Workspace, run: Run) -> RunSeries:
    """Compute the series from the records of a run."""
    venue, waits = venue_of(run.params["skill"]), list[float]()

    def with_latencies(records: Iterable[Record]) -> Iterable[Record]:
        for record in records:
            if record.kind == "tick":
                steps = codec.loads(record.extra).get("steps") or ()
                waits.extend(float(step["latency_ms"]) for step in steps if step.get("latency_ms"))
            yield record

    ledger = venue.read_ledger(with_latencies(journal_of(workspace, run).records()))
    at, usd = columns(ledger.equity)
    returns = daily_returns(float(run.params["equity_usd"]), at, usd)
    waits.sort()
    slow = waits[min(len(waits) - 1, int(0.95 * len(waits)))] if waits else None
    return RunSeries(tuple(returns), len(waits), median(waits) if waits else None, slow)


def cached(workspace: Workspace, study_id: str, runs: Sequence[StudyRun], compute: Callable[[], Any]) -> Any:
    """The result of `compute`, a plain value that depends on the results of these runs only; cached until they change."""
    file = workspace.home / "studies" / f"{study_id}.luck"
    name = codec.digest([LUCK_FORM, [[run.id, run.digest, run.mark.get("trial", 0)] for run in runs]])
    try:
        entry = codec.loads(file.read_bytes())
        if entry["of"] == name:
            return entry["found"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not cached yet, or a process was stopped while writing it
    result = compute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(codec.dumps({"of": name, "found": result}))
    except OSError:
        pass  # it is computed again next time
    return result


def _file(workspace: Workspace, study_id: str) -> Path:
    return workspace.home / "studies" / f"{study_id}.jsonl"


def _read(file: Path) -> dict[str, RunSeries]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return {}
    stored: dict[str, RunSeries] = {}
    for line in lines:
        try:
            entry: Mapping[str, Any] = codec.loads(line)
            if entry["form"] == FORM:
                stored[entry["run"]] = RunSeries(
                    tuple(entry["returns"]), entry["calls"], entry["latency_ms"], entry["slow_ms"]
                )
        except (ValueError, KeyError, TypeError):
            continue  # half a line of a process that was stopped while writing it
    return stored


def save_series(workspace: Workspace, study_id: str, computed: Sequence[tuple[str, RunSeries]]) -> None:
    """Add series to the cache. Does nothing where the file cannot be written."""
    file = _file(workspace, study_id)
    lines = [
        codec.dumps(
            {
                "form": FORM,
                "run": key,
                "returns": list(series.returns),
                "calls": series.calls,
                "latency_ms": series.latency_ms,
                "slow_ms": series.slow_ms,
            }
        )
        for key, series in computed
    ]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as out:
            out.write(b"".join(line + b"\n" for line in (b"", *lines)))  # the empty line ends a half-written one
    except OSError:
        return  # it is computed again next time
