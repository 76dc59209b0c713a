"""The name under which a model knows a tool of a server: `mcp_<id>__<name>`.

A name is refused, never repaired: two repaired names could become one, and a model would call the wrong tool.
"""

import re
from collections.abc import Collection

PREFIX = "mcp_"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def name_of(server_id: str, tool: str) -> str:
    """The name of a server's tool. `ValueError` with one line where it cannot have one."""
    name = f"{PREFIX}{server_id}__{tool}"
    if not tool or not _NAME.fullmatch(name):
        shown = tool if tool.isascii() and tool.isprintable() else ascii(tool)
        raise ValueError(
            f"{shown[:80]} cannot be offered: {PREFIX}{server_id}__… takes letters, digits, _ and -, 64 in all"
        )
    if "__" in server_id:
        raise ValueError(f"{server_id} cannot be the id of a server: __ separates it from the tool")
    return name


def names_of(server_id: str, tools: Collection[str], taken: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Names for a server's tools, and one line for each tool that cannot have one.

    A name that is in `taken` (a built-in, another server's tool) or that two tools would share is refused. So is a tool
    that calls itself like one that is taken: nobody reading a transcript should have to look at the prefix.
    """
    names: dict[str, str] = {}
    refused: list[str] = []
    listed = list(tools)
    for tool in dict.fromkeys(listed):
        try:
            name = name_of(server_id, tool)
        except ValueError as error:
            refused.append(str(error))
            continue
        if name in taken or tool in taken:
            refused.append(f"{tool} of {server_id} is refused: it would shadow {name if name in taken else tool}")
        elif listed.count(tool) > 1:
            refused.append(f"{tool} of {server_id} is refused: the server lists it more than once")
        else:
            names[tool] = name
    return names, refused
