"""Registry of the predict venue's heuristics: one module each in `venues/predict/policies/`."""

from functools import cache

from pitboss.core.discovery import definitions
from pitboss.models.catalog import choose_policy
from pitboss.venues.predict.ladder_policy import LadderPolicy


@cache
def heuristics() -> dict[str, LadderPolicy]:
    """Return every heuristic by its short name, discovered in `venues/predict/policies/`."""
    policies = definitions("pitboss.venues.predict.policies", "POLICY", LadderPolicy, "define_heuristic")
    return {policy.name.removeprefix("policy/"): policy for policy in policies}


def heuristic(name: str) -> LadderPolicy:
    """Return a heuristic by name, with or without `policy/`; `-` may replace `_`, as in the original's names."""
    return choose_policy(heuristics(), name.removeprefix("policy/").replace("-", "_"))
