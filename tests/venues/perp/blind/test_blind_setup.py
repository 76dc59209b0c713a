"""What a blind run leaves out, what is stored of its mapping, and what its report says."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.connections import connected
from pitboss.core import codec
from pitboss.core.past import NO_RECORDINGS
from pitboss.runs import blind
from pitboss.runs.run import params_of
from pitboss.sim.connections import NO_SERVER_TOOLS, Connections
from pitboss.sim.course import MAX_MODEL_ERRORS, ticks_between
from pitboss.tools.toolbox import Toolbox
from pitboss.venues.perp.assembly import PerpRun, anonymiser_of_run, read_skill
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, make_market, plain_skill
from pitboss.venues.perp.venue import VENUE

ROWS = {
    symbol: [(at, level, level + 1, level - 1, level) for at in range(0, 30 * 300_000, 300_000)]
    for symbol, level in (("BTC", 60_000.0), ("ETH", 3_000.0))
}
SKILL = plain_skill(
    ("BTC", "ETH"),
    model="standin/analyst",
    tools={"built_in": ["get_portfolio", "get_top_traders"], "mcp_servers": [{"id": "hyperliquid-info-mcp"}]},
)


def prepared_run(blind: bool = True) -> PerpRun:
    request = PerpRequest(SKILL, 20 * 300_000, 30 * 300_000, blind=blind)
    skill, market = read_skill(SKILL), make_market(ROWS)
    return PerpRun(
        request=request,
        skill=skill,
        data_venue="test",
        data_digest="digest",
        synthetic=True,
        tick_at=ticks_between(request.from_at, request.to_at, skill.every_ms),
        market=market,
        base_interval="5m",
        base_gap="",
        assets={symbol: SHIPPED[symbol] for symbol in skill.context.symbols},
        books=None,
        anonymiser=anonymiser_of_run(request, skill, market, "5m", request.from_at),
        commit_records=50,
        most_errors=MAX_MODEL_ERRORS,
    )


def test_tools_of_other_programs_are_not_offered_and_the_run_says_so_in_one_line() -> None:
    prepared = prepared_run()

    async def opened() -> Connections:
        nowhere = cast("Any", None)  # no workspace: no server may be asked
        async with connected(nowhere, prepared, VENUE.tools(), "run") as (connections, _):
            return connections

    connections = asyncio.run(opened())
    assert connections.server_tools is NO_SERVER_TOOLS
    assert connections.recordings is NO_RECORDINGS
    loop = prepared.course(connections).ports.decider
    assert isinstance(loop, ToolLoop)
    assert isinstance(loop.hydrate, Toolbox)
    assert [definition.name for definition in loop.hydrate.definitions] == ["get_portfolio"]
    assert blind.tools_note(True, prepared.skill, VENUE.tools()) == [
        "blind: not offered, because its replies cannot be anonymised: MCP server hyperliquid-info-mcp, get_top_traders"
    ]
    assert blind.tools_note(False, prepared.skill, VENUE.tools()) == []
    assert blind.tools_note(True, read_skill(plain_skill()), VENUE.tools()) == []


def test_the_mapping_is_kept_with_the_run_and_read_back_from_it() -> None:
    prepared = prepared_run()
    params = codec.loads(codec.dumps(params_of(prepared)))
    anonymiser = prepared.course().ports.context.anonymiser
    stored = blind.stored_translator(params)
    assert anonymiser is not None
    assert stored is not None
    assert (stored.aliases, stored.weeks) == (anonymiser.aliases, anonymiser.weeks)
    again = codec.parse(PerpRequest, params)
    assert build(replace(again, seed=77), make_market(ROWS)).ports.context.anonymiser == anonymiser


def test_an_open_run_keeps_no_mapping_and_is_reported_as_always() -> None:
    prepared = prepared_run(blind=False)
    params = codec.loads(codec.dumps(params_of(prepared)))
    assert prepared.course().ports.context.anonymiser is None
    assert blind.stored_translator(params) is None
    assert blind.report_lines(params) == blind.mapping_line(params) == []
    rows = [{"reason": "ASSET-A"}]
    assert blind.with_true_names(rows, None) is rows


def test_a_reader_is_shown_who_was_who_once_and_sees_the_models_words_unmasked() -> None:
    prepared = prepared_run()
    params = codec.loads(codec.dumps(params_of(prepared)))
    anonymiser = blind.stored_translator(params)
    assert anonymiser is not None
    result = " ".join(blind.report_lines(params))
    for alias in anonymiser.aliases:
        assert result.count(f"{alias.name} was {alias.symbol} (prices ") == 1
    name = anonymiser.by_symbol["BTC"].name
    row = {"reason": f"{name} up", "text": f"I like {name}", "steps": [{"text": name, "calls": [1]}], "symbol": "BTC"}
    assert blind.with_true_names([row], anonymiser) == [
        {
            "reason": f"BTC [{name}] up",
            "text": f"I like BTC [{name}]",
            "steps": [{"text": f"BTC [{name}]", "calls": [1]}],
            "symbol": "BTC",
        }
    ]
