"""A server's definition of a tool, and the digest that pins it.

Definitions are untrusted text. A model sees one only after the user approved exactly these bytes, and then cleaned and
cut (`clean_text`, `tool_spec`). The digest covers the complete definition, shown or not, so that no change goes unnoticed.
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
"""A longer definition is refused."""

_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\uffff"
    "\U000e0000-\U000e0fff]"
)
"""Invisible characters that change how text is displayed, including tag characters and text direction."""


@noun
class Definition:
    """One tool as its server describes it. `raw` is the complete definition; the other fields are taken from it."""

    server: str
    version: str
    name: str
    description: str
    schema: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The digest that an approval stores."""
        return digest_of(self.server, self.version, self.raw)


def digest_of(server: str, version: str, raw: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of the server's name, its version and the complete definition.

    Raises `ValueError` for values that canonical JSON does not distinguish (too deep nesting, non-finite numbers, lone
    surrogates), because a change between them would go unnoticed.
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


def read_definition(server: str, version: str, raw: Any) -> Definition:
    """Read a definition as the server sent it. Raises `ValueError` if it cannot be stored or pinned."""
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


def clean_text(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """Untrusted text for display: invisible characters removed, cut to `limit`."""
    clean = _CONTROL.sub(" ", codec.printable(text))
    return clean if len(clean) <= limit else f"{clean[: limit - 6]} [cut]"


def tool_spec(definition: Definition, name: str) -> ToolSpec:
    """An approved definition as shown to a model, under the given name."""
    return ToolSpec(name, clean_text(definition.description), clean_schema(definition.schema))


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as shown to a model: the same shape, with every text cleaned and cut."""
    return {str(key): _clean(value) for key, value in schema.items()}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return clean_schema(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
