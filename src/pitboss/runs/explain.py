"""Explain one recorded decision, as text and as plain values: the prompt, the proposals and the engine's verdicts.

Everything comes from the stored record, whose row is checked against its digest; no market is loaded, nothing is
replayed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso, parse_instant
from pitboss.core.snapshot import Record
from pitboss.prompt import render
from pitboss.report import figures
from pitboss.report.meaning import unknown_rule
from pitboss.report.source import number
from pitboss.runs.stored import decision_rows, journal_of, one_line
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.store import recent_records as lookback
from pitboss.store.runs import Run
from pitboss.tools.decision_text import decision_text

MOST_DIGITS, MOST_ASKED = 12, 4_000
FIRST_REFUSED = "refused"

Plain = Mapping[str, Any]


# A decision -------------------------------------------------------------------------------------------------------------


def explain(workspace: Workspace, run: Run, tick: str) -> tuple[str, dict[str, Any]]:
    """Return the decision at a tick as text and as values.

    `tick` is a time, the number of a record, or `refused` for the first refused decision.
    """
    record = _find(workspace, run, tick.strip())
    body = record.body()
    known = {"run_id": run.id, "tick_at": iso(record.tick_at), "seq": record.seq, "digest": record.digest}
    if record.kind == "span":
        until = iso(body["until_at"])
        words = f"nothing was proposed from {known['tick_at']} to {until}: {body['ticks']} ticks" + _flags(
            body["flags"]
        )
        return words, {**known, "outcome": "noop", "until": until, "ticks": body["ticks"], "flags": body["flags"]}
    if record.kind == "close":
        return f"the run ends at {known['tick_at']}", {**known, "outcome": "end"}
    venue = venue_of(run.params["skill"])
    rows = venue.reveal(list(decision_rows(record)), run.params)
    refused = [refusal(row, venue) for row in rows if row["outcome"] == "refused"]
    lines = [f"{name}: {words}" for one in refused for name, words in one.items()]
    lines += venue.blind_notes(run.params)
    told = decision_text(record.tick_at, {**body, "tick_at": record.tick_at})
    prompt = body["extra"].get("prompt")
    asked = [f"it was asked {render.fence(prompt[1], MOST_ASKED)}"] if prompt else []
    return "\n".join([*lines, told, *asked]), {**known, **_values(body, rows, venue)}


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


def _find(workspace: Workspace, run: Run, tick: str) -> Record:
    if tick == FIRST_REFUSED:
        found = next(_refused(workspace, run), None)
        if found is None:
            raise UserError(f"run {run.id} has no refused decision", "name a tick by its time")
        return found
    # exactly four digits are a year, not a record number
    if tick.isdecimal() and len(tick) <= MOST_DIGITS and len(tick) != 4:
        found = next(iter(journal_of(workspace, run).records(int(tick))), None)
        if found is None:
            raise UserError(f"run {run.id} has no record {tick}", "records count from 0")
        return found
    try:
        at = parse_instant(tick)
        asked = iso(at)
    except (OverflowError, OSError, ValueError):
        raise UserError(
            f"{tick!r} is outside of the calendar", "a time within the run, such as 2025-03-01T12:00"
        ) from None
    found = next(lookback.newest(workspace.database, run.id, at), None)
    if found is None:
        raise UserError(f"run {run.id} has no tick at {asked} or before", f"it begins at {iso(run.params['from_at'])}")
    if found.tick_at == at or (found.kind == "span" and found.body()["until_at"] >= at):
        return found
    raise UserError(f"run {run.id} has no tick at {asked}", f"the one before is at {iso(found.tick_at)}")


def _refused(workspace: Workspace, run: Run) -> Iterator[Record]:
    for record in journal_of(workspace, run).records():
        if record.kind == "tick" and any(row["outcome"] == "refused" for row in decision_rows(record)):
            yield record


def _flags(flags: list[str]) -> str:
    return f" ({', '.join(flags)})" if flags else ""


# A refusal --------------------------------------------------------------------------------------------------------------


def refusal(row: Plain, venue: Venue) -> dict[str, str]:
    """Describe a refused order: the proposal and its reason, the rule that refused it, its limit, and the excess."""
    words = {"it asked": venue.describe_intent(row)}
    if why := row.get("reason") or row.get("reasoning"):
        words["because"] = one_line(why)
    meaning = venue.rule_meanings().get(row["code"]) or unknown_rule(row["code"])
    words["refused by"] = f"{row['code']}: {meaning.meaning}"
    words["in numbers"] = _beyond(row) or row["detail"]
    return words


def _beyond(row: Plain) -> str:
    for margin in row.get("margins") or ():
        left = number(margin.get("left"))
        if margin.get("code") == row.get("code") and left is not None and left < 0:
            unit = str(margin.get("unit") or "")
            limit, used = figures.with_unit(margin.get("limit"), unit), figures.with_unit(margin.get("used"), unit)
            return f"limit {limit}, with this order {used}: {figures.with_unit(-left, unit)} beyond"
    return ""
