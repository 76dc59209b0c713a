"""Every heuristic of the predict venue, found by looking into `venues/predict/policies/`. A new one is a new file there."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pitboss.core.errors import InvariantError
from pitboss.models.catalog import unknown
from pitboss.venues.predict import policies as predict
from pitboss.venues.predict.ladder_policy import Rungs


@cache
def heuristics() -> dict[str, Rungs]:
    """Every heuristic by its short name, found by looking into `venues/predict/policies/`."""
    found: dict[str, Rungs] = {}
    for module in sorted(iter_modules(predict.__path__), key=lambda module: module.name):
        policy = getattr(import_module(f"{predict.__name__}.{module.name}"), "POLICY", None)
        if not isinstance(policy, Rungs):
            raise InvariantError(f"venues/predict/policies/{module.name}.py has no POLICY = define_heuristic(...)")
        found[policy.name.removeprefix("policy/")] = policy
    return found


def heuristic(name: str) -> Rungs:
    """One by name, with or without `policy/`, with `-` for `_` as the original spells them."""
    known = heuristics()
    short = name.removeprefix("policy/").replace("-", "_")
    if short not in known:
        raise unknown("policy", f"policy/{short}", [f"policy/{one}" for one in known])
    return known[short]
