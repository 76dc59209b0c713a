"""Finds what the modules of a package define: a tool, a rule, a section or a policy is added by adding a file."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

from pitboss.core.errors import InvariantError

T = TypeVar("T")


def modules_of(package: str) -> Iterator[ModuleType]:
    """Import the modules of a package, in the order of their names."""
    for name in sorted(module.name for module in iter_modules(import_module(package).__path__)):
        yield import_module(f"{package}.{name}")


def definitions(package: str, attribute: str, kind: type[T], maker: str) -> Iterator[T]:
    """What each module of a package has under `attribute`. A module without one is an `InvariantError`."""
    for module in modules_of(package):
        definition = getattr(module, attribute, None)
        if not isinstance(definition, kind):
            raise InvariantError(f"{module.__name__} has no {attribute} = {maker}(...)")
        yield definition
