"""`ChartSeries`: what the charts of a run were drawn from besides its records, kept so that a part of their time can be drawn again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pitboss.report.series import Floats
from pitboss.report.source import RunReport


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Curves of baselines as rows `(at, usd)`, and bars of symbols as rows `(open_at, open, high, low, close)`."""

    baselines: Mapping[str, Floats] = field(default_factory=dict)
    prices: Mapping[str, Floats] = field(default_factory=dict)


NO_SERIES = ChartSeries()


def series_of(report: RunReport) -> ChartSeries:
    """The series of a report."""
    return ChartSeries(
        {name: np.asarray(rows, np.float64).reshape(-1, 2) for name, rows in report.baseline_equity.items()},
        {symbol: np.asarray(bars, np.float64).reshape(-1, 5) for symbol, bars in report.prices.items()},
    )
