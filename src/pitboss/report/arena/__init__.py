"""The page of an arena: who takes part, who can be told from whom, and what it cost. Self-contained like every report.

It is given the document that `jobs/arena.py` makes, and reads nothing else.
"""

from pitboss.report.arena.page import render

__all__ = ["render"]
