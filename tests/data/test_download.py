import asyncio
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.data.download import join_spans, missing_spans, rows_digest
from pitboss.data.fetch import WeightLimiter, address, host_of

PACE = 10


@given(st.sets(st.integers(0, 60)), st.integers(0, 300), st.integers(0, 600))
def test_stored_and_missing_together_are_the_range_and_share_nothing(
    stored: set[int], from_at: int, length: int
) -> None:
    times = np.array(sorted(step * PACE for step in stored), dtype=np.int64)
    spans = missing_spans(times, from_at, from_at + length, PACE)
    absent = {at for start, end in spans for at in range(start, end, PACE)}
    wanted = {at for at in range(0, from_at + length, PACE) if at >= from_at}
    assert absent == wanted - set(times.tolist())


@given(st.sets(st.integers(0, 200), min_size=0, max_size=40), st.integers(0, 50))
def test_joined_spans_hold_all_that_the_single_ones_do(edges: set[int], within: int) -> None:
    marks = sorted(edges)[: len(edges) // 2 * 2]
    spans = list(zip(marks[::2], marks[1::2], strict=True))
    joined = join_spans(spans, within)
    assert all(any(start <= span[0] and span[1] <= end for start, end in joined) for span in spans)
    assert all(after[0] - before[1] > within for before, after in pairwise(joined))


def test_a_digest_is_of_the_content_and_of_nothing_else() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": ["x", "y", "z"]})
    parts = pl.concat([frame.head(1), frame.tail(2)], rechunk=False)
    assert rows_digest(parts) == rows_digest(frame)
    assert rows_digest(frame.with_columns(b=pl.col("b").fill_null(0.0))) != rows_digest(frame)
    assert rows_digest(frame.rename({"a": "d"})) != rows_digest(frame)
    assert rows_digest(None) != rows_digest(frame)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=40), st.integers(0, 5))
def test_no_minute_ever_holds_more_weight_than_the_budget(weights: list[int], gap: int) -> None:
    time = [0.0]
    requests: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        time[0] += seconds

    async def spend() -> None:
        budget = WeightLimiter(1_200, lambda: time[0], sleep)
        for weight in weights:
            await budget.take(weight)
            requests.append((time[0], weight))
            time[0] += gap

    asyncio.run(spend())
    for at, _ in requests:
        assert sum(weight for at_s, weight in requests if at - 60 < at_s <= at) <= 1_200


@pytest.mark.parametrize("text", ["", "ftp://x", "example.com", "http://", "file:///etc/passwd"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        address(text)


def test_a_host_is_shown_without_path_question_or_password() -> None:
    assert host_of("https://me:secret@example.com:8443/a?key=k3y") == "example.com:8443"
