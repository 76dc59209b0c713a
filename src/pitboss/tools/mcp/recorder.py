"""A guarded tool whose answers are kept, with the time at which they were known, for simulations of that time.

What is kept is what the server said, before it is fenced and cut; our own secret is taken out first. A call that got no
answer leaves nothing, and an answer that cannot be kept is still an answer. How simulations use it is `recorded`.
"""

import logging
from collections.abc import Callable
from typing import Any

from pitboss.tools.mcp.guarded_tool import GuardedTool, words
from pitboss.tools.mcp.recorded_tool import canonical

LOG = logging.getLogger("pitboss.mcp")
Keep = Callable[[str, str, bool], None]
"""Canonical arguments, what was answered, and whether that was a failure."""


class RememberingTool(GuardedTool):
    """A `GuardedTool` that hands every answer to `keep` before anybody sees it."""

    def __init__(self, *guarded: Any, keep: Keep) -> None:
        super().__init__(*guarded)
        self._keep = keep

    async def _ask(self, arguments: dict[str, Any]) -> Any:
        result = await super()._ask(arguments)
        said, marks = words(result)
        text = "\n".join(part for part in (said, *marks) if part) or "(no text)"
        try:
            self._keep(canonical(arguments), self._connection.hide(text), bool(result.is_error))
        except Exception as error:  # noqa: BLE001 – a full disk or a locked database is no business of a tick
            fields = {"server": self._entry.id, "tool": self._name, "why": f"{type(error).__name__}: {error}"[:500]}
            LOG.warning("an answer was not recorded", extra={"fields": fields})
        return result
