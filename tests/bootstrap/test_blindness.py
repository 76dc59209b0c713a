"""What a blind run does without, what is kept of its disguise, and what a reader is told."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import mcp_tools as mcp
from pitboss.core import codec
from pitboss.runs.run import params_of
from pitboss.venues.perp.assembly import Assembly, Toolbox, read_skill
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.blind import setup as blind
from pitboss.venues.perp.testing import build, make_market, plain_skill

ROWS = {
    symbol: [(at, level, level + 1, level - 1, level) for at in range(0, 30 * 300_000, 300_000)]
    for symbol, level in (("BTC", 60_000.0), ("ETH", 3_000.0))
}
SKILL = plain_skill(
    ("BTC", "ETH"),
    model="standin/analyst",
    tools={"built_in": ["get_portfolio", "get_top_traders"], "mcp_servers": [{"id": "hyperliquid-info-mcp"}]},
)


def assembled(**more: Any) -> Assembly:
    request = PerpRequest(SKILL, 20 * 300_000, 30 * 300_000, blind=True, **more)
    return Assembly(request, read_skill(SKILL), build(request, make_market(ROWS)), "test", "digest", True)


def test_tools_of_other_programs_are_not_offered_and_the_run_says_so_in_one_line() -> None:
    assembly = assembled()

    async def joined() -> Assembly:
        async with mcp.joined(cast("Any", None), assembly) as whole:  # no workspace: nobody may be asked for a server
            return whole

    assert asyncio.run(joined()) is assembly
    loop = assembly.script.ports.decider
    assert isinstance(loop, ToolLoop)
    assert isinstance(loop.hydrate, Toolbox)
    assert [look.name for look in loop.hydrate.looks] == ["get_portfolio"]
    assert blind.notes(True, assembly.skill) == [
        "blind: not offered, because it cannot be disguised: MCP server hyperliquid-info-mcp, get_top_traders"
    ]
    assert blind.notes(False, assembly.skill) == []
    assert blind.notes(True, read_skill(plain_skill())) == []


def test_the_disguise_is_kept_with_the_run_and_read_back_from_it() -> None:
    assembly = assembled()
    params = codec.loads(codec.dumps(params_of(assembly)))
    cover = assembly.script.ports.context.disguise
    assert blind.disguise_of(params) == cover
    assert cover is not None
    again = codec.parse(PerpRequest, params)
    assert build(replace(again, seed=77), make_market(ROWS)).ports.context.disguise == cover


def test_an_open_run_keeps_no_disguise_and_is_told_as_always() -> None:
    request = replace(assembled().request, blind=False)
    assembly = Assembly(request, read_skill(SKILL), build(request, make_market(ROWS)), "test", "digest", True)
    params = codec.loads(codec.dumps(params_of(assembly)))
    assert assembly.script.ports.context.disguise is None
    assert blind.disguise_of(params) is None
    assert blind.told(params) == blind.told_briefly(params) == []
    rows = [{"reason": "ASSET-A"}]
    assert blind.unmasked(rows, None) is rows


def test_a_reader_is_told_who_was_who_once_and_sees_the_models_words_unmasked() -> None:
    assembly = assembled()
    params = codec.loads(codec.dumps(params_of(assembly)))
    cover = blind.disguise_of(params)
    assert cover is not None
    told = " ".join(blind.told(params))
    for alias in cover.aliases:
        assert told.count(f"{alias.name} was {alias.symbol} (prices ") == 1
    name = cover.by_symbol["BTC"].name
    row = {"reason": f"{name} up", "text": f"I like {name}", "steps": [{"text": name, "calls": [1]}], "symbol": "BTC"}
    assert blind.unmasked([row], cover) == [
        {
            "reason": f"BTC [{name}] up",
            "text": f"I like BTC [{name}]",
            "steps": [{"text": f"BTC [{name}]", "calls": [1]}],
            "symbol": "BTC",
        }
    ]
