"""The whole path of a live deployment: a skill is deployed, trades on the fake exchange, halts, is resumed, and stops.

What the exchange has, what the store has and what the API shows are compared at every step. The host is a process of its own.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from forked_process import ForkedProcess
from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.instant import HOUR_MS
from pitboss.core.snapshot import GENESIS, check
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.store.deployments import Deployment
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.venues.perp.testing import plain_skill
from stored_records import records_of
from venues.perp.hyperliquid import trading_process
from venues.perp.hyperliquid.guarded_scene import GuardedScene, guarded_scene
from venues.perp.hyperliquid.shared_clock import SharedClock

LIMIT_S, LOOK_S = 200, 0.25
PROCESS = Path(trading_process.__file__)
TOKEN = "a" * 48
FALL = Decimal("0.95")
CAPS = {
    "order_notional_usd": 100_000,
    "opened_notional_per_day_usd": 1_000_000,
    "orders_per_minute": 100,
    "orders_per_day": 1_000,
}
SKILL = plain_skill(
    ("BTC",),
    "5m",
    context={"symbols": ["BTC"], "bars_interval": "5m", "bars_lookback": 20, "higher_timeframes": []},
    risk={"max_position_pct": 100, "max_orders_per_hour": 60, "daily_loss_halt_pct": 50, "drawdown_halt_pct": 3},
)


@contextmanager
def api(home: Path) -> Iterator[TestClient]:
    app = create_app(open_workspace(load_settings(home)), SignIn(digest(TOKEN), random_hex))
    with TestClient(app, base_url="http://127.0.0.1:8700") as client:
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield client


class DeploymentViews:
    """The deployment as the exchange, the store and the API report it."""

    def __init__(self, scene: GuardedScene, client: TestClient) -> None:
        self.scene = scene
        self._client = client
        self._url = f"/api/deployments/{scene.deployment.id}"

    async def shown(self) -> dict[str, Any]:
        return (await asyncio.to_thread(self._client.get, self._url)).json()

    async def tell(self, command: str, **more: str) -> Any:
        body = {"command": command, **more}
        return await asyncio.to_thread(lambda: self._client.post(f"{self._url}/commands", json=body))

    def bodies(self) -> list[dict[str, Any]]:
        """What the records of the deployment say."""
        workspace = self.scene.workspace
        records = records_of(workspace, workspace.runs.get(self.scene.deployment.run_id))
        previous = GENESIS
        for number, record in enumerate(records):
            check(record, number, previous)
            previous = record.digest
        return [codec.loads(record.covered) for record in records]

    def receipts(self, kind: str) -> list[dict[str, Any]]:
        return [each for body in self.bodies() for each in body.get("receipts", ()) if each["kind"] == kind]

    async def agreed(self, state: str, is_open: bool) -> dict[str, Any]:
        """Wait until exchange, records and API agree: in that state, with or without a position. Returns what the API shows."""
        while True:
            document = await self.shown()
            positions = (document["account_after"] or {"positions": {}})["positions"]
            shown = Decimal(positions["BTC"]["size"]) if "BTC" in positions else Decimal(0)
            size = self.scene.position("BTC")
            if bool(size) == is_open and shown == size and document["state"] == self.scene.stored().state == state:
                return document
            await asyncio.sleep(LOOK_S)

    async def refusal(self) -> str:
        """Wait until an order was refused; returns the code of the rule."""
        while True:
            verdicts = [each for body in self.bodies() for each in body.get("verdicts", ())]
            refused = [each["code"] for each in verdicts if each["outcome"] == "refused"]
            if refused:
                return refused[-1]
            await asyncio.sleep(LOOK_S)

    def stops(self) -> list[Decimal]:
        """The sizes of the stops that rest at the exchange."""
        return [order.remaining for order in self.scene.exchange.account().open_orders.values() if order.is_trigger]


def deploy_live(client: TestClient, workspace: Workspace) -> Deployment:
    asked = {"skill": SKILL, "mode": "live", "account": "main"}
    assert client.post("/api/deployments", json=asked).status_code == 409  # the name of the account is missing
    reply = client.post("/api/deployments", json={**asked, "confirm": "main"})
    assert reply.status_code == 201, reply.text
    return workspace.deployments.get(reply.json()["deployment_id"])


async def run_story(watched: DeploymentViews) -> None:
    scene = watched.scene
    # It opens, and its stop rests at the exchange.
    shown = await watched.agreed("running", is_open=True)
    size = scene.position("BTC")
    assert watched.stops() == [size]
    assert shown["attended"]
    assert Decimal(shown["account_after"]["positions"]["BTC"]["stop"]) > 0
    opened = watched.receipts("filled")
    assert [Decimal(each["facts"]["size"]) for each in opened] == [size]

    # The market falls through the stop: the exchange closes, and the drawdown halts the deployment.
    mark = scene.exchange.state.markets["BTC"].mark
    scene.exchange.set_price("BTC", mark * FALL)
    shown = await watched.agreed("halted", is_open=False)
    scene.exchange.set_price("BTC", None)
    assert shown["code"] == scene.stored().code == "drawdown"
    # The agent is asked again and wants to open: it is refused, and nothing opens.
    assert await watched.refusal() == "R8_HALTED"
    assert scene.position("BTC") == 0
    assert watched.stops() == []

    # A person resumes it, with a reason and the name of the account; it opens again.
    assert (await watched.tell("resume", confirm="main")).status_code == 422
    assert (await watched.tell("resume", reason="looked at")).status_code == 409
    assert (await watched.tell("resume", reason="looked at", confirm="main")).status_code == 200
    await watched.agreed("running", is_open=True)
    assert watched.stops() == [scene.position("BTC")]

    # It is closed and stopped.
    assert (await watched.tell("flatten", reason="enough")).status_code == 200
    await watched.agreed("paused", is_open=False)
    assert (await watched.tell("stop", reason="the end")).status_code == 200
    await watched.agreed("stopped", is_open=False)
    while scene.workspace.runs.get(scene.deployment.run_id).status != "complete":  # noqa: ASYNC110 - of another process
        await asyncio.sleep(LOOK_S)


def compare_records(watched: DeploymentViews) -> None:
    """Every fill of the exchange is in the records once, no order was placed twice, and commands are recorded in order."""
    scene = watched.scene
    truth = scene.exchange.truth()
    assert len(watched.receipts("filled")) == truth.fills
    assert truth.duplicates() == {}
    commands = [each["facts"]["command"] for each in watched.receipts("command")]
    assert commands == ["resume", "flatten", "stop"]
    assert not any(order.is_open for order in scene.store.open_orders())


@pytest.mark.proof
def test_a_skill_is_deployed_trades_halts_is_resumed_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")  # the test starts the host itself

    async def main() -> None:
        clock = SharedClock(tmp_path / "clock")
        rules = VenueRules(step_ms=5_000, history_ms=HOUR_MS, verify_every=10)
        clients: list[TestClient] = []

        def by_api(workspace: Workspace) -> Deployment:
            clients.append(stack.enter_context(api(tmp_path)))
            return deploy_live(clients[0], workspace)

        async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
            scene = await stack.enter_async_context(
                guarded_scene(tmp_path, trading_caps=CAPS, deployed=by_api, now=clock.now, rules=rules)
            )
            watched = DeploymentViews(scene, clients[0])
            job = trading_process.Job(1, ticks=1_000, is_steady=True)
            with ForkedProcess(PROCESS, tmp_path, tmp_path / "clock", json.dumps(asdict(job))) as process:
                try:
                    await run_story(watched)
                finally:
                    process.terminate()
            compare_records(watched)

    asyncio.run(main())
