"""`RunIndex`: one run in columns, so that a run of 100,000 ticks is listed, filtered and drawn without reading its records.

Each row is a decision, as `runs.stored.decision_rows` gives it from a record: what is shown in a list and what can be filtered by.
Everything else of a decision stays in its record (`runs/explain.py`). An index is a value: `extended` gives a new one with the
records that followed, so a run that is still running is read once. Where indexes are kept is `runs/indexed_runs.py`.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from pitboss.core import codec
from pitboss.core.curve import Piece, columns
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import GENESIS, Record
from pitboss.report.decisions import PROPOSED
from pitboss.report.source import number
from pitboss.runs.stored import decision_rows, one_line
from pitboss.runs.venue import Venue

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NUMBERS = ("seq", "place", "tick_at", "until", "times")
WORDS = ("outcome", "action", "symbol", "code", "flags", "reason", "detail", "proposal")
"""Columns of text, stored as numbers of distinct texts."""
CHUNK = 512
"""Records that are turned into rows at a time."""
MOST_WORD, MOST_REASON, MOST_PROPOSAL = 80, 240, 1_200
_ABOUT = frozenset(
    {"seq", "tick_at", "flags", "text", "steps", "cost_usd", "outcome", "code", "detail", "margins", "times", "until"}
)
_REASONS = ("reason", "reasoning")
_ELSEWHERE = _ABOUT | {*_REASONS, "action", "symbol"}


class RowFilter(TypedDict, total=False):
    """Conditions on rows; all that are given and not empty must hold."""

    outcome: str
    action: str
    symbol: str
    code: str
    flag: str
    text: str
    """A part of the reason or of the verdict's detail, in any case."""


