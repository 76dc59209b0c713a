"""The report of a backtest as one HTML file that opens offline and asks nothing of any other machine.

It sits in the simulator, above the nouns and below every adapter: the caller reads the stored run, puts what it found
into a `Report` and gets text back from `render`. It deliberately reads no store, no clock and no file but its own
style sheet and script, so the same `Report` gives the same bytes everywhere.
"""

from pitboss.sim.report.page import render
from pitboss.sim.report.source import Report

__all__ = ["Report", "render"]
