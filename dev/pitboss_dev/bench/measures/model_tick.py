"""One tick in model mode without the model, compared with the floor of a recorded tick.

The floor is the work that no design can leave out: cut 100 bars, join rows that are already text, hash the prompt, serialise
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

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.market import Bars
from pitboss.store.compression import LEVEL
from pitboss.store.journal import StoredJournal
from pitboss_dev.bench.backtests import model_course, model_request, prepare, replay_seconds, trading_model
from pitboss_dev.bench.market import MarketShape, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

SHARED_COMMIT, COMMIT_EACH = 50, 1
"""Ticks of one transaction."""
SNAPSHOT_BYTES = 8_192
HIGHER_ROWS = 50
REFERENCE, JOURNAL_REFERENCE = "bare floor", "floor, our zstd"
FLOOR_LEVEL = 1
"""The gates compare with a floor compressed at zstd 1. The journal compresses faster and less, so rows without a gate show
the same ticks against a floor with the journal's level: changing the level of one side only gains nothing."""


class Floor:
    """The least that a recorded tick costs, over consecutive bars."""

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
        self._compress = zstandard.ZstdCompressor(level=level).compress
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=wal")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE floor (seq INTEGER PRIMARY KEY, digest TEXT, body BLOB)")
        self._seq = 0

    def seconds(self, ticks: int, commit_ticks: int = SHARED_COMMIT) -> float:
        """Seconds of one tick over `ticks` of them, with one commit for every `commit_ticks`."""
        bars, rows, compress, execute = self._bars, self._rows, self._compress, self._connection.execute
        columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
        start = perf_counter()
        execute("BEGIN IMMEDIATE")
        for number in range(ticks):
            stop = 100 + number % (len(rows) - 100)
            _ = [column[stop - 100 : stop] for column in columns]
            text = "\n".join(rows[stop - 100 : stop])
            for _ in range(2):
                text += "\n".join(rows[stop - HIGHER_ROWS : stop])
            digest = hashlib.sha256(self._prompt).hexdigest()
            body = compress(orjson.dumps(self._snapshot))
            self._seq += 1
            execute("INSERT INTO floor VALUES (?, ?, ?)", (self._seq, digest, body))
            if self._seq % commit_ticks == 0:
                execute("COMMIT")
                execute("BEGIN IMMEDIATE")
        execute("COMMIT")
        return (perf_counter() - start) / ticks

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


class ModelTicks:
    """Ticks through the real replay, without the time inside the model."""

    def __init__(self, workspace: Workspace, shape: MarketShape, ticks: int) -> None:
        self.workspace = workspace
        self.ticks = ticks
        self.prompt = ("", "")
        self.record_bytes = 0
        self._prepared = prepare(workspace, model_request(shape, ticks))

    def seconds(self) -> float:
        """Seconds of one tick."""
        model = trading_model()
        course = model_course(self._prepared, model)
        duration = replay_seconds(self.workspace, self._prepared, course, self._read_prompt)
        return (duration - model.seconds) / model.requests

    def _read_prompt(self, journal: StoredJournal) -> None:
        if self.prompt == ("", ""):
            record = next(iter(journal.records(self.ticks // 2)))
            system, user = codec.loads(record.extra)["prompt"]
            self.prompt, self.record_bytes = (system, user), len(record.covered) + len(record.extra)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One commit for 50 ticks and one for each tick, compared with both floors."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    folder = bench.folder
    with (
        folder.workspace(shape, "one", SHARED_COMMIT) as shared_workspace,
        folder.workspace(shape, "one", COMMIT_EACH) as each_workspace,
    ):
        shared, each = ModelTicks(shared_workspace, shape, ticks), ModelTicks(each_workspace, shape, ticks)
        shared.seconds()
        bars, prompt = random_walk("SOL", shape), "\n".join(shared.prompt)
        floor = Floor(folder.path / "floor.db", bars, prompt, FLOOR_LEVEL)
        journal_floor = Floor(folder.path / "journal-floor.db", bars, prompt, LEVEL)
        try:
            tick_s = interleave(
                {
                    "shared": shared.seconds,
                    "floor": lambda: floor.seconds(ticks),
                    "journal floor": lambda: journal_floor.seconds(ticks),
                    "each": each.seconds,
                    "floor each": lambda: floor.seconds(ticks, COMMIT_EACH),
                },
                bench.repeats,
            )
        finally:
            floor.close()
            journal_floor.close()
    us = {name: value * 1e6 for name, value in tick_s.items()}
    sizes = f"prompt {sum(map(len, shared.prompt)):,} characters, record {shared.record_bytes:,} bytes"
    commit = (
        f"the floor itself with a commit each: {us['floor each']:,.0f} µs, "
        f"so this disk takes {us['floor each'] - us['floor']:,.0f} µs of it"
    )
    for name, key, limit, note in (
        ("model tick, commit per 50", "shared", 8.0, sizes),
        ("model tick, commit each", "each", 13.0, commit),
    ):
        yield BenchRow(name, us[key], "µs", REFERENCE, us["floor"], RatioGate("at most", limit), note)
    note = f"the floor compressed at zstd {LEVEL} like the journal, not at {FLOOR_LEVEL}"
    for name, key in (("model tick, commit per 50, like for like", "shared"), ("commit each, like for like", "each")):
        yield BenchRow(name, us[key], "µs", JOURNAL_REFERENCE, us["journal floor"], note=note)


MEASURE = Measure("model_tick", "a whole tick without the model, against the bare floor", measure, 20)
