"""The lineage of a run: the run that it was forked from, and the model that decided each part of it.

`fork` stores it in the parameters of the branch, so that it is still there when the source run is deleted or the
branch is in another workspace. Branches of earlier versions hold no models; theirs are unknown, never guessed. The
parameters of an imported run are untrusted, so every reader tolerates any value.
"""

from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.models.providers import PROGRAMS
from pitboss.store.runs import Run

FORKED_FROM = "forked_from"
"""The parameter that describes the fork."""


def fork_record(source: Run, tick_at: Instant, seq: int) -> dict[str, Any]:
    """What a branch of `source` stores. `tick_at` is the first tick of its own, `seq` the number of its first record."""
    earlier = [part for part in decided_by(source) if parse_instant(part["from"]) < tick_at]
    return {
        "run_id": source.id,
        "at": iso(tick_at),
        "seq": seq,
        "digest": source.digest,
        "model": source.model,
        "decided_by": [{"model": part["model"], "from": part["from"]} for part in earlier],
    }


def forked_from(run: Run) -> dict[str, Any] | None:
    """The source of a fork, the first tick that was decided again, and the source's model (None if not stored)."""
    stored = _stored(run)
    if stored is None:
        return None
    return {"run_id": _text(stored.get("run_id")), "tick_at": iso(_tick(stored)), "model": _text(stored.get("model"))}


def fork_point(run: Run) -> tuple[str, Instant] | None:
    """The id of the run that a fork was made from, and the first tick of its own; None if it is none or that is not stored."""
    stored = _stored(run)
    source_id = None if stored is None else _text(stored.get("run_id"))
    return None if stored is None or source_id is None else (source_id, _tick(stored))


def decided_by(run: Run) -> list[dict[str, Any]]:
    """The parts of a run in order, each with its model (None if not stored), its start and its end."""
    start, end = run.params["from_at"], run.params["to_at"]
    stored = _stored(run)
    parts: list[tuple[str | None, Instant]] = []
    if stored is not None and _tick(stored) > start:
        parts = _earlier(stored) or [(_text(stored.get("model")), start)]
    parts.append((run.model, start if stored is None else _tick(stored)))
    merged = [part for index, part in enumerate(parts) if not index or part[0] != parts[index - 1][0]]
    ends = [at for _, at in merged[1:]] + [end]
    return [
        {"model": model, "from": iso(at), "to": iso(until)} for (model, at), until in zip(merged, ends, strict=True)
    ]


def is_by_programs(run: Run) -> bool:
    """Whether programs decided every part of a run."""
    return all(str(part["model"]).startswith(PROGRAMS) for part in decided_by(run))


def _stored(run: Run) -> dict[str, Any] | None:
    """The stored fork, if it is readable and its tick lies in the run."""
    stored = run.params.get(FORKED_FROM)
    tick_at = _instant(stored.get("at")) if isinstance(stored, dict) else None
    return stored if tick_at is not None and run.params["from_at"] <= tick_at <= run.params["to_at"] else None


def _earlier(stored: dict[str, Any]) -> list[tuple[str | None, Instant]]:
    rows = stored.get("decided_by")
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    instants = [(_text(row.get("model")), _instant(row.get("from"))) for row in rows]
    return [(model, at) for model, at in instants if at is not None and at < _tick(stored)]


def _tick(stored: dict[str, Any]) -> Instant:
    return _instant(stored.get("at")) or 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _instant(value: object) -> Instant | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except (UserError, OverflowError, OSError):
        return None
