"""The activity of a live run for display: counts and the newest entries, derived from its records.

A resumed run therefore shows what it showed before, and only what is stored is shown. Remarks without a record (a silent
feed, a clock set back) are listed among the entries and are lost when the process ends. Everything is bounded; text of
models and other untrusted text is cut and shown as data, never as markup.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant, day_of, iso
from pitboss.core.money import ZERO
from pitboss.core.snapshot import Record

MOST_ENTRIES = 50
MAX_TEXT_CHARS = 500
MOST_EVENTS = 20
FAILURES = frozenset({"model_error", "deadline", "no_feed", "stale_prices", "feed_timeout"})
"""Flags of ticks without a decision because of a failure."""

ALARM_MARK = "alarm: "
"""How the remark of an alarm begins."""

Entry = dict[str, Any]
BoardTotals = dict[str, Any]
"""What a board has counted, as plain values: everything but the newest entries."""
COUNTS = ("next_seq", "ticks", "acted", "skips", "errors", "missed_slots", "last_tick_at", "last_command", "last_caps")
"""The fields of a board that are plain numbers."""


class Board:
    """Counts and entries of one run."""

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self.next_seq = 0
        """The number of the record that is added next."""
        self.ticks = 0
        self.acted = 0
        self.skips = 0
        self.errors = 0
        self.missed_slots = 0
        self.cost_usd: Decimal | None = ZERO
        """The cost of model calls; None once a model without a known price was called."""
        self._day, self._day_cost = 0, ZERO
        self.last_tick_at: Instant | None = None
        self.flags: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        """Verdicts that refused, by rule code."""
        self.events: Counter[tuple[str, str]] = Counter()
        """Receipts counted by kind and action."""
        self.account: Mapping[str, Any] = {}
        """The account after the newest tick, from its record."""
        self.last_command = 0
        """The number of the newest command of a person that is recorded."""
        self.last_caps = 0
        """The number of the newest change of caps that is recorded."""
        self.feed: deque[Entry] = deque(maxlen=most)

    def add(self, record: Record) -> Entry:
        """Add one record and return its entry."""
        body = record.body()
        self.next_seq = record.seq + 1
        entry: Entry = {"seq": record.seq, "kind": record.kind, "at": iso(record.tick_at)}
        if record.kind == "tick":
            entry |= self._ticked(record.tick_at, body)
        elif body.get("missed"):
            self.missed_slots += body["missed"]
            entry |= {"kind": "missed", "slots": body["missed"], "until": iso(body["until_at"])}
        else:
            entry |= {"kind": "happened" if record.kind == "span" else record.kind}
        for receipt in body["receipts"]:
            self.events[receipt["kind"], str(receipt["facts"].get("action", ""))] += 1
            if receipt["kind"] == "command":
                self.last_command = max(self.last_command, receipt["facts"]["number"])
            elif receipt["kind"] == "caps":
                self.last_caps = max(self.last_caps, receipt["facts"]["number"])
        entry["events"] = [_event(receipt) for receipt in body["receipts"][-MOST_EVENTS:]]
        if "after" in body:
            self.account = body["after"]
        self.feed.append(entry)
        return entry

    def totals(self) -> BoardTotals:
        """What was counted, to begin another board with."""
        return {
            **{name: getattr(self, name) for name in COUNTS},
            "cost_usd": None if self.cost_usd is None else str(self.cost_usd),
            "day_cost": str(self._day_cost),
            "day": self._day,
            "flags": dict(self.flags),
            "refusals": dict(self.refusals),
            "events": [[*names, count] for names, count in self.events.items()],
            "account": self.account,
        }

    def begin_with(self, totals: Mapping[str, Any]) -> None:
        """Count on from the totals of another board; the entries before them are not shown."""
        for name in COUNTS:
            setattr(self, name, totals[name])
        self.cost_usd = None if totals["cost_usd"] is None else Decimal(totals["cost_usd"])
        self._day, self._day_cost = totals["day"], Decimal(totals["day_cost"])
        self.flags, self.refusals = Counter(totals["flags"]), Counter(totals["refusals"])
        self.events = Counter({(kind, action): count for kind, action, count in totals["events"]})
        self.account = totals["account"]

    def restore(self, records: Iterable[Record]) -> None:
        """Add the existing records of a resumed run."""
        for record in records:
            self.add(record)

    def remark(self, at: Instant, text: str) -> Entry:
        """Add an entry that is not part of a record."""
        entry: Entry = {"kind": "remark", "at": iso(at), "detail": display_text(text)}
        self.feed.append(entry)
        return entry

    def newest(self, most: int = MOST_ENTRIES) -> list[Entry]:
        """The newest entries, newest first."""
        return [*reversed(self.feed)][:most]

    def paid_on(self, day: int) -> Decimal:
        """The cost of model calls on this UTC day, if it is the day of the newest tick; else zero."""
        return self._day_cost if day == self._day else ZERO

    def _ticked(self, at: Instant, body: Mapping[str, Any]) -> Entry:
        flags = [str(flag) for flag in body["flags"]]
        executed = [
            verdict
            for verdict in body["verdicts"]
            if verdict["outcome"] in ("allowed", "reduced") and not verdict["duplicate"]
        ]
        self.ticks += 1
        self.last_tick_at = at
        self.flags.update(flags)
        self.refusals.update(str(each["code"] or "") for each in body["verdicts"] if each["outcome"] == "refused")
        self.acted += bool(executed)
        failed = not FAILURES.isdisjoint(flags)
        self.errors += failed
        self.skips += not executed and not failed
        cost = body["extra"].get("cost_usd", "0")
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + Decimal(cost)
        if day_of(at) != self._day:
            self._day, self._day_cost = day_of(at), ZERO
        self._day_cost += Decimal(cost or 0)
        return {
            "tick": self.ticks,
            "intents": [_bounded(proposal) for proposal in body["proposals"][:MOST_EVENTS]],
            "verdicts": [
                {
                    "outcome": verdict["outcome"],
                    "code": verdict["code"],
                    "detail": display_text(verdict["detail"]),
                    "orderId": verdict["order_id"],
                }
                for verdict in body["verdicts"][:MOST_EVENTS]
            ],
            "reasoning": display_text(body["text"]),
            "flags": flags,
            "costUsd": cost,
        }


def display_text(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Text for display: on one line, without control characters, at most `most` characters."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[: 8 * most])  # cut first: it may be very long
    line = " ".join(line.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _bounded(value: Any) -> Any:
    """A small proposal unchanged, of a large one the beginning of its JSON text."""
    text = codec.dumps(value).decode()
    if len(text) > 2 * MAX_TEXT_CHARS:
        return {"cut": display_text(text)}
    if isinstance(value, Mapping):
        return {
            display_text(str(key)): display_text(item) if isinstance(item, str) else item for key, item in value.items()
        }
    return display_text(value) if isinstance(value, str) else value


def _event(receipt: Mapping[str, Any]) -> Entry:
    facts = {name: display_text(value) if isinstance(value, str) else value for name, value in receipt["facts"].items()}
    return {
        "kind": receipt["kind"],
        "at": iso(receipt["at"]),
        "symbol": receipt["symbol"],
        "orderId": receipt["order_id"] or None,
        **{name: value for name, value in facts.items() if name not in ("kind", "at", "symbol")},
    }
