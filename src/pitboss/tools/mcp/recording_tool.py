"""A guarded tool that records its results for later simulations (see `recorded_tool`).

The recording is the server's text before fencing and cutting, with pitboss's own secret removed. A call without an
answer records nothing; a failure to record does not fail the call.
"""

import logging
from collections.abc import Callable
from typing import Any

from pitboss.tools.mcp.guarded_tool import GuardedTool, result_text
from pitboss.tools.mcp.recorded_tool import canonical

LOG = logging.getLogger("pitboss.mcp")
SaveAnswer = Callable[[str, str, bool], None]
"""Called with the canonical arguments, the result, and whether the result is a failure."""


class RecordingTool(GuardedTool):
    """A `GuardedTool` that passes every result to `keep` before returning it."""

    def __init__(self, *guarded: Any, keep: SaveAnswer) -> None:
        super().__init__(*guarded)
        self._keep = keep

    async def _ask(self, arguments: dict[str, Any]) -> Any:
        result = await super()._ask(arguments)
        content, marks = result_text(result)
        text = "\n".join(part for part in (content, *marks) if part) or "(no text)"
        try:
            self._keep(canonical(arguments), self._connection.hide(text), bool(result.is_error))
        except Exception as error:  # noqa: BLE001 – a full disk or a locked database must not fail a tick
            fields = {"server": self._entry.id, "tool": self._name, "why": f"{type(error).__name__}: {error}"[:500]}
            LOG.warning("an answer was not recorded", extra={"fields": fields})
        return result
