"""What a server says about one of its tools, and the digest that pins it.

All of it is a stranger's text. It is shown to a model only after a person has approved exactly these bytes, and then cut
and cleaned (`shown`, `spec`); the digest covers everything said, shown or not, so that nothing can change unseen.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.noun import noun
from pitboss.core.ports import ToolSpec

MAX_DESCRIPTION = 1_000
MAX_BYTES = 65_536
"""A definition longer than this is not a description of a tool."""

_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\uffff"
    "\U000e0000-\U000e0fff]"
)
"""Everything that changes how text looks without being seen, tag characters and text direction included."""


@noun
class Definition:
    """One tool as its server describes it. `raw` is all of it; the other fields are taken from there."""

    server: str
    version: str
    name: str
    description: str
    schema: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """What an approval of this definition stores."""
        return digest_of(self.server, self.version, self.raw)


def digest_of(server: str, version: str, raw: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of everything the server says about the tool, and who says it.

    `ValueError` for what canonical JSON does not keep apart (endless nesting, numbers that are none, half characters):
    a change there would not be seen.
    """
    try:
        _require_exact(raw)
        return codec.digest({"server": server, "version": version, "tool": raw})
    except (TypeError, RecursionError):
        raise ValueError("a definition that cannot be stored") from None


def _require_exact(value: Any, depth: int = 0) -> None:
    if depth > codec.MAX_DEPTH:
        raise ValueError("a definition that is nested too deep")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a definition with a number that is none")
    if isinstance(value, Mapping):
        for item in value.values():
            _require_exact(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _require_exact(item, depth + 1)


def read(server: str, version: str, raw: Any) -> Definition:
    """A definition from what the server sent. `ValueError` where it cannot be kept or pinned."""
    if not isinstance(raw, Mapping):
        raise ValueError("a tool that is no object")
    name, description, schema = raw.get("name"), raw.get("description"), raw.get("inputSchema")
    if not isinstance(name, str) or not isinstance(schema, Mapping):
        raise ValueError("a tool without a name or a schema")
    digest_of(server, version, raw)
    size = len(codec.dumps(raw))
    if size > MAX_BYTES:
        raise ValueError(f"a definition of {size} bytes; at most {MAX_BYTES}")
    return Definition(server, version, name, description if isinstance(description, str) else "", schema, raw)


def shown(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """A stranger's text as it may be shown: unseen characters removed, cut to `limit`."""
    clean = _CONTROL.sub(" ", codec.printable(text))
    return clean if len(clean) <= limit else f"{clean[: limit - 6]} [cut]"


def spec(definition: Definition, name: str) -> ToolSpec:
    """An approved definition as a model gets to see it, under the name we gave it."""
    return ToolSpec(name, shown(definition.description), clean_schema(definition.schema))


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as a model gets to see it: the same shape, with every text in it cleaned and cut."""
    return {str(key): _clean(value) for key, value in schema.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return clean_schema(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
