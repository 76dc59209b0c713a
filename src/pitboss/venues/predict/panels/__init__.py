"""The report of a predict backtest, as one HTML file that opens offline: whether the model knew better than the price.

It stands on the parts of the other venue's report (markup, frame, charts, tables, the document around them) and adds what
only probabilities have. Like it, it reads no store, no clock and no file but style sheets and a script.
"""

from pitboss.venues.predict.panels.page import render
from pitboss.venues.predict.panels.source import PredictReport

__all__ = ["PredictReport", "render"]
