"""`Bound`: one limit of the program, for the page of limits."""

from importlib import import_module
from typing import NamedTuple


class Bound(NamedTuple):
    """One limit: what it limits, the module and name of its value, the unit, and what happens beyond it."""

    subject: str
    module: str
    name: str
    unit: str
    beyond: str

    def value(self) -> object:
        """The value that the code uses."""
        return getattr(import_module(f"pitboss.{self.module}"), self.name)
