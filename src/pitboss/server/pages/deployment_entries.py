"""The newest entries of a deployment as a list: ticks with their verdicts, what happened between them, ticks that were missed."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.decisions import OUTCOMES
from pitboss.report.markup import Html, tag
from pitboss.report.source import mapping, number
from pitboss.runs.venues import installed, venue_named
from pitboss.server.pages.components import short_time

MOST_FACTS = 6
FIRST = ("side", "size", "price", "reason", "action")
"""Facts of an event that are shown first."""
UNSHOWN = ("kind", "at", "symbol", "orderId")
Plain = Mapping[str, Any]


def entry_list(entries: Sequence[Plain], venue: str) -> Html:
    """The entries, newest first."""
    if not entries:
        return tag("p", "Entries appear here from the first tick on.", class_="note")
    return tag("ol", *[_entry(entry, venue) for entry in entries], class_="entries")


def _entry(entry: Plain, venue: str) -> Html:
    kind = str(entry["kind"])
    flags = [tag("code", flag) for flag in entry.get("flags") or ()]
    if kind == "tick":
        content = _tick(entry, venue)
    elif kind == "missed":
        content = [tag("b", figures.plural(entry["slots"], "tick")), " missed until ", short_time(entry["until"])]
    else:
        content = [tag("b", kind.replace("_", " ").capitalize())]
    reasoning = str(entry.get("reasoning") or "")
    return tag(
        "li",
        short_time(entry["at"]),
        tag("div", *content, *flags, class_="what"),
        tag("p", reasoning, class_="reasoning", dir="auto") if reasoning else None,
        *[_event(event) for event in entry.get("events") or ()],
        class_=kind if kind in ("tick", "missed") else None,
    )


def _tick(entry: Plain, venue: str) -> list[object]:
    parts: list[object] = []
    for intent, verdict in zip(entry["intents"], entry["verdicts"], strict=False):
        outcome, code, detail = str(verdict["outcome"]), verdict["code"], verdict["detail"]
        if outcome == "noop" and not detail:
            parts.append(tag("span", "Hold", class_="muted"))
            continue
        fields = mapping(intent)
        can_describe = fields and "cut" not in fields and venue in installed()
        words = venue_named(venue).describe_intent(fields) if can_describe else "a proposal"
        parts.append(
            tag(
                "span",
                tag("b", words[:1].upper() + words[1:]),
                " ",
                tag("span", OUTCOMES.get(outcome, outcome), class_="verdict"),
                " ",
                tag("code", code) if code else None,
                tag("small", f" {detail}") if detail else None,
                class_=outcome if outcome in OUTCOMES else None,
            )
        )
    return parts or [tag("span", "Hold", class_="muted")]


def _event(event: Plain) -> Html:
    names = [
        name for name in (*FIRST, *event) if name in event and name not in UNSHOWN and _is_informative(event[name])
    ]
    facts = [f"{name.replace('_', ' ')} {_value(event[name])}" for name in dict.fromkeys(names)]
    head = f"{event.get('kind', '')} {event.get('symbol') or ''}".strip()
    return tag("p", tag("b", head), " ", ", ".join(facts[:MOST_FACTS]), class_="event")


def _is_informative(value: Any) -> bool:
    """Whether a fact is worth showing: zeros and empty values are not."""
    return value not in (None, "") and number(value) != 0.0


def _value(value: Any) -> str:
    """A number with six digits, anything else as it is."""
    numeric = number(value)
    return str(value) if numeric is None else figures.amount(f"{numeric:.6g}")
