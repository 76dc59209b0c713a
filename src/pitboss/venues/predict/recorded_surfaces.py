"""Recorded surfaces in a replay: for each market the newest one at an instant, or a flat one if there is none."""

from bisect import bisect_right
from typing import Protocol

import numpy as np

from pitboss.core.instant import Instant
from pitboss.core.market import Ints
from pitboss.venues.predict.course import Updates
from pitboss.venues.predict.state import Oracle
from pitboss.venues.predict.surface import synthetic
from pitboss.venues.predict.svi import Svi


class SurfaceRows(Protocol):
    """Surface updates, oldest first, each of one market, identified by its id or by its expiry in milliseconds."""

    @property
    def at(self) -> Ints: ...
    @property
    def market_id(self) -> tuple[str, ...]: ...

    def svi(self, row: int) -> Svi: ...


class RecordedSurfaces:
    """The surfaces of a file, looked up by market and instant."""

    def __init__(self, rows: SurfaceRows, updates: Updates) -> None:
        self._rows, self._updates = rows, updates
        self._at: dict[str, list[int]] = {}
        self._row_numbers: dict[str, list[int]] = {}
        for row, (at, name) in enumerate(zip(rows.at.tolist(), rows.market_id, strict=True)):
            self._at.setdefault(name, []).append(at)
            self._row_numbers.setdefault(name, []).append(row)

    def __call__(self, oracle: Oracle, at: Instant) -> Svi | None:
        """Return the newest surface of a market at an instant; computed from realised volatility if none was recorded."""
        name = oracle.id if oracle.id in self._at else str(oracle.expiry_at)
        count = bisect_right(self._at.get(name, []), at)
        if count:
            return self._rows.svi(self._row_numbers[name][count - 1])
        newest = int(np.searchsorted(self._updates.at, at, side="right")) - 1
        volatility = float(self._updates.volatility[newest]) if newest >= 0 else 0.0
        return synthetic(volatility, oracle.expiry_at, at)
