"""What a finished run went through, in the few numbers that comparing many of them takes: daily returns, time to answer.

Read from the run's records, which takes a while, and kept beside the database under the run's digest, so that it is done
once; so is what takes long to work out of the returns of all. What is kept can be thrown away at any time: it is worked out
again.
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
"""What is kept in another form is worked out again."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Of one run: its daily returns, and how long answers took that were really asked for, in milliseconds."""

    returns: tuple[float, ...]
    calls: int = 0
    latency_ms: float | None = None
    slow_ms: float | None = None
    """The 95th percentile."""


def traces(workspace: Workspace, study_id: str, runs: Sequence[Run | StudyRun]) -> dict[str, Trace]:
    """The traces of complete runs, by id."""
    kept = _kept(_file(workspace, study_id))
    found: dict[str, Trace] = {}
    fresh: list[tuple[str, Trace]] = []
    for run in runs:
        if run.status != "complete" or run.digest is None:
            continue
        # A digest covers every equity point; what answers cost and took is each run's own.
        name = name_of(run.id, run.digest)
        trace = kept.get(name)
        if trace is None:
            trace = trace_of(workspace, run if isinstance(run, Run) else workspace.runs.get(run.id))
            fresh.append((name, trace))
        found[run.id] = trace
    if fresh:
        keep(workspace, study_id, fresh)
    return found


def name_of(run_id: str, digest: str) -> str:
    """What a trace is kept under."""
    return f"{run_id}/{digest}"


def trace_of(workspace: Workspace, run: Run) -> Trace:
    """From the records of a run."""
    venue, waits = venue_of(run.params["skill"]), list[float]()

    def passing(records: Iterable[Record]) -> Iterable[Record]:
        for record in records:
            if record.kind == "tick":
                steps = codec.loads(record.extra).get("steps") or ()
                waits.extend(float(step["latency_ms"]) for step in steps if step.get("latency_ms"))
            yield record

    ledger = venue.read_ledger(passing(journal_of(workspace, run).records()))
    at, usd = columns(ledger.equity)
    returns = daily_returns(float(run.params["equity_usd"]), at, usd)
    waits.sort()
    slow = waits[min(len(waits) - 1, int(0.95 * len(waits)))] if waits else None
    return Trace(tuple(returns), len(waits), median(waits) if waits else None, slow)


def once(workspace: Workspace, study_id: str, runs: Sequence[StudyRun], make: Callable[[], Any]) -> Any:
    """What `make` gives, a plain value that follows from what these runs came to; kept until they are others."""
    file = workspace.home / "studies" / f"{study_id}.luck"
    name = codec.digest([LUCK_FORM, [[run.id, run.digest, run.mark.get("trial", 0)] for run in runs]])
    try:
        kept = codec.loads(file.read_bytes())
        if kept["of"] == name:
            return kept["found"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nobody has asked yet, or somebody was stopped while writing it
    found = make()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(codec.dumps({"of": name, "found": found}))
    except OSError:
        pass  # next time it is worked out again
    return found


def _file(workspace: Workspace, study_id: str) -> Path:
    return workspace.home / "studies" / f"{study_id}.jsonl"


def _kept(file: Path) -> dict[str, Trace]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return {}
    found: dict[str, Trace] = {}
    for line in lines:
        try:
            said: Mapping[str, Any] = codec.loads(line)
            if said["form"] == FORM:
                found[said["run"]] = Trace(tuple(said["returns"]), said["calls"], said["latency_ms"], said["slow_ms"])
        except (ValueError, KeyError, TypeError):
            continue  # half a line, of one who was stopped while writing it
    return found


def keep(workspace: Workspace, study_id: str, fresh: Sequence[tuple[str, Trace]]) -> None:
    """Keep traces under their names. Where that is not possible nothing is kept."""
    file = _file(workspace, study_id)
    lines = [
        codec.dumps(
            {
                "form": FORM,
                "run": name,
                "returns": list(trace.returns),
                "calls": trace.calls,
                "latency_ms": trace.latency_ms,
                "slow_ms": trace.slow_ms,
            }
        )
        for name, trace in fresh
    ]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as out:
            out.write(b"".join(line + b"\n" for line in (b"", *lines)))  # after half a line of somebody else's
    except OSError:
        return  # next time it is worked out again
