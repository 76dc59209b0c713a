"""`pitboss predict run --writer sui` against a node and an indexer on this machine: desk, dry run, flags, kills, set-up."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from data.sources.source_servers import serving_app as served
from forked_process import ForkedProcess
from pitboss.testing.prediction_services import PREDICT, PredictionServices
from pitboss.venues.predict.state import QUOTE
from pitboss.venues.predict.venue import VENUE
from scenarios.pitboss_process import ENVIRONMENT, run_in_process
from scenarios.terminal_keys import run_at_terminal
from venues.predict.sui.fake_chain import AGENT, KEY, NEW_MANAGER, PLACE, FakeChain
from venues.predict.sui.graphql_node import Node, serving_node
from venues.predict.sui.sui_signer import signing_process
from venues.predict.sui.writer_machine import ADDRESS


@dataclass
class SuiWorkspace:
    """A workspace with a skill, a chain behind a node, and the indexer of its markets."""

    home: Path
    skill: Path
    node: Node
    services: PredictionServices
    url: str

    @property
    def chain(self) -> FakeChain:
        return self.node.chain

    def words(self, *more: object, every: str = "3s") -> list[str]:
        feeds = ("--indexer", self.url, "--prices-url", self.url)
        common = ("--every", every, "--port", "0", "--json", "--model", "policy/alternate", "--home", self.home)
        return [str(word) for word in ("predict", "run", self.skill, *feeds, "--writer", "sui", *common, *more)]

    def preflight_words(self) -> list[str]:
        """The command line that checks whether everything is ready."""
        services = ["--indexer", self.url, "--prices-url", self.url]
        return ["predict", "preflight", *services, "--json", "--home", str(self.home)]

    def run(self, *more: object) -> tuple[list[dict[str, Any]], str]:
        result = run_in_process(*self.words(*more))
        return [json.loads(line) for line in result.out.splitlines()], result.err

    def records(self, run_id: str) -> list[dict[str, Any]]:
        assert run_in_process("runs", "verify", run_id, "--home", self.home).out.startswith("OK ")
        result = run_in_process("runs", "export", run_id, "--what", "snapshots", "--home", self.home)
        return [json.loads(line) for line in result.out.splitlines()]


def fill_receipts(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for record in records for one in record["receipts"] if one["kind"] == "filled"]


@pytest.fixture
def sui_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SuiWorkspace]:
    # A price that stands still: no order is refused because it moved between simulation and execution.
    services = PredictionServices(tiers=("1w",), price=lambda second: 68_020.0)
    ((name, text),) = VENUE.examples().items()
    (tmp_path / name).write_text(text)
    with serving_node(FakeChain(ADDRESS, services=services)) as node, served(services.app()) as url:
        settings = {
            "SUI_NODE_URL": node.url,
            "PREDICT_PACKAGE_ID": PLACE.package,
            "PREDICT_QUOTE_TYPE": PLACE.quote_type,
            "LIVE_POLL_S": "0.3",
        }
        variables = {f"PITBOSS_{key}": value for key, value in settings.items()}
        variables |= {"AGENT_PREDICT_MANAGER_ID": PLACE.manager}
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        monkeypatch.setattr("scenarios.pitboss_process.ENVIRONMENT", {**ENVIRONMENT, **variables})
        with signing_process(tmp_path / "home"):
            yield SuiWorkspace(tmp_path / "home", tmp_path / name, node, services, url)


def test_a_dry_run_simulates_every_order_and_signs_and_sends_none(sui_workspace: SuiWorkspace) -> None:
    (began, *entries), err = sui_workspace.run("--dry-run", "--ticks", "2")
    assert began["mode"] == "dry run"
    assert "2 a tick, 50 a day, 200 in all" in err
    assert f"testnet: manager {PLACE.manager} holds 100 DUSDC and 0 positions" in err
    verdicts = [verdict for entry in entries if entry["kind"] == "tick" for verdict in entry["verdicts"]]
    assert verdicts
    for verdict in verdicts:
        assert (verdict["outcome"], verdict["code"]) == ("refused", "B15_VENUE")
        assert "dry run, nothing was signed or sent: it would mint" in verdict["detail"]
    asked = [name for name, _ in sui_workspace.node.requests]
    assert "Simulate" in asked
    assert "Execute" not in asked
    assert sui_workspace.chain.account.cash == 100 * QUOTE
    assert fill_receipts(sui_workspace.records(began["run_id"])) == []


def test_orders_are_transactions_and_the_desk_is_the_managers(sui_workspace: SuiWorkspace) -> None:
    nearest = min(at for at in sui_workspace.services.expiries() if at > sui_workspace.services.now())
    name = sui_workspace.services.oracle_id(nearest)
    held = {"oracle_id": name, "expiry": nearest, "strike": 67_000 * 10**9, "is_up": True, "open_quantity": 4 * QUOTE}
    held |= {"open_cost_basis": 2 * QUOTE, "realized_pnl": 0, "mark_price": None, "status": "active"}
    sui_workspace.services.positions[PLACE.manager] = [held]
    (began, *_), err = sui_workspace.run("--ticks", "2")
    assert "holds 100 DUSDC and 1 positions" in err
    records = sui_workspace.records(began["run_id"])
    mints = fill_receipts(records)
    assert len(mints) == len(sui_workspace.chain.mints) >= 1
    assert {one["facts"]["digest"] for one in mints} == {effects.digest for effects in sui_workspace.chain.mints}
    account = records[-1]["after"]
    assert Decimal(account["cash"]) == Decimal(sui_workspace.chain.account.cash) / QUOTE
    assert {"market_id": name, "side": "YES", "strikes": ["67000"], "quantity": "4", "cost": "2"} in account[
        "positions"
    ]
    shown = run_in_process("runs", "show", began["run_id"], "--json", "--home", sui_workspace.home).json
    assert shown["metrics"]["mints"] == len(mints)
    first = next(record for record in records if record["kind"] == "tick")
    assert Decimal(first["before"]["equity"]) > 100


def test_killed_while_its_order_is_on_its_way_it_mints_nothing_twice(sui_workspace: SuiWorkspace) -> None:
    hanging = threading.Event()
    sui_workspace.node.on_hang = hanging.set
    sui_workspace.node.faults["Execute"] = ["hang"]
    process = ForkedProcess("-m", "pitboss", *sui_workspace.words())
    try:
        assert process.stdout is not None
        run_id = json.loads(process.stdout.readline())["run_id"]
        assert hanging.wait(60)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert len(sui_workspace.chain.mints) == 1  # the reply was lost, the transaction was not
    (began, *_), _ = sui_workspace.run("--once")
    assert began["run_id"] == run_id
    records = sui_workspace.records(run_id)
    digests = [one["facts"]["digest"] for one in fill_receipts(records)]
    assert sorted(digests) == sorted(effects.digest for effects in sui_workspace.chain.mints)
    assert len(digests) == len(set(digests)) >= 1
    assert Decimal(records[-1]["after"]["cash"]) == Decimal(sui_workspace.chain.account.cash) / QUOTE


@pytest.mark.parametrize(("flag", "said"), [("paused", "paused trading"), ("agent_paused", "switched off")])
def test_no_model_is_called_while_the_chain_is_paused(
    sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch, flag: str, said: str
) -> None:
    monkeypatch.setenv("TRADE_AGENT_ID", AGENT)
    sui_workspace.chain.paused, sui_workspace.chain.agent_active = flag == "paused", flag != "agent_paused"
    (_, *entries), _ = sui_workspace.run("--once")
    ticks = [entry for entry in entries if entry["kind"] == "tick"]
    assert {tuple(tick["flags"]) for tick in ticks} == {(flag,)}
    assert any(said in entry["detail"] for entry in entries if entry["kind"] == "remark")
    assert sui_workspace.chain.mints == []


@pytest.mark.parametrize("written", [AGENT.upper().replace("X", "x"), f" {AGENT} "])
def test_an_agent_is_found_however_its_id_is_written(
    sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("PITBOSS_PREDICT_AGENT_ID", written)
    (_, *entries), _ = sui_workspace.run("--once")
    assert all(entry["flags"] == [] for entry in entries if entry["kind"] == "tick")
    monkeypatch.setenv("PITBOSS_PREDICT_MANAGER_ID", PLACE.manager)
    assert run_in_process(*sui_workspace.preflight_words()).json["checks"][-1] == {
        "name": "agent",
        "ok": True,
        "detail": f"the agent {AGENT} is active",
    }


def test_an_agents_id_that_is_none_is_refused(sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_PREDICT_AGENT_ID", "mine")
    result = run_in_process(*sui_workspace.words("--once"), code=2)
    assert "setting predict_agent_id is not an id" in result.err


def test_without_a_node_it_is_one_line_and_nothing_else(
    sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_SUI_NODE_URL", "")
    result = run_in_process(*sui_workspace.words("--once"), code=2)
    assert "the address of a Sui node is not set" in result.err
    assert "never awaited" not in result.err


def test_preflight_tells_every_check_and_what_fails(
    sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_PREDICT_MANAGER_ID", PLACE.manager)
    words = sui_workspace.preflight_words()
    result = run_in_process(*words).json
    assert result["ok"] is True
    names = [check["name"] for check in result["checks"]]
    assert names == ["indexer", "protocol", "markets", "prices", "key", "manager", "positions", "pause flag"]
    assert all(set(check) == {"name", "ok", "detail"} for check in result["checks"])
    assert "Execute" not in [name for name, _ in sui_workspace.node.requests]
    sui_workspace.chain.paused = True
    again = run_in_process(*words, code=1).json
    assert [check["name"] for check in again["checks"] if not check["ok"]] == ["pause flag"]
    assert KEY not in json.dumps([result, again])


def test_a_manager_is_made_and_paid_into_and_a_dry_run_of_it_changes_nothing(
    sui_workspace: SuiWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_PREDICT_ID", PREDICT)
    tail = ("--json", "--home", sui_workspace.home)
    assert run_in_process("predict", "manager", "create", "--dry-run", *tail).json["manager_id"] is None
    made = run_in_process("predict", "manager", "create", *tail).json
    assert (made["manager_id"], made["sent"]) == (NEW_MANAGER, True)
    monkeypatch.setenv("PITBOSS_PREDICT_MANAGER_ID", PLACE.manager)
    assert run_in_process("predict", "manager", "deposit", "35", "--dry-run", *tail).json["sent"] is False
    assert sui_workspace.chain.account.cash == 100 * QUOTE
    paid = run_in_process("predict", "manager", "deposit", "35", *tail).json  # more than either coin has
    assert paid["manager_id"] == PLACE.manager
    assert sui_workspace.chain.account.cash == 135 * QUOTE
    assert sum(sui_workspace.chain.wallet) == 7 * QUOTE
    run_in_process("predict", "manager", "deposit", "35", *tail, code=2)
    assert sui_workspace.chain.account.cash == 135 * QUOTE


def test_mainnet_is_refused_without_a_terminal_and_asks_for_its_name_at_one(sui_workspace: SuiWorkspace) -> None:
    result = run_in_process(*sui_workspace.words("--network", "mainnet"), code=2)
    assert "mainnet has to be confirmed at a terminal" in result.err
    assert "2 a tick, 50 a day, 200 in all" in result.err
    for typed, said in (("yes\n", "not confirmed"), ("mainnet\n", "the signer signs for testnet")):
        code, shown = run_at_terminal(typed, "type mainnet", *sui_workspace.words("--network", "mainnet"), **os.environ)
        assert code == 2, shown
        assert said in shown
    assert [name for name, _ in sui_workspace.node.requests if name == "Execute"] == []
