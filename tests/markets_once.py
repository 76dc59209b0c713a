"""The generated market is the same whenever it is asked for: a process makes each one once, and writes it as often as it is told to."""

from functools import cache

from pitboss.data import demo


def install() -> None:
    """Change the module for the rest of this process."""
    demo._market = cache(demo._market)
    demo._minutes = cache(demo._minutes)
