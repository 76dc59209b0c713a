"""Read a stored run: its request, its records and its public document. Nothing that executes a run is imported."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.core.snapshot import Record, recorded_cost
from pitboss.core.verdict import margin_fields
from pitboss.data.synthetic_marker import DEMO, is_marked
from pitboss.models import cutoffs
from pitboss.models.cutoff_text import cutoff_record
from pitboss.models.endpoint import ENDPOINT, read_endpoint
from pitboss.models.providers import LOCAL
from pitboss.report.quality import quality_of
from pitboss.runs.lineage import decided_by, forked_from, is_by_programs
from pitboss.runs.venues import venue_of
from pitboss.store.journal import StoredJournal
from pitboss.store.runs import Run
from pitboss.store.speculation_counts import read_counts
from pitboss.store.uncertain_charges import uncertain_usd


def request_of(run: Run) -> Any:
    """The request a run was started with, in its venue's type."""
    return venue_of(run.params["skill"]).request_of(run.params)


def journal_of(workspace: Workspace, run: Run) -> StoredJournal:
    """The records of a run, for reading."""
    return StoredJournal(workspace.database, run.id, run.lease_epoch)


def end_of_run(workspace: Workspace, run: Run) -> Instant:
    """The end of the range of a backtest; of a live run, the last tick so far."""
    stored = journal_of(workspace, run).latest_state() if run.params.get("mode") else None
    reached = None if stored is None else stored[1]["tick_at"]
    return run.params["to_at"] if reached is None else reached


def shown_records(workspace: Workspace, run: Run, start: int = 0) -> Iterator[Record]:
    """The records of a run from a number on, for lists and pages: those of programs, which cost nothing, without their prompts."""
    journal = journal_of(workspace, run)
    return journal.covered_records(start) if is_by_programs(run) else journal.records(start)


def document(workspace: Workspace, run: Run) -> dict[str, Any]:
    """The public document of a run."""
    return {
        **row_document(run, workspace.settings.model_cutoffs),
        "spend": spend_of(workspace, run),
        "speculation": speculation_of(workspace, run),
    }


def speculation_of(workspace: Workspace, run: Run) -> dict[str, int] | None:
    """How many decisions were asked for ahead of time, and how many of those were used; None if none were."""
    counts = read_counts(workspace.database, run.id)
    return None if counts is None else asdict(counts)


def spend_of(workspace: Workspace, run: Run) -> dict[str, float | None]:
    """What a run has paid, how much of it was not used, what the cache saved, and what may have been charged besides."""
    return {
        "paid_usd": None if run.cost_usd.is_nan() else float(run.cost_usd),
        "speculative_waste_usd": float(run.wasted_usd),
        "saved_usd": float(run.saved_usd),
        "uncertain_usd": float(uncertain_usd(workspace.database, run.id)),
    }


def row_document(run: Run, model_cutoffs: str = "") -> dict[str, Any]:
    """What the row of a run alone tells. `model_cutoffs` is the setting of that name."""
    params = run.params
    return {
        "run_id": run.id,
        "status": run.status,
        "digest": run.digest,
        "skill_digest": params["skill_digest"],
        "data_digest": run.data_digest,
        "model": run.model,
        "endpoint": endpoint_text(run),
        "forked_from": forked_from(run),
        "decided_by": decided_by(run),
        "from": iso(params["from_at"]),
        "to": iso(params["to_at"]),
        "ticks": run.ticks,
        "metrics": run.metrics,
        "baselines": run.baselines,
        "cost_usd": None if run.cost_usd.is_nan() else float(run.cost_usd),
        "saved_usd": float(run.saved_usd),
        "wasted_usd": float(run.wasted_usd),
        "waste_pct": _waste_pct(run),
        "quality": _quality(run),
        "estimate": params.get("estimate") or (params.get("queued") or {}).get("estimate"),
        "wall_s": run.wall_s,
        "report": run.report,
        "errors": [run.error_text] if run.error_text else [],
        "realism": _realism(run),
        "cutoff": _cutoff(run, model_cutoffs),
        **({"blind": True} if params.get("blind") else {}),
    }


