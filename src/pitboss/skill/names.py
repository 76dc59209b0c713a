"""Check the names in a skill document (tools, symbols, MCP servers) against those that exist in the workspace.

It runs on plain values before the schema: anything that is not a list of names is left for the schema to refuse.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pitboss.skill.explain import show
from pitboss.skill.parse import Path
from pitboss.skill.spelling import did_you_mean, nearest

Found = tuple[Path, str, str]
"""An error without its line number: path, message and hint."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that documents may use; None leaves that kind of name unchecked."""

    tools: Collection[str] | None = None
    """Tool names. A mapping also gives the reason why an agent cannot use a tool; empty where it can."""
    servers: Collection[str] | None = None
    """Ids of MCP servers. A mapping also gives the tools that each of them may offer."""
    values: Mapping[tuple[str, str], tuple[str, Collection[str]]] = field(
        default_factory=dict[tuple[str, str], tuple[str, Collection[str]]]
    )
    """Other lists of names by their path: the noun for such a name, and the existing ones."""


def unknown_names(document: Any, names: Names) -> list[Found]:
    """Every name that does not exist or that an agent may not use."""
    return [
        *_unknown(document, ("tools", "built_in"), "tool", names.tools),
        *(item for path, (noun, known) in names.values.items() for item in _unknown(document, path, noun, known)),
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
    """Tools that exist but may not be used by a deciding agent."""
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
    """Tools requested of a server for which the catalogue does not allow them."""
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
