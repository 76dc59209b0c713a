"""The page of an arena: its entrants, the significant differences between them, and their cost.

It shows the document of `jobs/arena.py` and reads nothing else.
"""

from pitboss.report.arena.page import compose

__all__ = ["compose"]
