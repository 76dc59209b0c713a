"""Where a day ends on the tape: the last bar up to midnight, with holes of any length, as a search for each bar finds it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.market import Bars
from pitboss.venues.perp.tape import make_tape

START = 1_704_067_200_000


@given(st.sets(st.integers(0, 120), min_size=1, max_size=60))
def test_a_day_stops_at_its_last_bar(hours: set[int]) -> None:
    open_at = START + np.array(sorted(hours), np.int64) * HOUR_MS
    prices = np.ones(len(open_at))
    bars = Bars("SOL", "1h", HOUR_MS, open_at, prices, prices, prices, prices, prices)
    tape = make_tape({"SOL": bars}, START, START + 10 * DAY_MS, {}, {})
    closes_at = (open_at + HOUR_MS).tolist()
    for close, stop in zip(closes_at, tape.day_stop, strict=True):
        midnight = -(-close // DAY_MS) * DAY_MS
        assert stop == sum(other <= midnight for other in closes_at)
