"""The page of a study: what was varied, what came of it, and how much of that is luck. Self-contained like every report.

It is given the document that `jobs/study_status.py` makes, and reads nothing else. An arena has a page of its own.
"""

from pitboss.report.study.page import render

__all__ = ["render"]