class _DistinctTexts:
    """The distinct texts of a column in the order of their first use. It only grows, so that several indexes share it."""

    __slots__ = ("numbers", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = list(texts)
        self.numbers = {text: number for number, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


def _no_numbers() -> dict[str, Ints]:
    return {name: np.empty(0, np.int64) for name in (*NUMBERS, *WORDS)}


def _no_texts() -> dict[str, _DistinctTexts]:
    return {name: _DistinctTexts() for name in WORDS}


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The decisions, equity, fills and halts of a run up to a record."""

    next_seq: int = 0
    """The number of the first record that is not in it."""
    digest: str = GENESIS
    """That of the last record in it."""
    numbers: Mapping[str, Ints] = field(default_factory=_no_numbers)
    """By column: the value itself, or for text the number of a distinct text."""
    texts: Mapping[str, _DistinctTexts] = field(default_factory=_no_texts)
    cost_usd: Floats = field(default_factory=lambda: np.empty(0, np.float64))
    """What a decision cost; NaN if unknown, and for all proposals of a tick but the first."""
    equity_at: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    equity_usd: Floats = field(default_factory=lambda: np.empty(0, np.float64))
    fills: Sequence[Mapping[str, Any]] = ()
    halts: Sequence[Mapping[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.cost_usd)

    @property
    def ticks(self) -> int:
        """How many ticks the rows stand for."""
        return int(self.numbers["times"][self.numbers["place"] == 0].sum())

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        texts = sum(len(text) + 60 for table in self.texts.values() for text in table.texts)
        return len(self) * 8 * 14 + len(self.equity_at) * 16 + len(self.fills) * 600 + texts

    # Reading --------------------------------------------------------------------------------------------------------

    def choices(self, name: str) -> list[str]:
        """The distinct values of a column of text, sorted, without the empty one; of `flags` the single flags."""
        words = self.texts[name].texts
        if name == "flags":
            words = [flag for word in words for flag in word.split()]
        return sorted({word for word in words if word})

    def outcome_counts(self) -> dict[str, int]:
        """How many decisions had each outcome."""
        times = self.numbers["times"]
        return {name: int(times[self._has("outcome", {name})].sum()) for name in self.choices("outcome")}

    def find(self, conditions: RowFilter) -> Ints:
        """The numbers of the rows that fulfil all conditions, ascending."""
        fits = np.ones(len(self), np.bool_)
        for name, wanted in conditions.items():
            if not wanted:
                continue
            text = str(wanted)
            if name == "outcome" and text == PROPOSED:
                fits &= ~self._has("outcome", {"noop"})
            elif name == "flag":
                fits &= self._has("flags", {words for words in self.texts["flags"].texts if text in words.split()})
            elif name == "text":
                fits &= self._containing("reason", text) | self._containing("detail", text)
            else:
                fits &= self._has(name, {text})
        return np.flatnonzero(fits)

    def _has(self, name: str, texts: set[str]) -> NDArray[np.bool_]:
        table = self.texts[name].numbers
        wanted = [table[text] for text in texts if text in table]
        return np.isin(self.numbers[name], wanted)

    def _containing(self, name: str, part: str) -> NDArray[np.bool_]:
        part = part.lower()
        return self._has(name, {text for text in self.texts[name].texts if part in text.lower()})

    def row(self, index: int) -> dict[str, Any]:
        """One decision as plain values; instants are milliseconds. The fields of the proposal are among them."""
        numbers, texts = self.numbers, self.texts
        words = {name: texts[name].texts[numbers[name][index]] for name in WORDS}
        cost = float(self.cost_usd[index])
        proposal = json.loads(words.pop("proposal") or "{}")
        return {
            **proposal,
            **{name: int(numbers[name][index]) for name in NUMBERS},
            **{name: word or None for name, word in words.items()},
            "flags": words["flags"].split(),
            "reason": words["reason"],
            "detail": words["detail"],
            "cost_usd": None if np.isnan(cost) else cost,
            "row": index,
        }

    # Making ---------------------------------------------------------------------------------------------------------

    def extended(self, records: Iterable[Record], venue: Venue, params: Mapping[str, Any]) -> "RunIndex":
        """The index with the records that follow its last one. Calls on the same index and those made from it must not overlap."""
        index, rest = self, iter(records)
        while chunk := list(islice(rest, CHUNK)):
            index = index._with(chunk, venue, params)
        return index

    def _with(self, records: Sequence[Record], venue: Venue, params: Mapping[str, Any]) -> "RunIndex":
        rows: list[dict[str, Any]] = []
        pieces: list[Piece] = []
        receipts: list[Receipt] = []
        places: list[tuple[int, int]] = []
        for record in records:
            body = codec.loads(record.covered)
            pieces += body["equity"]
            receipts += [Receipt(**receipt) for receipt in body["receipts"]]
            for place, row in enumerate(decision_rows(record, body)):
                places.append((record.seq, place))
                rows.append(row)
        rows = venue.reveal(rows, params)
        added: dict[str, list[int]] = {name: [] for name in (*NUMBERS, *WORDS)}
        for (seq, place), row in zip(places, rows, strict=True):
            values = (seq, place, row["tick_at"], row.get("until") or row["tick_at"], row.get("times") or 1)
            for name, value in zip(NUMBERS, values, strict=True):
                added[name].append(value)
            for name, text in _texts(row).items():
                added[name].append(self.texts[name].number(text))
        costs = np.array([_cost(row) for row in rows], np.float64)
        at, usd = columns(pieces) if pieces else (self.equity_at[:0], self.equity_usd[:0])
        halted = [{"at": each.at, "kind": each.facts["halt"]} for each in receipts if each.kind == "halted"]
        return RunIndex(
            records[-1].seq + 1,
            records[-1].digest,
            {name: np.concatenate((self.numbers[name], np.array(values, np.int64))) for name, values in added.items()},
            self.texts,
            np.concatenate((self.cost_usd, costs)),
            np.concatenate((self.equity_at, at)),
            np.concatenate((self.equity_usd, usd)),
            [*self.fills, *map(_plain, venue.fills(receipts))],
            [*self.halts, *halted],
        )

    # Storing --------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The index as the bytes of an `npz` file."""
        document = {
            "next_seq": self.next_seq,
            "digest": self.digest,
            "texts": {name: table.texts for name, table in self.texts.items()},
            "fills": list(self.fills),
            "halts": list(self.halts),
        }
        arrays = {f"n_{name}": column for name, column in self.numbers.items()}
        file = io.BytesIO()
        np.savez(
            file,
            allow_pickle=False,
            document=np.frombuffer(json.dumps(document).encode(), np.uint8),
            cost_usd=self.cost_usd,
            equity_at=self.equity_at,
            equity_usd=self.equity_usd,
            **arrays,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> "RunIndex":
        """The inverse of `to_bytes`."""
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            document = json.loads(file["document"].tobytes())
            return cls(
                document["next_seq"],
                document["digest"],
                {name: file[f"n_{name}"] for name in (*NUMBERS, *WORDS)},
                {name: _DistinctTexts(document["texts"][name]) for name in WORDS},
                file["cost_usd"],
                file["equity_at"],
                file["equity_usd"],
                document["fills"],
                document["halts"],
            )


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    """The columns of text of a decision. Proposals are raw JSON of a model: any field may hold anything."""
    reason = next((row[name] for name in (*_REASONS, "text") if row.get(name)), "")
    return {
        "outcome": str(row["outcome"]),
        "action": _word(row.get("action")),
        "symbol": _word(row.get("symbol")),
        "code": _word(row.get("code")),
        "flags": " ".join(map(str, row.get("flags") or ())),
        "reason": _cut(reason, MOST_REASON),
        "detail": _cut(row.get("detail") or "", MOST_REASON),
        "proposal": _proposal(row),
    }


def _word(value: object) -> str:
    return "" if value is None else _cut(value, MOST_WORD)


def _cut(value: object, most: int) -> str:
    return one_line(str(value)[: most + 1], most).strip()


def _proposal(row: Mapping[str, Any]) -> str:
    """The other fields of a proposal as JSON; of a very long one only its short fields."""
    fields = {name: value for name, value in row.items() if name not in _ELSEWHERE}
    if not fields:
        return ""
    text = json.dumps(fields, default=str)
    if len(text) > MOST_PROPOSAL:
        short = {name: value for name, value in fields.items() if len(str(name)) + len(str(value)) <= MOST_WORD}
        text = json.dumps(dict(islice(short.items(), 12)), default=str)
    return text


def _cost(row: Mapping[str, Any]) -> float:
    cost = number(row.get("cost_usd"))
    return float("nan") if cost is None else cost


def _plain(fill: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in fill.items()}
