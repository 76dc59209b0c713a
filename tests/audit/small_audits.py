"""Look-ahead audits of small runs, by the code of the command; tests plant leaks in them."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pitboss.audit.lookahead import AuditSetup, LookaheadResult, audit
from pitboss.audit.setup import AuditRequest, prepare
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.instant import parse_instant
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.tools.define import ToolContext, ToolDefinition, define_tool
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.testing import plain_skill

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
FROM, TO = parse_instant("2025-03-28"), parse_instant("2025-03-28T12:00:00Z")
CUTS = 2
"""Cuts within which a planted leak must be found; the default of the command is higher."""
NOTHING: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
SYMBOLS = ("BTC", "ETH")


def skill(model: str = "standin/analyst", **more: Any) -> dict[str, Any]:
    """An hourly skill that shows bars, news and events and remembers its trades."""
    context = {
        "symbols": list(SYMBOLS),
        "bars_interval": "1h",
        "bars_lookback": 30,
        "news_lookback_hours": 24,
        "events": {"enabled": True, "lookahead_hours": 168},
    }
    return plain_skill(SYMBOLS, "1h", **{"model": model, "context": context, **more})


@dataclass(frozen=True)
class AuditRun:
    """A finished audit."""

    setup: AuditSetup
    result: LookaheadResult

    @property
    def leaks(self) -> set[str]:
        """The names of the facts that differed."""
        return {name for name, count in self.result.counts.items() if count.differences}


def run_audit(home: Path, plain: Mapping[str, Any] | None = None, cuts: int = CUTS, **more: Any) -> AuditRun:
    """Audit a skill in a workspace folder."""
    options = {"skill": plain or skill(), "from_at": FROM, "to_at": TO, **more}

    audits: list[AuditRun] = []

    async def work() -> None:  # `asyncio.run` describes what it returns, which takes long for an audit
        with open_workspace(load_settings(home, None)) as workspace:
            setup = await prepare(workspace, AuditRequest(**options))
            audits.append(AuditRun(setup, await audit(setup, cuts, 3)))

    asyncio.run(work())
    return audits[0]


async def trades_often(self: Any, request: ModelRequest) -> ModelReply:
    """Replaces the stand-in, which trades seldom: opens and closes by a hash of the prompt."""
    if request.must_call not in (None, TERMINAL):
        return await HONEST_REPLY(self, request)
    prompt = next(message.text for message in request.messages if message.role == "user")
    turn = hashlib.sha256(prompt.encode()).digest()[0] % 3
    trade: dict[str, Any] = {"action": ("open_long", "close", "no_op")[turn], "symbol": "BTC", "reason": "a turn"}
    if turn == 0:
        trade["size_usd"] = 500
    return ModelReply(text="my turn", calls=(ToolCall("trade", TERMINAL, json.dumps(trade)),))


HONEST_REPLY = Analyst.complete


def tool_without_arguments(
    look: Callable[[ToolContext, Mapping[str, Any]], Awaitable[str]], name: str = "leaky"
) -> ToolDefinition:
    """A tool without arguments."""
    return define_tool(name=name, category="market_data", description="Leaks.", schema=NOTHING, example={}, look=look)
