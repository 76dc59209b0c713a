"""Caches the generated market, which is deterministic, so that a process generates it once."""

from functools import cache

from pitboss.data import demo


def install() -> None:
    """Change the module for the rest of this process."""
    demo._market = cache(demo._market)
    demo._minutes = cache(demo._minutes)
