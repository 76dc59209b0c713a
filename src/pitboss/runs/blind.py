"""Blind runs as they are described: what a run's mapping was, the tools it lacks, and its texts with true names.

The mapping is drawn when a run begins, from its seed and its symbols, and is stored with it: resuming, verifying and
reading the run use the stored one.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.agent.blind.translator import REASONS, Translator
from pitboss.core.money import text
from pitboss.skill.schema import SkillDocument
from pitboss.tools.registry import Registry


def stored_translator(params: Mapping[str, Any]) -> Translator | None:
    """Return the mapping stored with a run; None if the run was not blind."""
    mapping = params.get("disguise")
    if not params.get("blind") or not mapping:
        return None
    # Most runs are not blind, and this loads market data types.
    from pitboss.agent.blind.anonymiser import Anonymiser

    return Anonymiser.read(mapping)


def unavailable_tools(skill: SkillDocument, registry: Registry) -> list[str]:
    """Return the tools and servers of a skill that a blind run does not offer: replies of other programs."""
    servers = [f"MCP server {server.id}" for server in skill.mcp_servers]
    return [*servers, *(name for name in skill.tool_names if registry[name].reach != "as_of")]


def tools_note(blind: bool, skill: SkillDocument, registry: Registry) -> list[str]:
    """Return the line that is printed when a blind run begins without some of its skill's tools."""
    missing = unavailable_tools(skill, registry) if blind else []
    return [f"blind: not offered, because its replies cannot be anonymised: {', '.join(missing)}"] if missing else []


def report_lines(params: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the report about a blind run: the mapping, and how to read the model's texts."""
    translator = stored_translator(params)
    if translator is None:
        return []
    pairs = "; ".join(
        f"{alias.name} was {alias.symbol} (prices {_times(alias.price)}, volumes {_times(alias.volume)})"
        for alias in translator.aliases
    )
    return [
        "The run was blind: the model saw other names, other dates and other prices, and news without names, dates and "
        "amounts. Orders, fills, prices and dates on this page are the true ones.",
        f"{pairs}. Dates were shown {translator.weeks:,} weeks later. In the model's own words names are followed by what "
        "it saw, as in BTC [ASSET-K]; prices and dates in them are those that it saw.",
    ]


def mapping_line(params: Mapping[str, Any]) -> list[str]:
    """Return the mapping of a blind run in one line; empty for any other run."""
    translator = stored_translator(params)
    if translator is None:
        return []
    pairs = ", ".join(f"{alias.name} was {alias.symbol}" for alias in translator.aliases)
    return [f"the model saw other names, dates and prices; {pairs}; dates were {translator.weeks:,} weeks later"]


def with_true_names(rows: list[dict[str, Any]], translator: Translator | None) -> list[dict[str, Any]]:
    """Return decision rows with true names added to the model's texts; the same list if the run was not blind."""
    return rows if translator is None else [_with_true_names(row, translator) for row in rows]


def _with_true_names(row: dict[str, Any], translator: Translator) -> dict[str, Any]:
    texts = {name: translator.reveal(row[name]) for name in (*REASONS, "text") if isinstance(row.get(name), str)}
    steps = [{**step, "text": translator.reveal(step["text"])} for step in row.get("steps") or ()]
    return {**row, **texts, **({"steps": steps} if steps else {})}


def _times(factor: Decimal) -> str:
    return f"× {text(factor)}" if factor >= 1 else f"÷ {text(1 / factor)}"
