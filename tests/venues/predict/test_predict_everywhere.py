"""Commands that are not about one venue, on skills and runs of the predict venue: tool calls and the MCP server."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pitboss.cli.main import main
from pitboss.runs import tool_catalogue
from pitboss.runs import venues as installed_venues
from pitboss.venues.perp.venue import VENUE as PERP
from pitboss.venues.predict.venue import VENUE, PredictVenue
from server.workspaces import call, call_refused, with_client, workspace_of
from venues.predict.minute_bars import write_minute_bars

SPAN = ("--from", "2026-02-22", "--to", "2026-02-22T03:00:00Z")
TICK = "2026-02-22T02:00:00Z"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example skill, three hours of one-minute bars and a run of the stand-in."""
    folder = tmp_path_factory.mktemp("predict")
    write_minute_bars(folder / ".pitboss")
    (folder / "brain.yaml").write_text(VENUE.examples()["btc-brain.yaml"])
    return folder


def pitboss(home: Path, *words: str, code: int = 0) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        exit_code = main([*words, "--home", str(home / ".pitboss")])
    assert exit_code == code, err.getvalue()
    return err.getvalue() if code else out.getvalue()


@pytest.fixture(scope="module")
def run(home: Path) -> dict[str, Any]:
    skill = str(home / "brain.yaml")
    run = json.loads(pitboss(home, "backtest", skill, *SPAN, "--model", "standin/analyst", "--json"))
    assert run["metrics"]["total_accepted_actions"] > 3
    return run


def test_tools_are_called_at_a_tick_of_a_run_with_the_account_of_that_tick(home: Path, run: dict[str, Any]) -> None:
    snapshots = map(json.loads, pitboss(home, "runs", "export", run["run_id"], "--what", "snapshots").splitlines())
    (before,) = [snapshot["before"] for snapshot in snapshots if snapshot["tick_at"] == TICK]
    assert before["positions"]
    words = ("tools", "call", "get_my_positions", "--run", run["run_id"], "--at", TICK, "--json")
    answer = json.loads(pitboss(home, *words))
    assert answer["at"] == TICK
    assert answer["result"].startswith(f"cash {before['cash']}, equity {before['equity']}, ")
    candles = pitboss(home, "tools", "call", "btc_candles", "--run", run["run_id"], "--at", TICK, "minutes=3")
    assert "02-22 01:59 " in candles
    assert "02-22 02:00 " not in candles
    assert "is not a tick" in pitboss(
        home, "tools", "call", "btc_candles", "--run", run["run_id"], "--at", "2026-02-22T02:00:30Z", code=2
    )


def test_tools_are_called_for_a_skill_with_a_fresh_account(home: Path) -> None:
    skill = ("--skill", str(home / "brain.yaml"), "--at", TICK)
    assert "no positions" in pitboss(home, "tools", "call", "get_my_positions", *skill)
    assert "BTC-2026-02-22T02:15:00Z | " in pitboss(home, "tools", "call", "list_btc_markets", *skill)
    error = pitboss(home, "tools", "call", "submit_decision", "--mode", "write", *skill, code=2)
    assert "is the decision itself" in error
    assert "btc_candles" in error


def test_a_run_of_a_model_is_forked_at_a_tick_after_its_mints(home: Path, run: dict[str, Any]) -> None:
    words = ("runs", "fork", run["run_id"], "--at", TICK, "--model", "policy/alternate", "--json")
    assert json.loads(pitboss(home, *words))["forked_from"]["run_id"] == run["run_id"]


def test_an_mcp_client_previews_runs_explains_forks_and_compares(home: Path) -> None:
    async def ask(client: Client) -> None:
        preview = await call(client, "preview_prompt", skill="brain.yaml", at=TICK)
        assert "## Open markets" in preview["user"]
        assert [tool["name"] for tool in preview["tools"]][-1] == "submit_decision"
        span = {"skill": "brain.yaml", "from": SPAN[1], "to": SPAN[3], "model": "standin/analyst"}
        first = await call(client, "run_backtest", **span)
        assert first["caps"]["max_spend_per_tick"]
        reason = await call(client, "explain_decision", run=first["run_id"])
        assert reason["outcome"] == "refused"
        assert reason["proposals"][0]["code"].startswith("B")
        fork = await call(client, "fork_run", run=first["run_id"], at=TICK, model="policy/alternate")
        assert not (await call(client, "compare_runs", first=first["run_id"], second=fork["run_id"]))["difference"][
            "same"
        ]

    with_client(workspace_of(home, writes=True), ask)


def test_a_tool_that_two_venues_have_is_shown_by_venue(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TwinVenue(PredictVenue):
        name = "twin"

        def tools(self) -> Any:
            return {**VENUE.tools(), "get_portfolio": PERP.tools()["get_portfolio"]}

    twin = TwinVenue()
    monkeypatch.setattr(tool_catalogue, "venues", lambda: [PERP, VENUE, twin])
    monkeypatch.setattr(
        tool_catalogue, "venue_named", lambda name: twin if name == "twin" else installed_venues.venue_named(name)
    )

    async def ask(client: Client) -> None:
        answer = await call_refused(client, "show_tool", name="btc_candles")
        assert "several venues have a tool btc_candles: give venue, one of predict, twin" in answer
        assert (await call(client, "show_tool", name="btc_candles", venue="twin"))["venue"] == "twin"
        assert (await call(client, "show_tool", name="fetch_recent_bars"))["venue"] == "perp"
        assert "Unknown tool: btc_candles" in await call_refused(client, "show_tool", name="btc_candles", venue="perp")

    with_client(workspace_of(home), ask)
