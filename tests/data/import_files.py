"""Writes small market files to import, in every supported format."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pitboss.core.instant import parse_instant
from pitboss.core.market import Bars

START = parse_instant("2025-01-01")
MIN5 = 300_000
HOUR = 3_600_000
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def bar_rows(count: int = 24, start: int = START, step: int = MIN5, price: float = 100.0) -> list[dict[str, Any]]:
    """Valid bars that wander a little, deterministic."""
    rows: list[dict[str, Any]] = []
    for index in range(count):
        opening = price + (index * 7 % 11) * 0.25
        closing = price + (index * 5 % 13) * 0.25
        rows.append(
            {
                "date": start + index * step,
                "open": opening,
                "high": max(opening, closing) + 0.5,
                "low": min(opening, closing) - 0.5,
                "close": closing,
                "volume": 1.0 + index,
            }
        )
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows as the format the name asks for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name
    if name.endswith((".csv", ".csv.gz")):
        content = pl.DataFrame(rows, infer_schema_length=None, strict=False).write_csv().encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    elif name.endswith((".jsonl", ".ndjson")):
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows))
    elif name.endswith(".feather"):
        pl.DataFrame(rows).write_ipc(path, compression="zstd")
    else:
        pl.DataFrame(rows).write_parquet(path)
    return path


def make_bars(opens: list[int], interval: str, step: int, seed: int = 0) -> Bars:
    """Random but valid bars at given open times."""
    random = np.random.default_rng(seed)
    count = len(opens)
    opening, closing = random.uniform(50, 150, count), random.uniform(50, 150, count)
    high = np.maximum(opening, closing) + random.uniform(0, 5, count)
    low = np.minimum(opening, closing) - random.uniform(0, 5, count)
    at = np.array(opens, dtype=np.int64)
    return Bars("X", interval, step, at, opening, high, low, closing, random.uniform(0, 9, count))
