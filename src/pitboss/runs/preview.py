"""The request that a model would receive at a tick, as `skill preview` shows it, with a token estimate."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.ports import ToolSpec

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Preview:
    """The complete request: system prompt, user message, and tools in the order in which they are offered."""

    at: Instant
    system: str
    user: str
    tools: tuple[dict[str, Any], ...]

    @property
    def tokens_estimate(self) -> int:
        """An estimate of the request's tokens; providers count differently."""
        chars = len(self.system) + len(self.user) + len(codec.dumps(self.tools))
        return -(-chars // CHARS_PER_TOKEN)


def offered(specs: Iterable[ToolSpec]) -> tuple[dict[str, Any], ...]:
    """Tools in the form in which a preview shows them."""
    return tuple(
        {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)} for spec in specs
    )


def check_tick(at: Instant, period_ms: int, every: str) -> None:
    """Refuse an instant that is not a tick of a schedule."""
    if at % period_ms:
        before = at - at % period_ms
        raise UserError(
            f"{iso(at)} is not a tick of a {every} schedule",
            f"the nearest are {iso(before)} and {iso(before + period_ms)}",
        )
