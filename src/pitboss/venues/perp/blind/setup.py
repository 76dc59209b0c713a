"""Blind runs: the disguise that a run gets, what it has to do without, and what a reader is told about both.

The disguise itself is `agent.disguise`. It is made when a run begins, from its seed, its symbols and the prices known by
then, and kept with the run: whoever goes on with the run, checks it or reads it uses the one that was kept.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pitboss.core.asof import Market
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.tools.registry import registry_of
from pitboss.venues.perp.blind.anonymiser import Disguise, make_disguise, read_disguise
from pitboss.venues.perp.skill import PerpSkill

TOOLS = "pitboss.venues.perp.tools"


def disguise_for(market: Market, symbols: Sequence[str], base: str, seed: int, start: Instant) -> Disguise:
    """The disguise of a run that begins at `start`. Of the market it looks at the last closes before that only."""
    view = market.view(start)
    levels: dict[str, float] = {}
    for symbol in symbols:
        closed = view.bars(symbol, base, 1) if view.has_bars(symbol, base) else ()
        if len(closed):
            levels[symbol] = float(closed.close[-1])  # pyright: ignore[reportAttributeAccessIssue]
    return make_disguise(symbols, seed, levels)


def disguise_of(params: Mapping[str, Any]) -> Disguise | None:
    """The disguise that was kept with a run; None if it was not blind."""
    kept = params.get("disguise")
    return read_disguise(kept) if params.get("blind") and kept else None


def left_out(skill: PerpSkill) -> list[str]:
    """What of a skill's tools a blind run does without: answers of other programs cannot be disguised."""
    servers = [f"MCP server {server.id}" for server in skill.tools.mcp_servers]
    return [*servers, *(name for name in skill.tools.built_in if registry_of(TOOLS)[name].reach != "as_of")]


def notes(blind: bool, skill: PerpSkill) -> list[str]:
    """What a person is told when a blind run begins, in a line or none."""
    missing = left_out(skill) if blind else []
    return [f"blind: not offered, because it cannot be disguised: {', '.join(missing)}"] if missing else []


def told(params: Mapping[str, Any]) -> list[str]:
    """What a reader of a blind run is told: that it was one, who was who, and what the words of the model mean."""
    disguise = disguise_of(params)
    if disguise is None:
        return []
    pairs = "; ".join(
        f"{alias.name} was {alias.symbol} (prices {_times(alias.price)}, volumes {_times(alias.volume)})"
        for alias in disguise.aliases
    )
    return [
        "The run was blind: the model saw other names, other dates and other prices, and news without names, dates and "
        "amounts. Orders, fills, prices and dates on this page are the true ones.",
        f"{pairs}. Dates were shown {disguise.weeks:,} weeks later. In the model's own words names are followed by what "
        "it saw, as in BTC [ASSET-K]; prices and dates in them are those that it saw.",
    ]


def told_briefly(params: Mapping[str, Any]) -> list[str]:
    """Who was who, in a line, or no line for a run that was open."""
    disguise = disguise_of(params)
    if disguise is None:
        return []
    pairs = ", ".join(f"{alias.name} was {alias.symbol}" for alias in disguise.aliases)
    return [f"the model saw other names, dates and prices; {pairs}; dates were {disguise.weeks:,} weeks later"]


def unmasked(rows: list[dict[str, Any]], disguise: Disguise | None) -> list[dict[str, Any]]:
    """Rows about decisions as a reader should see them; the very same rows of a run that was open."""
    return rows if disguise is None else [unmask(row, disguise) for row in rows]


def unmask(row: dict[str, Any], disguise: Disguise) -> dict[str, Any]:
    """A row about a decision with the model's own words for a reader. Its terms are true already."""
    words = {name: disguise.reveal(row[name]) for name in ("reason", "text") if isinstance(row.get(name), str)}
    steps = [{**step, "text": disguise.reveal(step["text"])} for step in row.get("steps") or ()]
    return {**row, **words, **({"steps": steps} if steps else {})}


def _times(factor: Decimal) -> str:
    return f"× {text(factor)}" if factor >= 1 else f"÷ {text(1 / factor)}"
