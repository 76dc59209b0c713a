"""`OptionalSettings`: the settings of a request that a server has rejected, and that are left out from then on.

Which settings a model accepts changes faster than any table. A rejected one is recognised by its name in the provider's
message, once per client; every reply says which settings were left out (`ModelReply.adapted`).
"""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.core.noun import noun

OPTIONAL = (
    "temperature", "seed", "random_seed", "parallel_tool_calls", "reasoning_effort", "reasoning", "thinking",
    "prompt_cache_key", "include", "store", "generationConfig.temperature", "generationConfig.seed",
    "generationConfig.thinkingConfig",
)  # fmt: skip
"""Fields of request bodies that a request can do without; a dot leads into an object."""


@noun
class OptionalSettings:
    """The fields that are left out of every request."""

    rejected: tuple[str, ...] = ()

    def without_rejected(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body without the rejected fields."""
        for path in self.rejected:
            body = _without(body, path)
        return body

    def after(self, message: str, body: Mapping[str, Any]) -> "OptionalSettings | None":
        """The settings after a rejection with this message; None where it names no optional field of the body."""
        for path in OPTIONAL:
            name = re.escape(path.rpartition(".")[2])
            if path not in self.rejected and _has(body, path) and re.search(rf"\b{name}\b", message, re.IGNORECASE):
                return OptionalSettings((*self.rejected, path))
        return None


def _has(body: Mapping[str, Any], path: str) -> bool:
    head, _, tail = path.partition(".")
    inner = body.get(head)
    return head in body and (not tail or (isinstance(inner, Mapping) and tail in inner))


def _without(body: dict[str, Any], path: str) -> dict[str, Any]:
    if not _has(body, path):
        return body
    head, _, tail = path.partition(".")
    if tail:
        return {**body, head: _without(dict(body[head]), tail)}
    return {name: value for name, value in body.items() if name != head}
