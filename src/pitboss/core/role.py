"""The roles of people and tokens at the server."""

from typing import Literal

Role = Literal["viewer", "author", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "author", "operator", "admin")
"""From the least to the most: a viewer reads, an author writes skills and runs backtests, an operator controls deployments and
approvals, an admin manages users, keys and settings. Each may do what those before it may."""
