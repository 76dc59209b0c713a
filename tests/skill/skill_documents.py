"""Skill documents that the tests start from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pitboss.skill import load
from pitboss.skill.load import SkillCheck
from pitboss.skill.names import Names
from pitboss.venues.perp.skill import PerpSkill

TOOLS = ("fetch_recent_bars", "get_portfolio", "propose_order", "simulate_action")
SYMBOLS = ("BTC", "ETH", "SOL", "DOGE")

_SMALLEST: dict[str, Any] = {
    "pitboss": 1,
    "name": "test",
    "model": "standin/analyst",
    "schedule": {"every": "15m"},
    "strategy": {"mode": "thesis", "leash": "balanced", "thesis": "Trends persist.", "avoid": "Chop."},
    "context": {"symbols": ["BTC"], "bars_interval": "15m"},
}


def names(
    tools: Collection[str] | None = TOOLS,
    symbols: Collection[str] = SYMBOLS,
    servers: Collection[str] | None = None,
) -> Names:
    """The names that a document of the perp venue may use."""
    paths = (("context", "symbols"), ("risk", "allowed_symbols"))
    return Names(tools, servers, dict.fromkeys(paths, ("symbol", symbols)))


def check_text(
    text: str,
    suffix: str = ".yaml",
    known: Names = Names(),  # noqa: B008  frozen
    overrides: Sequence[str] = (),
) -> SkillCheck[PerpSkill]:
    """Check a text as a skill of the perp venue."""
    return load.check_text(text, suffix, PerpSkill, known, overrides)


def check_plain(plain: Any, known: Names = Names(), overrides: Sequence[str] = ()) -> SkillCheck[PerpSkill]:  # noqa: B008  frozen
    """Check plain values as a skill of the perp venue."""
    return load.check_plain(plain, PerpSkill, known, overrides=overrides)


def load_skill(path: str | Path, overrides: Sequence[str] = ()) -> PerpSkill:
    """The perp skill in a file."""
    return load.load_skill(path, PerpSkill, overrides=overrides)


def override(plain: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The document of a perp skill with settings put in."""
    return load.override(plain, settings, PerpSkill)


def with_changes(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a document; a change is named by its path with `__` for the dots, None takes the key away."""
    plain = deepcopy(dict(document))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = plain
        for part in parts:
            place = place.setdefault(part, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return plain


def document(**changes: Any) -> dict[str, Any]:
    """A small valid document with `with_changes`."""
    return with_changes(_SMALLEST, changes)
