"""Finding tools, handing out a whitelist of them, and showing them."""

import sys
from pathlib import Path

import pytest

from pitboss.core.errors import InvariantError, UserError
from pitboss.tools import registry
from pitboss.tools.arguments import check
from pitboss.tools.define import CATEGORIES, Mode, ToolContext, define_tool
from pitboss.venues.perp import intents
from pitboss.venues.perp import tools as builtin
from pitboss.venues.perp.venue import VENUE
from venues.perp.scene import START, make_market, observe, run_sync

PACKAGE = builtin.__name__

FILE = """
from pitboss.tools.define import define_tool

async def look(context, arguments):
    return "pong"

TOOL = define_tool(name="{name}", category="external", description="Says pong.", reach="{reach}", example={{}},
                   schema={{"type": "object", "additionalProperties": False, "properties": {{}}}}, look=look)
"""


def context(mode: Mode = "write") -> ToolContext:
    return ToolContext(observe(make_market({"BTC": [1.0]}), START), mode)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One more folder in which the registry looks for files."""
    monkeypatch.setattr(builtin, "__path__", [*builtin.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(builtin.__name__):
            del sys.modules[name]


def test_a_new_file_is_all_it_takes_to_add_a_tool(folder: Path) -> None:
    (folder / "ping.py").write_text(FILE.format(name="ping", reach="as_of"))
    assert run_sync(registry.hydrate(registry.discover(PACKAGE), ["ping"], context())["ping"].call({})) == "pong"
    assert "ping" in [tool["name"] for tool in registry.catalogue(registry.discover(PACKAGE))]


def test_two_files_with_the_same_tool_name_stop_the_program(folder: Path) -> None:
    (folder / "again.py").write_text(FILE.format(name="get_portfolio", reach="as_of"))
    with pytest.raises(InvariantError, match="two built-in tools are named get_portfolio"):
        registry.discover(PACKAGE)


def test_a_file_without_a_tool_stops_the_program(folder: Path) -> None:
    (folder / "empty.py").write_text("")
    with pytest.raises(InvariantError, match=r"tools\.empty has no TOOL"):
        registry.discover(PACKAGE)


@pytest.mark.parametrize("name", ["Ping", "ping-pong", "_ping", "ping__pong", "mcp_x__y", "1ping", "", "pïng"])
def test_a_tool_name_that_is_not_snake_case_stops_the_program(name: str) -> None:
    async def look(context: object, arguments: object) -> str:
        return ""

    with pytest.raises(InvariantError, match="snake_case"):
        define_tool(
            name=name,
            category="external",
            description="d",
            example={},
            look=look,
            schema={"type": "object", "additionalProperties": False, "properties": {}},
        )


def test_a_tool_that_knows_only_the_present_is_refused_in_a_simulation_only(folder: Path) -> None:
    (folder / "ping.py").write_text(FILE.format(name="ping", reach="live_only"))
    assert list(registry.hydrate(registry.discover(PACKAGE), ["ping"], context(), simulated=False)) == ["ping"]
    with pytest.raises(UserError, match="knows only the present") as refused:
        registry.hydrate(registry.discover(PACKAGE), ["ping"], context(), simulated=True)
    assert "tools.built_in" in refused.value.hint


PROMISED = """
    fetch_recent_bars fetch_news_sentiment get_portfolio propose_order get_funding_rate get_open_interest get_top_traders
    analyze_chart_pattern compute_indicators compute_var read_my_prior_decisions simulate_action get_recent_decisions
    get_decision_snapshot get_current_position get_position_risk get_pnl_summary get_news_for_window get_command_history
    get_skill_config get_engine_rejections
"""


def test_the_tools_that_were_promised_are_there_and_in_order() -> None:
    assert set(PROMISED.split()) <= set(VENUE.tools())
    assert list(VENUE.tools()) == sorted(VENUE.tools())


def test_tools_come_in_the_order_asked_for_and_a_name_given_twice_counts_once() -> None:
    names = ["simulate_action", "fetch_recent_bars", "simulate_action"]
    assert list(registry.hydrate(VENUE.tools(), names, context())) == ["simulate_action", "fetch_recent_bars"]


def test_an_unknown_tool_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"^Unknown tool: fetch_recent_bar$") as refused:
        registry.hydrate(VENUE.tools(), ["fetch_recent_bar"], context())
    assert refused.value.hint == "did you mean fetch_recent_bars?"
    with pytest.raises(UserError) as refused:
        registry.hydrate(VENUE.tools(), ["zzzz"], context())
    assert "fetch_recent_bars, " in refused.value.hint


def test_a_chat_can_never_be_handed_the_decision() -> None:
    with pytest.raises(UserError, match=r"^Tool propose_order not allowed in mode read$") as refused:
        registry.hydrate(VENUE.tools(), ["get_portfolio", "propose_order"], context("read"))
    assert refused.value.hint == "it runs in write mode only"
    assert list(registry.hydrate(VENUE.tools(), ["propose_order"], context("write"))) == ["propose_order"]


def test_a_run_can_ask_whether_its_tools_are_allowed_before_it_starts() -> None:
    assert [tool.name for tool in registry.permit(VENUE.tools(), ["get_portfolio"], "read")] == ["get_portfolio"]
    with pytest.raises(UserError, match="not allowed in mode read"):
        registry.permit(VENUE.tools(), ["propose_order"], "read")


def test_the_catalogue_shows_every_tool_with_an_example_that_its_own_schema_accepts() -> None:
    shown = registry.catalogue(VENUE.tools())
    assert [tool["name"] for tool in shown] == sorted(tool["name"] for tool in shown)
    for tool in shown:
        assert set(tool) == {
            "name", "category", "description", "ui_hint", "modes", "input_schema", "example", "reach",
        }  # fmt: skip
        assert tool["category"] in CATEGORIES
        assert tool["description"].endswith(".")
        if tool["input_schema"] is intents.SCHEMA:
            assert intents.read_proposal(tool["example"])[1] == []
        else:
            check(tool["input_schema"], tool["example"])
