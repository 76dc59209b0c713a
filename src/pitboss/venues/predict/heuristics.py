"""Registry of the predict venue's heuristics: one module each in `venues/predict/policies/`."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pitboss.core.errors import InvariantError
from pitboss.models.catalog import unknown
from pitboss.venues.predict import policies as predict
from pitboss.venues.predict.ladder_policy import Rungs


@cache
def heuristics() -> dict[str, Rungs]:
    """Return every heuristic by its short name, discovered in `venues/predict/policies/`."""
    policies: dict[str, Rungs] = {}
    for module in sorted(iter_modules(predict.__path__), key=lambda module: module.name):
        policy = getattr(import_module(f"{predict.__name__}.{module.name}"), "POLICY", None)
        if not isinstance(policy, Rungs):
            raise InvariantError(f"venues/predict/policies/{module.name}.py has no POLICY = define_heuristic(...)")
        policies[policy.name.removeprefix("policy/")] = policy
    return policies


def heuristic(name: str) -> Rungs:
    """Return a heuristic by name, with or without `policy/`; `-` may replace `_`, as in the original's names."""
    policies = heuristics()
    short = name.removeprefix("policy/").replace("-", "_")
    if short not in policies:
        raise unknown("policy", f"policy/{short}", [f"policy/{policy_name}" for policy_name in policies])
    return policies[short]
