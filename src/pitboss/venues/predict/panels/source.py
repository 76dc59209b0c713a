"""The input of a predict run's page: the common `RunReport`, the calls, and the origin of the prices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pitboss.report.source import Plain, RunReport, mapping
from pitboss.venues.predict.outcome import MarketCall

Surfaces = Literal["recorded", "mixed", "fitted", "protocol"]
PRICE = "normalised"
"""The market probability that the page compares with: asks normalised so that both sides add up to one."""


@dataclass(frozen=True, slots=True)
class PredictReport:
    """A finished or partial run with everything that its page shows.

    In `run`, `document["metrics"]` is what `compute_predict` gives and `document["baselines"]` what `baseline_metrics`
    does; `decisions` are rows of proposals; `fills` have a `reason`, mint or redeem.
    """

    run: RunReport
    calls: Sequence[MarketCall] = ()
    surfaces: Surfaces = "fitted"
    surface_note: str = ""
    """More about the surfaces, such as where they were recorded."""

    @property
    def metrics(self) -> Plain:
        return self.run.metrics

    @property
    def baselines(self) -> Plain:
        return mapping(self.run.document.get("baselines"))

    def scores(self, group: str = "all") -> Plain:
        """Scores on `all` calls or on those that were `minted`."""
        return mapping(mapping(self.metrics.get("scores")).get(group))

    def against(self, group: str = "all", kind: str = PRICE) -> Plain:
        """The comparison of the model with one reading of the market."""
        return mapping(mapping(self.scores(group).get("against")).get(kind))


def nested(values: Plain, *path: str) -> object:
    """The value at a path of keys; None if a key is missing."""
    value: object = values
    for name in path:
        value = mapping(value).get(name)
    return value