def _cutoff(run: Run, model_cutoffs: str) -> dict[str, Any]:
    """The training cutoff of the newest language model that decided a part of the run, with sentences on each of them."""
    parts = [
        cutoff_record(
            cutoffs.cutoff_of(str(part["model"]), model_cutoffs),
            parse_instant(part["from"]),
            parse_instant(part["to"]),
        )
        for part in decided_by(run)
    ]
    applicable = [record for record in parts if record["range"] != "not_applicable"]
    if not applicable:
        return parts[-1]
    return {**applicable[-1], "words": " ".join(record["words"] for record in applicable)}


def endpoint_text(run: Run) -> str | None:
    """The host that answered; None for programs and replays, and for runs of earlier versions."""
    if run.model.startswith(f"{LOCAL}/"):
        return "this machine"
    endpoint = read_endpoint(run.params.get(ENDPOINT))
    return None if endpoint is None else endpoint.text


def _quality(run: Run) -> dict[str, int] | None:
    quality = quality_of(run.metrics)
    return None if quality is None else asdict(quality)


def _realism(run: Run) -> dict[str, dict[str, str]]:
    """The assumptions about fills; empty for a run of a venue that is not installed, which can still be listed."""
    try:
        venue = venue_of(run.params["skill"])
    except UserError:
        return {}
    return venue.realism(request_of(run))


def _waste_pct(run: Run) -> float | None:
    """Cost of unused speculation in percent of the useful cost; None without speculation or with an unknown cost."""
    useful = run.cost_usd - run.wasted_usd
    return None if useful.is_nan() or useful <= 0 else round(float(run.wasted_usd / useful * 100), 2)


def long_document(workspace: Workspace, run: Run) -> dict[str, Any]:
    """The public document with the run's progress, error and times."""
    return {**document(workspace, run), **progress_of(run)}


def progress_of(run: Run) -> dict[str, Any]:
    """The progress, error and times of a run."""
    return {
        **({"disguise": run.params.get("disguise")} if run.params.get("blind") else {}),
        "progress_pct": round(run.progress * 100, 2),
        "error_text": run.error_text,
        "created_at": iso(run.created_at),
        "started_at": None if run.started_at is None else iso(run.started_at),
        "finished_at": None if run.finished_at is None else iso(run.finished_at),
    }


def is_synthetic(workspace: Workspace, run: Run) -> bool:
    """Whether the run used generated data; also works when that data is gone."""
    venue = str(run.params.get("data_venue", ""))
    if venue == DEMO:
        return True
    if not workspace.settings.lake:
        return is_marked(workspace.home / "lake", venue)
    return workspace.lake_of(run.params).is_synthetic(venue)


def decision_rows(record: Record, read_body: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The decisions of a record: one per proposal, one for a hold or a span of holds. `read_body` is what it covers, if that
    has been read already.
    """
    body = codec.loads(record.covered) if read_body is None else read_body
    if record.kind == "span":
        flags = list(body["flags"])
        yield {
            "seq": record.seq,
            "tick_at": record.tick_at,
            "outcome": "noop",
            "flags": flags,
            "times": body["ticks"],
            "until": body["until_at"],
        }
    if record.kind != "tick":
        return
    about: dict[str, Any] = {
        "seq": record.seq,
        "tick_at": record.tick_at,
        "flags": body["flags"],
        "text": body["text"],
        "steps": body["steps"],
        "cost_usd": recorded_cost(record),
    }
    if not body["proposals"]:
        yield {**about, "outcome": "noop"}
    for proposal, verdict in zip(body["proposals"], body["verdicts"], strict=True):
        judgement = {key: verdict[key] for key in ("outcome", "code", "detail")} | {
            "margins": margin_fields(verdict["margins"])
        }
        yield {**_fields_of(proposal), **about, **judgement}
        # the page shows a tick once, so only its first row has the text and steps
        about = {**about, "seq": None, "text": "", "steps": [], "cost_usd": None}


def _fields_of(proposal: object) -> dict[str, Any]:
    """What a model proposed, without the names that only a span of holds may have."""
    fields: dict[str, Any] = proposal if isinstance(proposal, dict) else {}
    return {name: value for name, value in fields.items() if name not in ("times", "until")}


def one_line(text: object, most: int = 200) -> str:
    """Reduce untrusted text to one line of limited length without terminal control characters."""
    clean = str(text)
    if not clean.isprintable():
        clean = "".join(char if char.isprintable() else " " for char in clean)
    return clean if len(clean) <= most else clean[: most - 1] + "…"
