"""What one tick of a skill costs: calls × tokens × price, with the assumptions that estimates of whole runs make too."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import SystemClock, environment
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import KeyMissing, UserError
from pitboss.core.intent import Usage
from pitboss.core.money import exact
from pitboss.models import catalog
from pitboss.models.price_list import price
from pitboss.models.prices import FREE, ModelPrice
from pitboss.models.providers import PROGRAMS, PROVIDERS
from pitboss.models.routes import route

Three = tuple[Decimal, Decimal, Decimal]
"""Low, usual, high."""
ANSWER_TOKENS = (60, 180, 600)
"""Tokens of a reply with its reasoning: low, usual, high."""


def calls_per_tick(skills: Sequence[Mapping[str, Any]]) -> Three:
    """Model calls in a tick of these plain skills: one where a skill has no tools for reading."""
    most = max(int(skill.get("max_steps", 5)) for skill in skills)
    looks = any(_looks(skill) for skill in skills)
    retries = max(int(skill.get("retry_refused", 0)) for skill in skills)
    usual = Decimal("1.05") if most == 1 or not looks else min(Decimal(most), Decimal("1.8"))
    many = Decimal(1 + retries) * Decimal("1.2") if not looks else Decimal(most)
    return Decimal(1), usual, max(usual, many)


def _looks(skill: Mapping[str, Any]) -> bool:
    tools: Any = skill.get("tools") or {}
    return bool(tools.get("built_in") or tools.get("mcp_servers"))


@exact
def tick_cost(settings: Settings, skill: Mapping[str, Any], tokens: int, model: str = "") -> dict[str, Any]:
    """The cost of a tick whose first prompt has this many tokens, by default with the skill's own model.

    `usd`, `lo` and `hi` are None if the price is unknown.
    """
    name = model or str(skill.get("model", ""))
    model_price = price_of_name(name, settings)
    if model_price is None:
        return {"model": name, "usd": None, "lo": None, "hi": None, "basis": "the price of this model is not known"}
    if model_price is FREE:
        return {"model": name, "usd": 0.0, "lo": 0.0, "hi": 0.0, "basis": "this model costs nothing"}
    calls = calls_per_tick([skill])
    lo, usd, hi = (
        float(round(calls[case] * model_price.cost(Usage(tokens, ANSWER_TOKENS[case])), 8)) for case in range(3)
    )
    basis = (
        f"{calls[1]:.1f} calls (from {calls[0]:.1f} to {calls[2]:.1f}), answers of {ANSWER_TOKENS[1]} tokens "
        f"(from {ANSWER_TOKENS[0]} to {ANSWER_TOKENS[2]}), assumed"
    )
    return {"model": name, "usd": usd, "lo": lo, "hi": hi, "basis": basis}


def price_of_name(name: str, settings: Settings) -> ModelPrice | None:
    """The price of a model by its name, whether or not its key is present; None if it is unknown."""
    prefix, _, model = name.partition("/")
    if name.startswith(PROGRAMS) or prefix in (catalog.LOCAL, catalog.REPLAY):
        return FREE
    now = SystemClock().now()
    try:
        model_route = route(
            name, Values(environment, open_secrets(Path(settings.home)), http_hosts=settings.http_hosts)
        )
        provider, model = model_route.provider, model_route.model
    except KeyMissing:
        if prefix not in PROVIDERS:
            return None
        provider = PROVIDERS[prefix]
    except UserError:
        return None
    return FREE if provider.free else price(provider.prices, model, now)
