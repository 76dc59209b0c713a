"""One tick in model mode, everything apart from the model, against the bare floor of a recorded tick.

The floor is what no design can leave out: cut 100 bars, join rows that are already text, hash the prompt, serialise
and compress a snapshot of 8 KB, insert it, and commit once in 50 ticks. It is measured between our runs, on the same disk
with the same SQLite settings.
"""

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

import orjson
import zstandard

from pitboss.bench.market import MarketShape, walk
from pitboss.bench.measure import Bench, Measure
from pitboss.bench.row import BenchRow, RatioGate
from pitboss.bench.timing import interleave
from pitboss.bench.trial import assembled, model_request, replay_seconds, trader, with_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.market import Bars
from pitboss.store.compression import LEVEL
from pitboss.store.journal import StoredJournal

TOGETHER, EACH = 50, 1
SNAPSHOT_BYTES = 8_192
HIGHER_ROWS = 50
REFERENCE, LIKE = "bare floor", "floor, our zstd"
FLOOR_LEVEL = 1
"""The gates stand against a floor pressed at zstd 1. The journal presses faster and looser, so rows without a gate
show the same ticks against a floor pressed as the journal does: nobody gains by changing one side only."""


class Floor:
    """The least that a recorded tick costs, over one bar after the other."""

    def __init__(self, path: Path, bars: Bars, prompt: str, level: int) -> None:
        self._bars = bars
        self._prompt = prompt.encode()
        self._rows = [f"2024-01-01 00:00 | {close:.2f} | {high:.2f} | {low:.2f}" for close, high, low in zip(
            bars.close.tolist(), bars.high.tolist(), bars.low.tolist(), strict=True
        )]  # fmt: skip
        snapshot = {"seq": 0, "kind": "tick", "tick_at": 0, "verdicts": [], "receipts": [], "equity": [[0, "1000000"]]}
        text = prompt * (SNAPSHOT_BYTES // len(prompt) + 1)
        room = SNAPSHOT_BYTES - len(orjson.dumps({**snapshot, "prompt": ""}))
        self._snapshot = {**snapshot, "prompt": text[: room - text[:room].count("\n")]}
        self._press = zstandard.ZstdCompressor(level=level).compress
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=wal")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE floor (seq INTEGER PRIMARY KEY, digest TEXT, body BLOB)")
        self._seq = 0

    def seconds(self, ticks: int, together: int = TOGETHER) -> float:
        """Seconds of one tick, over so many, with one commit for so many of them."""
        bars, rows, press, execute = self._bars, self._rows, self._press, self._connection.execute
        columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
        began = perf_counter()
        execute("BEGIN IMMEDIATE")
        for number in range(ticks):
            stop = 100 + number % (len(rows) - 100)
            _ = [column[stop - 100 : stop] for column in columns]
            text = "\n".join(rows[stop - 100 : stop])
            for _ in range(2):
                text += "\n".join(rows[stop - HIGHER_ROWS : stop])
            digest = hashlib.sha256(self._prompt).hexdigest()
            body = press(orjson.dumps(self._snapshot))
            self._seq += 1
            execute("INSERT INTO floor VALUES (?, ?, ?)", (self._seq, digest, body))
            if self._seq % together == 0:
                execute("COMMIT")
                execute("BEGIN IMMEDIATE")
        execute("COMMIT")
        return (perf_counter() - began) / ticks

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class Ours:
    """Ticks through the real replay, the time inside the model taken off. One database for each way of committing."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self.workspace = workspace
        self.ticks = ticks
        self.prompt = ("", "")
        self.record_bytes = 0
        self._loaded = assembled(workspace, model_request(shape, ticks))

    def seconds(self) -> float:
        """Seconds of one tick."""
        model = trader()
        taken = replay_seconds(self.workspace, with_model(self._loaded, model), self._look)
        return (taken - model.seconds) / model.asked

    def _look(self, journal: StoredJournal) -> None:
        if self.prompt == ("", ""):
            record = next(iter(journal.records(self.ticks // 2)))
            system, user = codec.loads(record.extra)["prompt"]
            self.prompt, self.record_bytes = (system, user), len(record.covered) + len(record.extra)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """A commit for every 50 ticks and one for each, against both floors."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    grounds = bench.grounds
    with (
        grounds.workspace(shape, "one", TOGETHER) as shared,
        grounds.workspace(shape, "one", EACH) as alone,
    ):
        together, each = Ours(shared, shape, ticks), Ours(alone, shape, ticks)
        together.seconds()
        bars, prompt = walk("SOL", shape), "\n".join(together.prompt)
        floor = Floor(grounds.folder / "floor.db", bars, prompt, FLOOR_LEVEL)
        like = Floor(grounds.folder / "like.db", bars, prompt, LEVEL)
        try:
            taken = interleave(
                {
                    "together": together.seconds,
                    "floor": lambda: floor.seconds(ticks),
                    "like": lambda: like.seconds(ticks),
                    "each": each.seconds,
                    "floor each": lambda: floor.seconds(ticks, EACH),
                },
                bench.repeats,
            )
        finally:
            floor.close()
            like.close()
    shown = f"prompt {len(together.prompt[0]) + len(together.prompt[1]):,} characters, record {together.record_bytes:,} bytes"
    floor_us = taken["floor"] * 1e6
    yield BenchRow(
        "model tick, commit per 50",
        taken["together"] * 1e6,
        "µs",
        REFERENCE,
        floor_us,
        RatioGate("at most", 8.0),
        shown,
    )
    alone_us = taken["floor each"] * 1e6
    waits = f"the floor itself with a commit each: {alone_us:,.0f} µs, so this disk takes {alone_us - floor_us:,.0f} µs of it"
    yield BenchRow(
        "model tick, commit each", taken["each"] * 1e6, "µs", REFERENCE, floor_us, RatioGate("at most", 13.0), waits
    )
    same = f"the floor pressed at zstd {LEVEL} like the journal, not at {FLOOR_LEVEL}"
    for name, key in (("model tick, commit per 50, like for like", "together"), ("commit each, like for like", "each")):
        yield BenchRow(name, taken[key] * 1e6, "µs", LIKE, taken["like"] * 1e6, note=same)


MEASURE = Measure("model_tick", "a whole tick apart from the model, against the bare floor", measure, 20)
