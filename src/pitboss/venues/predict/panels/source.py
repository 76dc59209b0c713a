"""What the report of a predict run is made from: what both venues have (`RunReport`), and how its market came about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pitboss.report.source import Plain, RunReport, mapping
from pitboss.venues.predict.outcome import MarketCall

Surfaces = Literal["recorded", "mixed", "fitted"]
PRICE = "normalised"
"""The reading of the market's probability that the page compares with: both sides' asks add up to one."""


@dataclass(frozen=True, slots=True)
class PredictReport:
    """A finished or partial run, ready to be shown.

    In `run`, `document["metrics"]` is what `compute_predict` gives and `document["baselines"]` what `baseline_metrics`
    does; `decisions` are rows of proposals as they were made; `fills` carry `reason`, mint or redeem.
    """

    run: RunReport
    calls: Sequence[MarketCall] = ()
    surfaces: Surfaces = "fitted"
    surface_note: str = ""
    """Anything more there is to say about the surfaces, such as where they were recorded."""

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
        """The model beside one reading of the market."""
        return mapping(mapping(self.scores(group).get("against")).get(kind))


def nested(values: Plain, *path: str) -> object:
    """A value some steps down; None where a step is missing."""
    found: object = values
    for name in path:
        found = mapping(found).get(name)
    return found
