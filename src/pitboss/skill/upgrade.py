"""Upgrade old skill documents to the current version, one step at a time.

`upgrade_N_M` takes the plain values of a version N document and returns those of version M, with notes for the user.
A step changes structure only; bounds and names are checked afterwards by the schema like those of any other document.
Version 0 is the payload of the platform that pitboss comes from: camelCase, no `pitboss` key.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

from pitboss.skill.schema import VERSION

Plain = dict[str, Any]

_TOGGLES = {
    "includeFunding": "get_funding_rate",
    "include_funding": "get_funding_rate",
    "includeOpenInterest": "get_open_interest",
    "include_open_interest": "get_open_interest",
}
_SERVER_KEYS = ("transport", "command", "args", "url", "env", "auth")


def upgrade(plain: Mapping[str, Any], version: int) -> tuple[Plain, list[str]]:
    """Return the document in the current version, and notes on what was changed."""
    document, notes = deepcopy(dict(plain)), list[str]()
    for step in range(version, VERSION):
        notes += STEPS[step](document)
    return document, notes


def upgrade_0_1(document: Plain) -> list[str]:
    """Upgrade the original payload: renames, a schedule as plain text, nulls removed, toggles and commands dropped."""
    notes = ["no `pitboss:` key: read as a version 0 document; add `pitboss: 1` after checking it"]
    document.pop("pitboss", None)
    _drop_nulls(document)
    document["pitboss"] = 1
    if isinstance(document.get("schedule"), str):
        document["schedule"] = {"every": document["schedule"]}
    risk = document.get("risk")
    if isinstance(risk, dict):
        _rename(cast("Plain", risk), ("maxDrawdownHaltPct", "max_drawdown_halt_pct"), "drawdown_halt_pct")
    context = document.get("context")
    if isinstance(context, dict):
        for key in [key for key in _TOGGLES if key in context]:
            if cast("Plain", context).pop(key):
                notes.append(f"context.{key} is gone: list {_TOGGLES[key]} in tools.built_in to see it")
    notes += _drop_commands(document.get("tools"))
    return notes


STEPS: Mapping[int, Callable[[Plain], list[str]]] = {0: upgrade_0_1}


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        mapping = cast("Plain", value)
        for key in [key for key, item in mapping.items() if item is None]:
            del mapping[key]
        for item in mapping.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _drop_nulls(item)


def _rename(mapping: Plain, old: tuple[str, ...], new: str) -> None:
    for key in old:
        if key in mapping and new not in mapping:
            mapping[new] = mapping.pop(key)


def _drop_commands(tools: Any) -> list[str]:
    """Remove start commands of servers: a skill may only name servers of the catalogue."""
    notes: list[str] = []
    if not isinstance(tools, dict):
        return notes
    for key in ("mcpServers", "mcp_servers"):
        servers = cast("Plain", tools).get(key)
        for index, server in enumerate(cast("list[Any]", servers) if isinstance(servers, list) else []):
            if isinstance(server, dict):
                spec = cast("Plain", server)
                dropped = [name for name in _SERVER_KEYS if name in spec]
                for name in dropped:
                    del spec[name]
                if dropped:
                    notes.append(f"tools.{key}[{index}]: {', '.join(dropped)} dropped; the catalogue decides them")
    return notes
