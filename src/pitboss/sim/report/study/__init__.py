"""The page of a study: what was varied, what came of it, and how much of that is luck. Self-contained like every report.

It is given the document that `jobs/standing.py` makes, and reads nothing else. An arena has a page of its own.
"""

from pitboss.sim.report.study.page import render

__all__ = ["render"]
