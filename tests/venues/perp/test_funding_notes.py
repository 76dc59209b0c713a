"""A run says which funding it cannot charge."""

from typing import Any

import numpy as np
import pytest

from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.core.market import Points
from pitboss.venues.perp.funding_notes import funding_notes

FROM, TO = parse_instant("2025-03-01"), parse_instant("2025-03-08")
HOURS = np.arange(FROM - DAY_MS, TO + DAY_MS, HOUR_MS)


def market(at: Any) -> Market:
    return Market({}, {("funding", "BTC"): Points("BTC", "funding", at, np.full(len(at), 1e-5))})


@pytest.mark.parametrize(
    ("at", "notes"),
    [
        (HOURS, []),
        (HOURS[HOURS >= FROM + DAY_MS], []),
        (HOURS[HOURS < TO - 30 * HOUR_MS], ["from 2025-03-01T00:00:00Z to 2025-03-06T17:00:00Z only"]),
        (HOURS[HOURS > FROM + DAY_MS], ["BTC has funding rates from 2025-03-02T01:00:00Z"]),
        (HOURS[HOURS < FROM], ["No funding rates of BTC are imported"]),
        (HOURS[HOURS >= TO], ["No funding rates of BTC are imported"]),
    ],
)
def test_rates_that_miss_more_than_a_day_of_the_range_are_named(at: Any, notes: list[str]) -> None:
    said = funding_notes(market(at), ["BTC"], FROM, TO)
    assert len(said) == len(notes)
    assert all(words in note for words, note in zip(notes, said, strict=True))


def test_symbols_without_any_rates_share_one_note() -> None:
    said = funding_notes(market(HOURS), ["SOL", "BTC", "ETH"], FROM, TO)
    assert said == ["No funding rates of ETH, SOL are imported for this range: no funding is charged."]
