"""The toy venue of examples/venue, installed as a separate package: every command works on it, and pitboss is unchanged."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from audit.memory_models import asks_for_a_name, guess
from forked_process import ForkedProcess, forked_command
from pitboss.testing.provider import FakeProvider, call

ROOT = Path(__file__).parents[2]
RANGE = ("--from", "2025-02-10", "--to", "2025-02-12")
PROGRAM = """
import contextlib, io, json, sys
sys.path[:0] = sys.argv[1:]
import argument_cache, statement_cache
from pitboss.cli.main import main
argument_cache.install()
statement_cache.install()
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""
"""Runs command lines one after the other, with more folders to import from: the packages are loaded once."""
SERVER = """
import sys
sys.path[:0] = sys.argv[1:]
from pitboss.cli.main import main
sys.exit(main(["mcp", "serve", "--write"]))
"""

LEAKY = """
from pitboss.tools.define import define_tool

async def look(context, arguments):
    return str(context.observation.view._market.bars["BTC", "1h"].close[-1])

SCHEMA = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
TOOL = define_tool(
    name="last_close", category="market_data", description="Leaks.", schema=SCHEMA, example={}, look=look
)
"""


class ToyProcess:
    """A process in which the toy venue is installed, with a workspace of its own."""

    def __init__(self, folder: Path, path: list[Path]) -> None:
        self.folder, self.path = folder, path
        paths = os.pathsep.join(map(str, path))
        self.env = {**os.environ, "PYTHONPATH": paths, "PITBOSS_HOME": str(folder / "home")}
        self._process = ForkedProcess("-c", PROGRAM, *path, env=self.env, cwd=folder, stdin=True)

    def run(self, *arguments: str, code: int = 0, out: bool = False) -> str:
        """Run a command that ends with `code`; return its standard output, or its standard error if `code` is not 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        exit_code, output, err = json.loads(self._process.stdout.readline())
        assert exit_code == code, err
        return err if code and not out else output

    def json(self, *arguments: str) -> Any:
        """Run a command with `--json` and return its document."""
        return json.loads(self.run(*arguments, "--json"))

    def close(self) -> None:
        self._process.communicate()


def _install(source: Path, site: Path) -> None:
    """Build the wheel of a package and unpack it into a folder, which is how a wheel without programs is installed."""
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(site.parent)], check=True, cwd=source)
    (wheel,) = site.parent.glob("*.whl")
    shutil.unpack_archive(wheel, site, "zip")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package built and installed into a folder, and a workspace with the demo market and the example skill.

    Test processes share it: the first makes it, the others wait for it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed-toy"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            shutil.copytree(ROOT / "examples" / "venue", folder / "source")
            _install(folder / "source", folder / "site")
            (folder / "workspace").mkdir()
            first = ToyProcess(folder / "workspace", [folder / "site", ROOT / "src"])
            first.run("data", "demo")
            first.run("init", "skills", "--venue", "coin")
            first.close()
    return folder


@pytest.fixture(scope="module")
def toy(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyProcess]:
    """A process with the installed package and a copy of the workspace."""
    folder = tmp_path_factory.mktemp("toy") / "workspace"
    shutil.copytree(installed / "workspace", folder)
    toy = ToyProcess(folder, [installed / "site", ROOT / "src"])
    yield toy
    toy.close()


def test_a_dear_backtest_of_an_installed_venue_needs_yes_and_is_held_to_the_day(toy: ToyProcess) -> None:
    model = ("--model", "ollama/any", "--price-in", "1000", "--price-out", "1000")
    dear = ("backtest", "skills/coin.yaml", *RANGE, *model)
    refused = toy.run(*dear, code=2)
    assert "this may cost $" in refused
    assert "--yes" in refused
    assert "may spend $5 a day" in toy.run(*dear, "--yes", code=2)
    assert toy.json("runs", "list") == []


def test_an_installed_venue_is_listed_with_its_package(toy: ToyProcess) -> None:
    row = next(row for row in toy.json("venues", "list") if row["name"] == "coin")
    assert (row["package"], row["version"], row["commands"]) == ("pitboss-coin", "0.1.0", ["backtest"])


def test_its_skills_are_checked_previewed_and_described(toy: ToyProcess) -> None:
    assert toy.json("skill", "check", "skills/coin.yaml")["ok"]
    broken = toy.folder / "broken.yaml"
    broken.write_text((toy.folder / "skills" / "coin.yaml").read_text().replace("max_stake: 5", "max_stakes: 5"))
    toy.run("skill", "check", str(broken), code=2)
    preview = toy.json("skill", "preview", "skills/coin.yaml", "--at", "2025-02-11T05:00:00Z")
    assert "## Flips, newest first" in preview["user"]
    assert [tool["name"] for tool in preview["tools"]] == ["past_flips", "place_bet"]
    assert toy.json("skill", "preview", "skills/coin.yaml")["at"] > preview["at"]
    assert "max_stake" in json.loads(toy.run("skill", "schema", "--venue", "coin"))["properties"]
    assert [tool["name"] for tool in toy.json("tools", "list", "--venue", "coin")] == ["past_flips", "place_bet"]


def test_a_backtest_is_judged_recorded_verified_resumed_forked_and_reported(toy: ToyProcess) -> None:
    run = toy.json("backtest", "skills/coin.yaml", *RANGE)
    assert run["status"] == "complete"
    assert run["metrics"]["rejections_by_rule"]["C2_STAKE"] > 0
    assert run["metrics"]["bets"] == run["metrics"]["total_accepted_actions"] > 0
    assert toy.json("coin", "backtest", "skills/coin.yaml", *RANGE)["digest"] == run["digest"]
    toy.run("runs", "verify", run["run_id"])
    page = Path(toy.run("report", run["run_id"]).strip()).read_text("utf-8")
    assert "C2_STAKE" in page
    assert "above the cap or the cash at hand" in page
    fills = toy.run("runs", "export", run["run_id"], "--what", "fills").splitlines()
    assert len(fills) == run["metrics"]["bets"]
    fork = toy.json("runs", "fork", run["run_id"], "--at", "2025-02-11T00:00:00Z", "--model", "policy/heads")
    (differing,) = toy.json("runs", "compare", run["run_id"], fork["run_id"])["decisions"]
    assert differing["decisions"][0]["tick_at"] >= "2025-02-11"


def test_decisions_come_from_a_file_and_a_policy_too(toy: ToyProcess) -> None:
    decisions = toy.folder / "decisions.jsonl"
    bet = {"action": "bet", "side": "tails", "stake": 2, "reason": "why not"}
    decisions.write_text(json.dumps({"tick_at": "2025-02-10T03:00:00Z", "proposal": bet}) + "\n")
    run = toy.json("backtest", "skills/coin.yaml", *RANGE, "--decisions", str(decisions))
    assert run["metrics"]["bets"] == 1
    heads = toy.json("backtest", "skills/coin.yaml", *RANGE, "--model", "policy/heads")
    assert heads["metrics"]["bets"] == 48
    toy.run("backtest", "skills/coin.yaml", *RANGE, "--model", "policy/tails", code=2)


def test_options_of_other_venues_are_refused(toy: ToyProcess) -> None:
    toy.run("backtest", "skills/coin.yaml", *RANGE, "--fees-taker-bps", "1", code=2)


def test_sweeps_arenas_and_the_queue_take_its_skills(toy: ToyProcess) -> None:
    study = toy.json("sweep", "skills/coin.yaml", *RANGE, "--grid", "max_stake=1,5")
    assert [trial["point"] for trial in study["trials"]] == [{"max_stake": "1"}, {"max_stake": "5"}]
    arena = toy.json("arena", "skills/coin.yaml", *RANGE, "--models", "standin/analyst", "--repeats", "1")
    assert {entry["model"] for entry in arena["entries"]} == {"standin/analyst", "policy/heads"}
    queued = toy.json("submit", "skills/coin.yaml", *RANGE, "--model", "policy/heads")["run_id"]
    toy.run("worker", "--idle-exit", "1s")
    assert toy.json("runs", "show", queued)["status"] == "complete"


def test_its_runs_are_audited_for_look_ahead_and_a_leaky_tool_is_found(toy: ToyProcess) -> None:
    words = ("audit", "lookahead", "skills/coin.yaml", *RANGE, "--cuts", "4")
    found = toy.json(*words, "--set", "model=policy/heads")
    assert (found["cuts"], found["differences"], found["examples"]) == (4, 0, [])
    assert found["runs"] == ["policy/heads", "standin/analyst"]
    assert {"prompt", "decision", "account", "tool past_flips"} <= set(found["covered"])
    run = toy.json("backtest", "skills/coin.yaml", *RANGE)["run_id"]
    assert toy.json("audit", "lookahead", "--run", run, "--cuts", "4")["differences"] == 0
    (toy.folder / "last_close.py").write_text(LEAKY)
    assert "LOOK-AHEAD" in toy.run(*words, "--tool-file", "last_close.py", code=1, out=True)


def test_its_tools_are_called_on_its_skills_and_runs(toy: ToyProcess) -> None:
    words = ("tools", "call", "past_flips", "--at", "2025-02-11T05:00:00Z", "count=3")
    flips = toy.run(*words, "--skill", "skills/coin.yaml")
    assert len(flips.split()) == 3
    run = toy.json("backtest", "skills/coin.yaml", *RANGE)["run_id"]
    assert toy.run(*words, "--run", run) == flips
    assert "tools that only look: past_flips" in toy.run(
        "tools", "call", "place_bet", "--mode", "write", "--run", run, code=2
    )


def test_its_skills_are_attacked_and_a_rule_that_is_taken_out_is_found(toy: ToyProcess, installed: Path) -> None:
    words = ("redteam", "skills/coin.yaml", "--limit", "2", "--ticks", "30")
    result = toy.json(*words)
    assert (result["breaches"], result["slots"]) == (0, ["tool", "mcp", "memory"])
    assert all(row["accepted"] and row["refused"] for row in result["rows"])
    assert "nothing can be planted in news: the coin venue shows no news" in toy.run(*words, "--slots", "news", code=2)
    site = toy.folder / "site-without-a-rule"
    shutil.copytree(installed / "site", site)
    book = site / "pitboss_coin" / "rules" / "__init__.py"
    book.write_text(book.read_text().replace("    rules = RULES\n", "    rules = RULES[:1]\n"))
    without = ToyProcess(toy.folder, [site, ROOT / "src"])
    breached = without.run(*words, "--slots", "memory", code=1, out=True)
    without.close()
    assert "C2_STAKE: stake" in breached
    assert "but it was accepted" in breached


def test_its_runs_can_be_blind(toy: ToyProcess) -> None:
    skill = toy.folder / "named.yaml"
    text = (
        (toy.folder / "skills" / "coin.yaml")
        .read_text()
        .replace("Bet heads", "As Bitcoin (BTC) did in 2024, bet heads")
    )
    skill.write_text(text)
    run = toy.json("backtest", "named.yaml", *RANGE, "--blind")
    assert run["blind"]
    rows = [json.loads(row) for row in toy.run("runs", "export", run["run_id"], "--what", "snapshots").splitlines()]
    prompts = "\n".join(part for row in rows if row["extra"].get("prompt") for part in row["extra"]["prompt"])
    assert "As ASSET-K (ASSET-K) did in [date], bet heads" in prompts
    assert not re.search(r"btc|bitcoin|202[45]", prompts, re.IGNORECASE)
    toy.run("runs", "verify", run["run_id"])
    again = toy.json("backtest", "named.yaml", *RANGE, "--blind", "--model", f"replay/{run['run_id']}")
    assert again["digest"] == run["digest"]
    toy.run("runs", "fork", run["run_id"], "--at", "2025-02-11T00:00:00Z", "--model", "policy/heads")
    assert "ASSET-K was BTC" in Path(toy.run("report", run["run_id"]).strip()).read_text("utf-8")


def test_the_memory_of_a_model_is_tested_on_its_bars(
    toy: ToyProcess, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(question: Any) -> Any:
        return guess(question) if asks_for_a_name(question) else call("place_bet", {"action": "hold", "reason": "no"})

    async def ask() -> tuple[Any, int]:
        async with FakeProvider(script=play) as server:
            for name, value in (("BASE_URL", server.url), ("API_KEY", "test-key-123456"), ("MODEL", "fake")):
                monkeypatch.setenv(f"LLM_{name}", value)
            asking = ToyProcess(toy.folder, [installed / "site", ROOT / "src"])
            words = (
                "--model",
                "llm/fake",
                "--from",
                "2025-02-10",
                "--to",
                "2025-02-12",
                "--windows",
                "6",
                "--repeats",
                "1",
            )
            prices = ("--price-in", "1", "--price-out", "2")
            found = await asyncio.to_thread(asking.json, "audit", "memory", "skills/coin.yaml", *words, *prices)
            asking.close()
            return found, len(server.questions)

    found, questions = asyncio.run(ask())
    assert (found["windows"], found["repeats"]) == (6, 1)
    assert questions == 6 + 2 * 48  # each window, and each tick with names and blind


def test_an_mcp_client_checks_previews_runs_and_explains_its_skills(toy: ToyProcess) -> None:
    async def session() -> None:
        first, *words = forked_command("-c", SERVER, *toy.path)
        program = StdioServerParameters(command=first, args=words, cwd=toy.folder, env=toy.env)
        async with Client(stdio_client(program)) as client:

            async def call(tool: str, /, **values: Any) -> Any:
                result: Any = await client.call_tool(tool, values)
                assert not result.is_error, result.content
                return result.structured_content

            tools = (await call("list_tools"))["tools"]
            assert {tool["name"] for tool in tools if tool["venue"] == "coin"} == {"past_flips", "place_bet"}
            assert (await call("show_tool", name="past_flips"))["example"] == {"count": 20}
            assert (await call("check_skill", skill="skills/coin.yaml"))["ok"]
            preview = await call("preview_prompt", skill="skills/coin.yaml", at="2025-02-11T05:00:00Z")
            assert "## Flips, newest first" in preview["user"]
            arguments = {"skill": "skills/coin.yaml", "from": RANGE[1], "to": RANGE[3]}
            run = await call("run_backtest", **arguments)
            assert (run["status"], run["metrics"]["rejections_by_rule"]["C2_STAKE"] > 0) == ("complete", True)
            assert (await call("show_run", run=run["run_id"]))["digest"] == run["digest"]
            reason = await call("explain_decision", run=run["run_id"])
            assert (reason["outcome"], reason["proposals"][0]["code"]) == ("refused", "C2_STAKE")
            fork = await call("fork_run", run=run["run_id"], at="2025-02-11T00:00:00Z", model="policy/heads")
            assert not (await call("compare_runs", first=run["run_id"], second=fork["run_id"]))["difference"]["same"]

    asyncio.run(session())


def test_an_uninstalled_venue_is_a_clear_error_that_lists_those_installed(toy: ToyProcess) -> None:
    without = ToyProcess(toy.folder, [ROOT / "src"])
    error = without.run("skill", "check", "skills/coin.yaml", code=2)
    toy.json("backtest", "skills/coin.yaml", *RANGE, "--model", "policy/heads")
    assert {run["skill"] for run in without.json("runs", "list")} == {"Coin flips"}
    without.close()
    assert "there is no venue 'coin'; installed: community, perp, predict" in error
