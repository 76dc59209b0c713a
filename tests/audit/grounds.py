"""What the audits of these tests stand on: made once, and with one part of it exchanged for a leaky one where asked."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.asof import Market
from pitboss.tools.define import ToolContext, ToolDefinition, define_tool
from pitboss.venues.perp.audit.evidence import Evidence
from pitboss.venues.perp.audit.lookahead import AuditSetup, LookaheadResult, audit
from pitboss.venues.perp.audit.setup import AuditRequest, prepare

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
FEW = 30
"""Cuts in which a planted leak must be found: far fewer than anybody would make."""
NOTHING: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}


def ground_of(home: Path, wish: AuditRequest) -> AuditSetup:
    """The ground of a workspace folder."""
    with open_workspace(load_settings(home, None)) as workspace:
        return asyncio.run(prepare(workspace, wish))


def audited(ground: AuditSetup, cuts: int = 100, seed: int = 3) -> LookaheadResult:
    """The result of so many cuts."""
    return asyncio.run(audit(ground, cuts, seed))


def with_view(ground: AuditSetup, view: type[Any]) -> AuditSetup:
    """The same ground where everybody is handed another kind of view."""

    class Leaky(Market):
        def view(self, at: int) -> Any:
            return view(self, at)

    whole = ground.evidence.market
    market = Leaky(whole.bars, whole.points, whole.news, whole.events)
    return replace(
        ground, evidence=Evidence(market, ground.evidence.records, ground.evidence.recordings), market_type=Leaky
    )


def with_tool(ground: AuditSetup, look: Callable[[ToolContext, Mapping[str, Any]], Awaitable[str]]) -> AuditSetup:
    """The same ground with one leaky tool among honest ones."""
    return replace(ground, tools={**dict(list(ground.tools.items())[:3]), "leaky": tool_of(look)})


def tool_of(look: Callable[[ToolContext, Mapping[str, Any]], Awaitable[str]]) -> ToolDefinition:
    """A tool without arguments."""
    return define_tool(
        name="leaky", category="market_data", description="Leaks.", schema=NOTHING, example={}, look=look
    )


def leaking(result: LookaheadResult) -> set[str]:
    """What differed."""
    return {what for what, count in result.counts.items() if count.differences}
