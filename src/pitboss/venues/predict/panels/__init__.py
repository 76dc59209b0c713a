"""The report page of a predict run: whether the model's probabilities were better than the market's price.

It uses the parts of `report` and adds the panels that only forecasts have: conclusion, calibration, scores and spread. It
reads no store, no clock and no file but style sheets and a script.
"""

from pitboss.venues.predict.panels.page import compose
from pitboss.venues.predict.panels.source import PredictReport

__all__ = ["PredictReport", "compose"]
