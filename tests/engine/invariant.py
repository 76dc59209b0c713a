"""`@invariant`: one property, run quickly with every test run and at length under `make proof`.

A module that uses it ends with `test_long = long_versions(globals())`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

CALM = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def invariant(*strategies: Any, quick: int = 20, proof: int = 10_000) -> Callable[[Callable[..., None]], Any]:
    """The property with `quick` examples, carrying its long version with it."""

    def wrap(body: Callable[..., None]) -> Any:
        short: Any = settings(CALM, max_examples=quick)(given(*strategies)(body))
        short.long = settings(CALM, max_examples=proof)(given(*strategies)(body))
        return short

    return wrap


def long_versions(module: dict[str, Any]) -> Any:
    """One test, marked `proof`, for each property of a module."""
    names = [name for name, value in module.items() if name.startswith("test_") and hasattr(value, "long")]

    @pytest.mark.proof
    @pytest.mark.timeout(3600)
    @pytest.mark.parametrize("name", names)
    def test_holds_for_many_more_examples(name: str) -> None:
        module[name].long()

    return test_holds_for_many_more_examples
