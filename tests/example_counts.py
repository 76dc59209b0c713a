"""Scales how many examples each property is tried with: `make test` tries fewer than a test names, `make proof` many more.

The number that a test names weighs what one of its examples costs against those of other tests. Properties that have a long
version of their own, marked `proof`, keep the number they name there. So it is with seeds that a test is repeated for.
"""

from collections.abc import Container, Iterable
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

QUICK = 0.3
"""The share of the named examples in an ordinary run."""
FEWEST = 4
SETTINGS = "_hypothesis_internal_use_settings"


def scale(items: Iterable[pytest.Item], factor: float) -> None:
    """Multiply the number of examples of all properties among tests."""
    owners = {_owner(item) for item in items if _is_scaled(item)}
    for owner, name in owners:
        named: settings = getattr(owner, name)
        count = max(min(FEWEST, named.max_examples), round(named.max_examples * factor))
        setattr(owner, name, settings(named, max_examples=count))


def seeds(*numbers: int, quick: int = 3) -> list[Any]:
    """Seeds of the same property: `make test` tries the first few of them, `make proof` all."""
    return cases(numbers, numbers[:quick])


def cases(values: Iterable[Any], quick: Container[Any]) -> list[Any]:
    """Cases that differ little: `make test` tries those in `quick`, `make proof` all."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.proof) for value in values]


def _is_scaled(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.obj) and not item.get_closest_marker("proof")


def _owner(item: pytest.Item) -> tuple[object, str]:
    """Where the settings of a property are: at its function, or at the class of a state machine."""
    assert isinstance(item, pytest.Function)
    return (item.function, SETTINGS) if hasattr(item.function, SETTINGS) else (item.cls, "settings")
