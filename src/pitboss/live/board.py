"""What a live run tells of itself: counts and the newest entries, all of it read from sealed records.

So a run that was killed and goes on shows what it showed before, and nothing is shown that is not kept. Remarks about what
leaves no record (a feed that is silent, a clock that went back) stand among the entries and are forgotten with the process.
Everything is bounded: words of models and strangers are data here, cut, and never markup.
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
MOST_WORDS = 500
MOST_EVENTS = 20
FAILURES = frozenset({"model_error", "deadline", "no_feed", "stale_prices", "feed_timeout"})
"""Flags of ticks at which nobody could be asked or nobody answered."""

Entry = dict[str, Any]


class Board:
    """Counts and entries of one run."""

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self.ticks = 0
        self.acted = 0
        self.skips = 0
        self.errors = 0
        self.missed = 0
        self.cost_usd: Decimal | None = ZERO
        """What was paid for answers; None once somebody was asked whose price nobody knows."""
        self._day, self._day_cost = 0, ZERO
        self.last_tick_at: Instant | None = None
        self.flags: Counter[str] = Counter()
        self.events: Counter[tuple[str, str]] = Counter()
        """How often each kind of receipt came, with its action where it names one."""
        self.account: Mapping[str, Any] = {}
        """The account after the newest tick, as its record has it."""
        self.feed: deque[Entry] = deque(maxlen=most)

    def take(self, record: Record) -> Entry:
        """Count one record and give its entry."""
        body = record.body()
        entry: Entry = {"seq": record.seq, "kind": record.kind, "at": iso(record.tick_at)}
        if record.kind == "tick":
            entry |= self._ticked(record.tick_at, body)
        elif body.get("missed"):
            self.missed += body["missed"]
            entry |= {"kind": "missed", "slots": body["missed"], "until": iso(body["until_at"])}
        else:
            entry |= {"kind": "happened" if record.kind == "span" else record.kind}
        for receipt in body["receipts"]:
            self.events[receipt["kind"], str(receipt["facts"].get("action", ""))] += 1
        entry["events"] = [_event(receipt) for receipt in body["receipts"][-MOST_EVENTS:]]
        if "after" in body:
            self.account = body["after"]
        self.feed.append(entry)
        return entry

    def restore(self, records: Iterable[Record]) -> None:
        """Count what a run has done before."""
        for record in records:
            self.take(record)

    def remark(self, at: Instant, words: str) -> Entry:
        """Something worth a line that is part of no record."""
        entry: Entry = {"kind": "remark", "at": iso(at), "detail": cut(words)}
        self.feed.append(entry)
        return entry

    def newest(self, most: int = MOST_ENTRIES) -> list[Entry]:
        """The newest entries, newest first."""
        return [*reversed(self.feed)][:most]

    def paid_on(self, day: int) -> Decimal:
        """What the newest ticks have paid for answers, if they are of this UTC day."""
        return self._day_cost if day == self._day else ZERO

    def _ticked(self, at: Instant, body: Mapping[str, Any]) -> Entry:
        flags = [str(flag) for flag in body["flags"]]
        went = [one for one in body["verdicts"] if one["outcome"] in ("allowed", "reduced") and not one["duplicate"]]
        self.ticks += 1
        self.last_tick_at = at
        self.flags.update(flags)
        self.acted += bool(went)
        failed = not FAILURES.isdisjoint(flags)
        self.errors += failed
        self.skips += not went and not failed
        cost = body["extra"].get("cost_usd", "0")
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + Decimal(cost)
        if day_of(at) != self._day:
            self._day, self._day_cost = day_of(at), ZERO
        self._day_cost += Decimal(cost or 0)
        return {
            "tick": self.ticks,
            "intents": [_bounded(one) for one in body["proposals"][:MOST_EVENTS]],
            "verdicts": [
                {
                    "outcome": one["outcome"],
                    "code": one["code"],
                    "detail": cut(one["detail"]),
                    "orderId": one["order_id"],
                }
                for one in body["verdicts"][:MOST_EVENTS]
            ],
            "reasoning": cut(body["text"]),
            "flags": flags,
            "costUsd": cost,
        }


def cut(words: str, most: int = MOST_WORDS) -> str:
    """A text as it may be shown: on one line, without control characters, not too long."""
    line = "".join(sign if sign.isprintable() else " " for sign in words[: 8 * most])  # it may be a book
    line = " ".join(line.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _bounded(value: Any) -> Any:
    """A proposal whole where it is small, else the beginning of its text."""
    text = codec.dumps(value).decode()
    if len(text) > 2 * MOST_WORDS:
        return {"cut": cut(text)}
    if isinstance(value, Mapping):
        return {cut(str(key)): cut(item) if isinstance(item, str) else item for key, item in value.items()}
    return cut(value) if isinstance(value, str) else value


def _event(receipt: Mapping[str, Any]) -> Entry:
    facts = {name: cut(value) if isinstance(value, str) else value for name, value in receipt["facts"].items()}
    return {
        "kind": receipt["kind"],
        "at": iso(receipt["at"]),
        "symbol": receipt["symbol"],
        "orderId": receipt["order_id"] or None,
        **{name: value for name, value in facts.items() if name not in ("kind", "at", "symbol")},
    }
