"""Writes figures in the text format of Prometheus (version 0.0.4). Pure; what the figures are is in `live_metrics.py`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MetricKind = Literal["gauge", "counter", "histogram"]
Sample = tuple[Mapping[str, str], float]


def write_metric(name: str, kind: MetricKind, meaning: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of one figure; none if it has no sample."""
    lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *lines] if lines else []


class LatencyHistogram:
    """Counts durations by upper bounds in seconds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * len(self._bounds)
        self._count = 0
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration. A clock that was set back gives none below zero."""
        seconds = max(0.0, seconds)
        self._count += 1
        self._sum += seconds
        for place, bound in enumerate(self._bounds):
            self._counts[place] += seconds <= bound

    def lines(self, name: str, meaning: str) -> list[str]:
        """The lines of the figure."""
        buckets = [*zip(map(_number, self._bounds), self._counts, strict=True), ("+Inf", self._count)]
        return [
            f"# HELP {name} {meaning}",
            f"# TYPE {name} histogram",
            *(f'{name}_bucket{{le="{bound}"}} {count}' for bound, count in buckets),
            f"{name}_sum {_number(self._sum)}",
            f"{name}_count {self._count}",
        ]


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    """A label's value: bounded, and nothing in it ends the line or the quotes."""
    return value[:120].replace("\\", r"\\").replace("\n", r"\n").replace("\r", " ").replace('"', r"\"")


def _number(value: float) -> str:
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else repr(float(value))
