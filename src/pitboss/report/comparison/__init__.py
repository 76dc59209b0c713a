"""The page of a comparison of runs: what differs in their inputs, equity, results, decisions and metrics."""

from pitboss.report.comparison.page import compose

__all__ = ["compose"]
