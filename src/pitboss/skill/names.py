"""The names in a skill document, of tools, symbols, MCP servers and the venue, against those that exist where it is read.

It looks at plain values before the schema has: what has another shape than a list of names is the schema's to refuse.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pitboss.skill.explain import show
from pitboss.skill.parse import Path
from pitboss.skill.schema import Part, Skill
from pitboss.skill.spelling import did_you_mean, nearest
from pitboss.venues.predict.skill import PredictSkill

ALWAYS_OFFERED = "propose_order"
AVAILABLE_VENUES = ("perp",)
PREDICT = "predict"

Found = tuple[Path, str, str]
"""Where, what and how: an error before it has its line."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that documents may use; None leaves that kind of name unchecked."""

    tools: Collection[str] | None = None
    """As a mapping, with why an agent cannot have a tool; empty where it can."""
    symbols: Collection[str] | None = None
    servers: Collection[str] | None = None
    """Ids of MCP servers; as a mapping, with the names of the tools that each of them may offer."""


def unknown_names(document: Any, names: Names) -> list[Found]:
    """Every name that the caller does not know, or does not let an agent have."""
    tools = None if names.tools is None else {*names.tools, ALWAYS_OFFERED}
    return [
        *_unknown(document, ("tools", "built_in"), "tool", tools),
        *_unknown(document, ("context", "symbols"), "symbol", names.symbols),
        *_unknown(document, ("risk", "allowed_symbols"), "symbol", names.symbols),
        *_unknown(document, ("tools", "mcp_servers"), "MCP server", names.servers, "id"),
        *_filtered(document, names.servers),
        *_unfit(document, names.tools),
    ]


def _unknown(
    document: Any, path: tuple[str, str], noun: str, known: Collection[str] | None, key: str = ""
) -> list[Found]:
    section = document.get(path[0])
    values = cast("dict[str, Any]", section).get(path[1]) if isinstance(section, dict) else None
    if known is None or not isinstance(values, list):
        return []
    found: list[Found] = []
    for index, value in enumerate(cast("list[Any]", values)):
        word = cast("dict[str, Any]", value).get(key) if key and isinstance(value, dict) else value
        if isinstance(word, str) and word not in known:
            hint = did_you_mean(nearest(word, sorted(known)), f"known: {', '.join(sorted(known)[:30]) or 'none'}")
            found.append(((*path, index, key) if key else (*path, index), f"unknown {noun} {show(word)}", hint))
    return found


def _unfit(document: Any, tools: Collection[str] | None) -> list[Found]:
    """Tools that exist, but not for an agent that decides."""
    section = document.get("tools")
    listed = cast("dict[str, Any]", section).get("built_in") if isinstance(section, dict) else None
    if not isinstance(tools, Mapping) or not isinstance(listed, list):
        return []
    why = cast("Mapping[str, str]", tools)
    return [
        (("tools", "built_in", place), f"{show(word)} {why[word]}", "leave it out")
        for place, word in enumerate(cast("list[Any]", listed))
        if isinstance(word, str) and why.get(word)
    ]


def _filtered(document: Any, servers: Collection[str] | None) -> list[Found]:
    """Tools that a skill asks of a server which the catalogue does not allow there."""
    section = document.get("tools")
    listed = cast("dict[str, Any]", section).get("mcp_servers") if isinstance(section, dict) else None
    if not isinstance(servers, Mapping) or not isinstance(listed, list):
        return []
    allowed = cast("Mapping[str, Collection[str]]", servers)
    found: list[Found] = []
    for index, server in enumerate(cast("list[Any]", listed)):
        plain = cast("dict[str, Any]", server) if isinstance(server, dict) else {}
        known, wanted = allowed.get(str(plain.get("id"))), plain.get("tool_filter")
        if known is None or not isinstance(wanted, list):
            continue
        for place, word in enumerate(cast("list[Any]", wanted)):
            if isinstance(word, str) and word not in known:
                hint = did_you_mean(nearest(word, sorted(known)), f"allowed: {', '.join(sorted(known)) or 'none'}")
                path = ("tools", "mcp_servers", index, "tool_filter", place)
                found.append((path, f"{show(word)} is not a tool that {plain['id']} may offer", hint))
    return found


def other_venue(plain: Any, root: type[Part], overrides: Sequence[str]) -> Found | None:
    """A skill of one venue where one of the other is wanted: nothing else that could be said of it would help."""
    venue = cast("dict[str, Any]", plain).get("venue")
    for setting in overrides:
        name, _, value = setting.partition("=")
        venue = value.strip() if name.strip() == "venue" else venue
    if root is Skill and venue == PREDICT:
        hint = "`pitboss skill check` checks it; `pitboss predict --help` lists what else there is for it"
        return ("venue",), "a predict skill, and only perp skills are taken here", hint
    if root is PredictSkill and venue in (None, "perp", "community"):
        found = "nothing, which means perp" if venue is None else venue
        return ("venue",), f"must be predict here, not {found}", "only predict skills are taken here"
    return None


def not_yet(document: Any) -> list[Found]:
    """A venue that a document may name, but that is not there yet."""
    if document.get("venue") != "community":
        return []
    return [
        (("venue",), "the community venue is not available in this version", f"use {' or '.join(AVAILABLE_VENUES)}")
    ]
