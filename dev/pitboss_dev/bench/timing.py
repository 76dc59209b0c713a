"""How things are timed: every side once to warm up, then all sides in turn, several times; what is told is the median.

Taking turns is what makes a ratio mean something on a machine that others use too: a slow minute slows every side.
"""

import gc
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

Side = Callable[[], float]
"""Does its work once and says what that cost, in seconds or whatever unit the caller compares."""


def interleave(sides: Mapping[str, Side], repeats: int, warm: bool = True) -> dict[str, float]:
    """The median of each side over so many rounds. The garbage of one side is never collected on another's time."""
    if warm:
        for side in sides.values():
            side()
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(max(1, repeats)):
        for name, side in sides.items():
            gc.collect()
            taken[name].append(side())
    return {name: median(values) for name, values in taken.items()}


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def per_call(work: Callable[[], object], calls: int) -> float:
    """Seconds a call, over so many calls in a row."""
    began = perf_counter()
    for _ in range(calls):
        work()
    return (perf_counter() - began) / calls


def each_call(work: Callable[[], object], calls: int) -> list[float]:
    """Seconds of every single call, for the tail of a distribution."""
    taken: list[float] = []
    for _ in range(calls):
        began = perf_counter()
        work()
        taken.append(perf_counter() - began)
    return taken


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
