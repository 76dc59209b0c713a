"""The name of a server's tool as shown to a model: `mcp_<id>__<name>`.

Invalid names are refused, never repaired: two repaired names could be equal, and a model would call the wrong tool.
"""

import re
from collections.abc import Collection

PREFIX = "mcp_"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def name_of(server_id: str, tool: str) -> str:
    """The name of a server's tool. Raises `ValueError` with one line if the tool cannot be named."""
    name = f"{PREFIX}{server_id}__{tool}"
    if not tool or not _NAME.fullmatch(name):
        display_name = tool if tool.isascii() and tool.isprintable() else ascii(tool)
        raise ValueError(
            f"{display_name[:80]} cannot be offered: {PREFIX}{server_id}__… takes letters, digits, _ and -, 64 in all"
        )
    if "__" in server_id:
        raise ValueError(f"{server_id} cannot be the id of a server: __ separates it from the tool")
    return name


def names_of(
    server_id: str, tools: Collection[str], reserved: Collection[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """The names of a server's tools, and one line for each tool that cannot be named.

    A name in `reserved` (a built-in or another server's tool) or listed twice is refused. So is a tool whose own name is in
    `reserved`, so that a reader of a transcript need not compare prefixes.
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
        if name in reserved or tool in reserved:
            refused.append(f"{tool} of {server_id} is refused: it would shadow {name if name in reserved else tool}")
        elif listed.count(tool) > 1:
            refused.append(f"{tool} of {server_id} is refused: the server lists it more than once")
        else:
            names[tool] = name
    return names, refused
