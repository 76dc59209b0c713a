"""Timing: every side runs once to warm up, then all sides take turns several times, and the median counts.

Taking turns is what makes a ratio meaningful on a shared machine: a slow minute slows every side.
"""

import gc
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

Side = Callable[[], float]
"""Does its work once and returns the cost, in seconds or any unit that the caller compares."""


def interleave(sides: Mapping[str, Side], repeats: int, warm: bool = True) -> dict[str, float]:
    """The median cost of each side over `repeats` rounds. Garbage is collected between sides, outside their time."""
    if warm:
        for side in sides.values():
            side()
    costs: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(max(1, repeats)):
        for name, side in sides.items():
            gc.collect()
            costs[name].append(side())
    return {name: median(values) for name, values in costs.items()}


def seconds(work: Callable[[], object]) -> float:
    """The duration of one call."""
    start = perf_counter()
    work()
    return perf_counter() - start


def per_call(work: Callable[[], object], calls: int) -> float:
    """The mean duration of a call over `calls` calls in a row."""
    start = perf_counter()
    for _ in range(calls):
        work()
    return (perf_counter() - start) / calls


def each_call(work: Callable[[], object], calls: int) -> list[float]:
    """The duration of every single call, for the tail of the distribution."""
    return [seconds(work) for _ in range(calls)]


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
