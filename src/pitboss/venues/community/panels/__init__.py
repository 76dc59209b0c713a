"""The report page of a community run: what the agent found, did and wrote, and what others wrote to it.

It uses the parts of `report` and adds panels about bugs, transactions and threads. It reads no store, no clock and no file but
style sheets and a script.
"""

from pitboss.venues.community.panels.page import compose
from pitboss.venues.community.panels.source import CommunityReport

__all__ = ["CommunityReport", "compose"]
