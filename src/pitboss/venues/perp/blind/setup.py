"""Sets up blind runs: creates a run's anonymiser, lists the tools it cannot offer, and explains both to readers.

The anonymiser is `venues.perp.blind.anonymiser`. It is created when a run begins, from the run's seed, its symbols and
the prices known by then, and is stored with the run: resuming, verifying and reading the run use the stored one.
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
    """Create the anonymiser of a run that begins at `start`; it reads only the last closes before that."""
    view = market.view(start)
    levels: dict[str, float] = {}
    for symbol in symbols:
        closed = view.bars(symbol, base, 1) if view.has_bars(symbol, base) else ()
        if len(closed):
            levels[symbol] = float(closed.close[-1])  # pyright: ignore[reportAttributeAccessIssue]
    return make_disguise(symbols, seed, levels)


def disguise_of(params: Mapping[str, Any]) -> Disguise | None:
    """Return the anonymiser stored with a run; None if the run was not blind."""
    kept = params.get("disguise")
    return read_disguise(kept) if params.get("blind") and kept else None


def left_out(skill: PerpSkill) -> list[str]:
    """Return the tools and servers of a skill that a blind run cannot offer.

    Replies of other programs cannot be anonymised.
    """
    servers = [f"MCP server {server.id}" for server in skill.tools.mcp_servers]
    return [*servers, *(name for name in skill.tools.built_in if registry_of(TOOLS)[name].reach != "as_of")]


def notes(blind: bool, skill: PerpSkill) -> list[str]:
    """Return the line that is printed when a blind run begins with tools left out, if any."""
    missing = left_out(skill) if blind else []
    return [f"blind: not offered, because it cannot be disguised: {', '.join(missing)}"] if missing else []


def told(params: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the report about a blind run: the mapping, and how to read the model's texts."""
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
    """Return the mapping of a blind run in one line; empty for any other run."""
    disguise = disguise_of(params)
    if disguise is None:
        return []
    pairs = ", ".join(f"{alias.name} was {alias.symbol}" for alias in disguise.aliases)
    return [f"the model saw other names, dates and prices; {pairs}; dates were {disguise.weeks:,} weeks later"]


def unmasked(rows: list[dict[str, Any]], disguise: Disguise | None) -> list[dict[str, Any]]:
    """Return decision rows with true names added to the model's texts; the same list if the run was not blind."""
    return rows if disguise is None else [unmask(row, disguise) for row in rows]


def unmask(row: dict[str, Any], disguise: Disguise) -> dict[str, Any]:
    """Return one decision row with true names added to the model's texts; all other values are true already."""
    words = {name: disguise.reveal(row[name]) for name in ("reason", "text") if isinstance(row.get(name), str)}
    steps = [{**step, "text": disguise.reveal(step["text"])} for step in row.get("steps") or ()]
    return {**row, **words, **({"steps": steps} if steps else {})}


def _times(factor: Decimal) -> str:
    return f"× {text(factor)}" if factor >= 1 else f"÷ {text(1 / factor)}"
