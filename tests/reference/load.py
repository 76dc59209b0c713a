"""Real bars and funding in the shapes `run` takes, read from the folder of shared data.

Only reads; the folder is outside the project and may be absent (`DATA.exists()`).
"""

from pathlib import Path

import polars as pl

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def _rows(path: Path, from_ms: int, to_ms: int, columns: list[str]) -> list[tuple]:
    frame = pl.read_parquet(path).with_columns(pl.col("date").dt.epoch("ms").alias("at")).sort("at")
    frame = frame.filter((pl.col("at") >= from_ms) & (pl.col("at") < to_ms))
    return frame.select(["at", *columns]).rows()


def bars(
    symbols: list[str], interval: str, from_ms: int, to_ms: int, folder: str = "hyperliquid/candles"
) -> dict[str, list[tuple[int, float, float, float, float]]]:
    """Bars opening in [from_ms, to_ms); begin a little before the run so that there are marks at its first tick."""
    return {
        symbol: _rows(DATA / folder / interval / f"{symbol}.parquet", from_ms, to_ms, ["open", "high", "low", "close"])
        for symbol in symbols
    }


def funding(
    symbols: list[str], from_ms: int, to_ms: int, folder: str = "hyperliquid/funding"
) -> dict[str, list[tuple[int, float]]]:
    return {symbol: _rows(DATA / folder / f"{symbol}.parquet", from_ms, to_ms, ["funding_rate"]) for symbol in symbols}


def marks(
    symbols: list[str], from_ms: int, to_ms: int, folder: str = "binance_2023_2024/mark_8h"
) -> dict[str, list[tuple[int, float]]]:
    """The value of a mark series at its own instant: the open of its row."""
    return {symbol: _rows(DATA / folder / f"{symbol}.parquet", from_ms, to_ms, ["open"]) for symbol in symbols}
