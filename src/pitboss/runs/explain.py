"""Explain one recorded decision, as text and as plain values: the prompt, the proposals and the engine's verdicts.

Everything comes from the stored record, whose row is checked against its digest; no market is loaded, nothing is
replayed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso, parse_range_end, resolved
from pitboss.core.snapshot import Record
from pitboss.prompt import render
from pitboss.report import figures
from pitboss.report.meaning import unknown_rule
from pitboss.report.source import number
from pitboss.runs.stored import decision_rows, end_of_run, journal_of, one_line
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.store import recent_records
from pitboss.store.runs import Run
from pitboss.tools.decision_text import decision_text

MOST_DIGITS, MOST_PROMPT_CHARS = 12, 4_000
FIRST_REFUSED = "refused"

Plain = Mapping[str, Any]


# A decision -------------------------------------------------------------------------------------------------------------


def explain(workspace: Workspace, run: Run, tick: str) -> tuple[str, dict[str, Any]]:
    """Return the decision at a tick as text and as values.

    `tick` is a time, one before the end of the run such as `-2d`, the number of a record, or `refused` for the first refused decision.
    """
    return _explained(run, find_record(workspace, run, tick.strip()))


def explain_record(workspace: Workspace, run: Run, seq: int) -> dict[str, Any]:
    """Everything that is stored of the decision in one record, as values: also the system prompt and the cost of each step."""
    record = _record(workspace, run, seq)
    _, values = _explained(run, record)
    if record.kind != "tick":
        return {**values, "kind": record.kind}
    extra = record.body()["extra"]
    system, user = extra.get("prompt") or (None, None)
    return {
        **values,
        "kind": record.kind,
        "asked": {**values["asked"], "system": system, "user": user},
        "step_costs": extra.get("steps") or [],
        "usage": extra.get("usage"),
        "saved_usd": extra.get("saved_usd"),
    }


def _explained(run: Run, record: Record) -> tuple[str, dict[str, Any]]:
    body = record.body()
    identity = {"run_id": run.id, "tick_at": iso(record.tick_at), "seq": record.seq, "digest": record.digest}
    if record.kind == "span":
        until = iso(body["until_at"])
        text = (
            f"nothing was proposed from {identity['tick_at']} to {until}: {figures.plural(body['ticks'], 'tick')}"
            + _flags(body["flags"])
        )
        return text, {**identity, "outcome": "noop", "until": until, "ticks": body["ticks"], "flags": body["flags"]}
    if record.kind == "close":
        return f"the run ends at {identity['tick_at']}", {**identity, "outcome": "end"}
    venue = venue_of(run.params["skill"])
    rows = venue.reveal(list(decision_rows(record)), run.params)
    refusals = [refusal(row, venue) for row in rows if row["outcome"] == "refused"]
    lines = [f"{name}: {text}" for refusal_parts in refusals for name, text in refusal_parts.items()]
    lines += venue.blind_notes(run.params)
    decision = decision_text(record.tick_at, {**body, "tick_at": record.tick_at})
    prompt = body["extra"].get("prompt")
    prompt_lines = [f"it was asked {render.fence(prompt[1], MOST_PROMPT_CHARS)}"] if prompt else []
    return "\n".join([*lines, decision, *prompt_lines]), {**identity, **_values(body, rows, venue)}


def _values(body: Plain, rows: list[dict[str, Any]], venue: Venue) -> dict[str, Any]:
    extra, proposed = body["extra"], bool(body["proposals"])
    system, user = extra.get("prompt") or (None, None)
    return {
        "outcome": rows[0]["outcome"],
        # The system prompt is the same at every tick, and long: `preview` shows it.
        "asked": {"prompt_sha256": body["prompt_sha256"], "user": user, "system_chars": system and len(system)},
        **({"reflection": body["reflection"]} if "reflection" in body else {}),
        "steps": body["steps"],
        "text": body["text"],
        "flags": body["flags"],
        "proposals": [
            {
                "proposal": proposal,
                **{key: row[key] for key in ("outcome", "code", "detail", "margins")},
                **({"in_words": refusal(row, venue)} if row["outcome"] == "refused" else {}),
            }
            for proposal, row in zip(body["proposals"], rows, strict=True)
        ]
        if proposed
        else [],
        "receipts": [{**receipt, "at": iso(receipt["at"])} for receipt in body["receipts"]],
        "before": body["before"],
        "after": body["after"],
        "cost_usd": extra["cost_usd"],
    }


def find_record(workspace: Workspace, run: Run, tick: str) -> Record:
    """The record at a tick: a time, one before the end of the run such as `-2d`, the number of a record, or `refused` for the first refused decision."""
    if tick == FIRST_REFUSED:
        record = next(_refused(workspace, run), None)
        if record is None:
            raise UserError(f"run {run.id} has no refused decision", "name a tick by its time")
        return record
    # exactly four digits are a year, not a record number
    if tick.isdecimal() and len(tick) <= MOST_DIGITS and len(tick) != 4:
        return _record(workspace, run, int(tick))
    try:
        at = resolved(parse_range_end(tick), lambda: end_of_run(workspace, run))
        time = iso(at)
    except (OverflowError, OSError, ValueError):
        raise UserError(
            f"{tick!r} is outside of the calendar", "a time within the run, such as 2025-03-01T12:00"
        ) from None
    record = next(recent_records.newest(workspace.database, run.id, at), None)
    if record is None:
        raise UserError(f"run {run.id} has no tick at {time} or before", f"it begins at {iso(run.params['from_at'])}")
    if record.tick_at == at or (record.kind == "span" and record.body()["until_at"] >= at):
        return record
    raise UserError(f"run {run.id} has no tick at {time}", f"the one before is at {iso(record.tick_at)}")


def _record(workspace: Workspace, run: Run, seq: int) -> Record:
    record = recent_records.numbered(workspace.database, run.id, seq)
    if record is None:
        raise UserError(f"run {run.id} has no record {seq}", "records count from 0")
    return record


def _refused(workspace: Workspace, run: Run) -> Iterator[Record]:
    for record in journal_of(workspace, run).records():
        if record.kind == "tick" and any(row["outcome"] == "refused" for row in decision_rows(record)):
            yield record


def _flags(flags: list[str]) -> str:
    return f" ({', '.join(flags)})" if flags else ""


# A refusal --------------------------------------------------------------------------------------------------------------


def refusal(row: Plain, venue: Venue) -> dict[str, str]:
    """Describe a refused intent: the proposal and its reason, the rule that refused it, its limit, and the excess."""
    parts = {"it asked": venue.describe_intent(row)}
    if reason := row.get("reason") or row.get("reasoning"):
        parts["because"] = one_line(reason)
    meaning = venue.rule_meanings().get(row["code"]) or unknown_rule(row["code"])
    parts["refused by"] = f"{row['code']}: {meaning.meaning}"
    parts["in numbers"] = _excess(row, venue.intent_noun) or one_line(row["detail"], 600)
    return parts


def _excess(row: Plain, noun: str) -> str:
    for margin in row.get("margins") or ():
        remaining = number(margin.get("left"))
        if margin.get("code") == row.get("code") and remaining is not None and remaining < 0:
            unit = str(margin.get("unit") or "")
            limit, used = figures.with_unit(margin.get("limit"), unit), figures.with_unit(margin.get("used"), unit)
            return f"limit {limit}, with this {noun} {used}: {figures.with_unit(-remaining, unit)} beyond"
    return ""
