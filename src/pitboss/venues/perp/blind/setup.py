"""Sets up blind runs: creates a run's anonymiser, lists the tools it cannot offer, and describes both in reports.

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
from pitboss.venues.perp.blind.anonymiser import Anonymiser, make_anonymiser, read_anonymiser
from pitboss.venues.perp.skill import PerpSkill

TOOLS = "pitboss.venues.perp.tools"


def anonymiser_for(market: Market, symbols: Sequence[str], base: str, seed: int, start: Instant) -> Anonymiser:
    """Create the anonymiser of a run that begins at `start`; it reads only the last closes before that."""
    view = market.view(start)
    levels: dict[str, float] = {}
    for symbol in symbols:
        closed = view.bars(symbol, base, 1) if view.has_bars(symbol, base) else ()
        if len(closed):
            levels[symbol] = float(closed.close[-1])  # pyright: ignore[reportAttributeAccessIssue]
    return make_anonymiser(symbols, seed, levels)


def stored_anonymiser(params: Mapping[str, Any]) -> Anonymiser | None:
    """Return the anonymiser stored with a run; None if the run was not blind."""
    mapping = params.get("disguise")
    return read_anonymiser(mapping) if params.get("blind") and mapping else None


def unavailable_tools(skill: PerpSkill) -> list[str]:
    """Return the tools and servers of a skill that a blind run does not offer: replies of other programs."""
    servers = [f"MCP server {server.id}" for server in skill.tools.mcp_servers]
    return [*servers, *(name for name in skill.tools.built_in if registry_of(TOOLS)[name].reach != "as_of")]


def notes(blind: bool, skill: PerpSkill) -> list[str]:
    """Return the line that is printed when a blind run begins without some of its skill's tools."""
    missing = unavailable_tools(skill) if blind else []
    return [f"blind: not offered, because its replies cannot be anonymised: {', '.join(missing)}"] if missing else []


def report_lines(params: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the report about a blind run: the mapping, and how to read the model's texts."""
    anonymiser = stored_anonymiser(params)
    if anonymiser is None:
        return []
    pairs = "; ".join(
        f"{alias.name} was {alias.symbol} (prices {_times(alias.price)}, volumes {_times(alias.volume)})"
        for alias in anonymiser.aliases
    )
    return [
        "The run was blind: the model saw other names, other dates and other prices, and news without names, dates and "
        "amounts. Orders, fills, prices and dates on this page are the true ones.",
        f"{pairs}. Dates were shown {anonymiser.weeks:,} weeks later. In the model's own words names are followed by what "
        "it saw, as in BTC [ASSET-K]; prices and dates in them are those that it saw.",
    ]


def mapping_line(params: Mapping[str, Any]) -> list[str]:
    """Return the mapping of a blind run in one line; empty for any other run."""
    anonymiser = stored_anonymiser(params)
    if anonymiser is None:
        return []
    pairs = ", ".join(f"{alias.name} was {alias.symbol}" for alias in anonymiser.aliases)
    return [f"the model saw other names, dates and prices; {pairs}; dates were {anonymiser.weeks:,} weeks later"]


def with_true_names(rows: list[dict[str, Any]], anonymiser: Anonymiser | None) -> list[dict[str, Any]]:
    """Return decision rows with true names added to the model's texts; the same list if the run was not blind."""
    return rows if anonymiser is None else [_with_true_names(row, anonymiser) for row in rows]


def _with_true_names(row: dict[str, Any], anonymiser: Anonymiser) -> dict[str, Any]:
    texts = {name: anonymiser.reveal(row[name]) for name in ("reason", "text") if isinstance(row.get(name), str)}
    steps = [{**step, "text": anonymiser.reveal(step["text"])} for step in row.get("steps") or ()]
    return {**row, **texts, **({"steps": steps} if steps else {})}


def _times(factor: Decimal) -> str:
    return f"× {text(factor)}" if factor >= 1 else f"÷ {text(1 / factor)}"
