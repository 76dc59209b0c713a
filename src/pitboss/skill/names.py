"""Check the names in a skill document (tools, symbols, MCP servers) against those that exist in the workspace.

It runs on plain values before the schema: anything that is not a list of names is left for the schema to refuse.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pitboss.core.suggestion import did_you_mean, nearest_spelling
from pitboss.skill.explain import show
from pitboss.skill.parse import Path

Problem = tuple[Path, str, str]
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


def unknown_names(document: Any, names: Names) -> list[Problem]:
    """Every name that does not exist or that an agent may not use."""
    return [
        *_unknown(document, ("tools", "built_in"), "tool", names.tools),
        *(item for path, (noun, existing) in names.values.items() for item in _unknown(document, path, noun, existing)),
        *_unknown(document, ("tools", "mcp_servers"), "MCP server", names.servers, "id"),
        *_forbidden_server_tools(document, names.servers),
        *_unusable_tools(document, names.tools),
    ]


def _entries(document: Any, path: tuple[str, str]) -> list[Any]:
    """The list at a path of the document; empty if there is none."""
    section = document.get(path[0])
    values = cast("dict[str, Any]", section).get(path[1]) if isinstance(section, dict) else None
    return cast("list[Any]", values) if isinstance(values, list) else []


def _unknown(
    document: Any, path: tuple[str, str], noun: str, existing: Collection[str] | None, key: str = ""
) -> list[Problem]:
    if existing is None:
        return []
    problems: list[Problem] = []
    for index, value in enumerate(_entries(document, path)):
        name = cast("dict[str, Any]", value).get(key) if key and isinstance(value, dict) else value
        if isinstance(name, str) and name not in existing:
            hint = did_you_mean(
                nearest_spelling(name, sorted(existing)), f"known: {', '.join(sorted(existing)[:30]) or 'none'}"
            )
            problems.append(((*path, index, key) if key else (*path, index), f"unknown {noun} {show(name)}", hint))
    return problems


def _unusable_tools(document: Any, tools: Collection[str] | None) -> list[Problem]:
    """Tools that exist but may not be used by a deciding agent."""
    if not isinstance(tools, Mapping):
        return []
    reasons = cast("Mapping[str, str]", tools)
    path = ("tools", "built_in")
    return [
        ((*path, index), f"{show(name)} {reasons[name]}", "leave it out")
        for index, name in enumerate(_entries(document, path))
        if isinstance(name, str) and reasons.get(name)
    ]


def _forbidden_server_tools(document: Any, servers: Collection[str] | None) -> list[Problem]:
    """Tools requested of a server for which the catalogue does not allow them."""
    if not isinstance(servers, Mapping):
        return []
    tools_by_server = cast("Mapping[str, Collection[str]]", servers)
    path = ("tools", "mcp_servers")
    problems: list[Problem] = []
    for index, value in enumerate(_entries(document, path)):
        server = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        allowed, requested = tools_by_server.get(str(server.get("id"))), server.get("tool_filter")
        if allowed is None or not isinstance(requested, list):
            continue
        for position, name in enumerate(cast("list[Any]", requested)):
            if isinstance(name, str) and name not in allowed:
                hint = did_you_mean(
                    nearest_spelling(name, sorted(allowed)), f"allowed: {', '.join(sorted(allowed)) or 'none'}"
                )
                message = f"{show(name)} is not a tool that {server['id']} may offer"
                problems.append(((*path, index, "tool_filter", position), message, hint))
    return problems
