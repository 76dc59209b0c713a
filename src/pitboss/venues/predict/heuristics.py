"""Registry of the predict venue's heuristics: one module each in `venues/predict/policies/`."""

from functools import cache

from pitboss.core.discovery import definitions
from pitboss.models.catalog import unknown
from pitboss.venues.predict.ladder_policy import Rungs


@cache
def heuristics() -> dict[str, Rungs]:
    """Return every heuristic by its short name, discovered in `venues/predict/policies/`."""
    policies = definitions("pitboss.venues.predict.policies", "POLICY", Rungs, "define_heuristic")
    return {policy.name.removeprefix("policy/"): policy for policy in policies}


def heuristic(name: str) -> Rungs:
    """Return a heuristic by name, with or without `policy/`; `-` may replace `_`, as in the original's names."""
    policies = heuristics()
    short = name.removeprefix("policy/").replace("-", "_")
    if short not in policies:
        raise unknown("policy", f"policy/{short}", [f"policy/{policy_name}" for policy_name in policies])
    return policies[short]
