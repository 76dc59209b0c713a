"""Every limit that stops a live deployment from opening: at its limit it does, and one unit below it does not. Virtual time."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from pitboss.build import build
from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS
from pitboss.live.control import Control
from pitboss.live.halt_checks import HaltChecks
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.store.deployment_alarms import raise_alarm
from pitboss.store.watchdog_beats import WatchdogBeat, write_beat
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.testing.hyperliquid.transport import run_in_virtual_time
from pitboss.venues.perp.hyperliquid.live_source import ReportedSource
from pitboss.venues.perp.hyperliquid.reconcile import ADOPT_AFTER_MS
from venues.perp.hyperliquid.deployed_scene import OPEN, DeployedScene, ScriptedAgent, verdicts
from venues.perp.hyperliquid.guarded_scene import guarded_scene
from venues.perp.hyperliquid.live_scene import Scene, open_request

AT = 1_790_000_000_000


def opens(count: int) -> list[dict[str, Any]]:
    """Different orders of one decision."""
    return [{**OPEN, "size_usd": 100 + number} for number in range(count)]


def halt_after_loss(home: Path, share: str, over: bool, day_pct: int, peak_pct: int) -> str:
    """The account loses this share, or a millionth of a dollar less, while the agent thinks."""
    risk = {"daily_loss_halt_pct": day_pct, "drawdown_halt_pct": peak_pct}
    scene = DeployedScene(
        home=home, risk=risk, daily_loss_halt_pct=Decimal(day_pct), drawdown_halt_pct=Decimal(peak_pct)
    )

    def lose() -> None:
        account = scene.exchange.account()
        account.cash -= account.cash * Decimal(share) - (0 if over else Decimal("0.000001"))

    bodies = scene.work(ScriptedAgent([opens(1)], lose))
    assert verdicts(bodies)[0] == (("refused", "R8_HALTED") if over else ("allowed", None))
    assert bool(scene.actions()) == (not over)
    return ",".join(bodies[-1]["after"]["halts"]) if over else ""  # below the limit the fee of the order reaches it


def daily_loss(home: Path, over: bool) -> str:
    return halt_after_loss(home, "0.05", over, day_pct=5, peak_pct=50)


def drawdown(home: Path, over: bool) -> str:
    return halt_after_loss(home, "0.15", over, day_pct=50, peak_pct=15)


def order_rate(home: Path, over: bool) -> str:
    scene = DeployedScene(home=home, risk={"max_orders_per_hour": 3})
    outcomes = verdicts(scene.work(ScriptedAgent([opens(4 if over else 3)])))
    assert outcomes[:3] == [("allowed", None)] * 3
    return ",".join(code or "" for _, code in outcomes[3:])


def reject_rate(home: Path, over: bool) -> str:
    scene = DeployedScene(home=home, faults=(FaultRule("stop_refused", probability=1.0),))
    outcomes = verdicts(scene.work(ScriptedAgent([opens(5 if over else 4)])))
    assert set(outcomes) == {("refused", "R13_VENUE")}
    return scene.control.code


def reconcile(home: Path, over: bool) -> str:
    """The account holds another size than its fills say, for a minute."""
    del home
    scene, control = Scene(), Control()
    scene.transport._latency = (0, 0)  # pyright: ignore[reportPrivateUsage]
    source = ReportedSource(scene.broker, cast("Any", None), None, control.halt)

    async def story() -> None:
        world = (await scene.broker.submit(await scene.world(), open_request(), scene.now())).world
        scene.exchange.account().positions["ETH"].size += Decimal("0.0001")
        began = scene.clock.now()
        scene.reconciler.look_closely()
        with pytest.raises(TransientError):
            await source.update(world, 0)
        took_ms = scene.clock.now() - began
        await asyncio.sleep((ADOPT_AFTER_MS - took_ms - (0 if over else 1)) / 1_000)
        try:
            await source.update(world, 0)
        except TransientError:
            assert not over

    run_in_virtual_time(scene.clock, story())
    return control.code


def stale_data(home: Path, over: bool) -> str:
    del home
    checks = HaltChecks()
    assert checks.halt_cause(AT, stale=True) == ("", "")
    code = checks.halt_cause(AT + 10 * MINUTE_MS + over, stale=True)[0]
    assert checks.halt_cause(AT + 11 * MINUTE_MS, stale=False) == ("", "")
    assert checks.halt_cause(AT + 12 * MINUTE_MS, stale=True) == ("", "")  # counted anew
    return code


def stored_halt(home: Path, prepare: Callable[[Any, str], None], later_ms: int = 0) -> str:
    """The halt that a process of the deployment stores when it is about to open; its restart finds it."""

    async def story() -> str:
        async with guarded_scene(home) as scene:
            database, now = scene.workspace.database, scene.workspace.database.clock
            database.clock = lambda: AT
            prepare(database, scene.deployment.id)
            database.clock = lambda: AT + later_ms
            epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
            refusal = DeploymentRun(scene.workspace, scene.deployment, epoch).open_refusal()
            restarted = DeploymentRun(scene.workspace, scene.stored(), epoch)
            assert bool(refusal) == bool(restarted.open_refusal()) == (scene.stored().state == "halted")
            database.clock = now
            return scene.stored().code

    return asyncio.run(story())


def unread_alarm(home: Path, over: bool) -> str:
    def prepare(database: Any, deployment_id: str) -> None:
        raise_alarm(database, deployment_id, "the exchange has liquidated positions")

    return stored_halt(home, prepare, MINUTE_MS + over)


def build_mismatch(home: Path, over: bool) -> str:
    other = build()[:-1] + ("0" if build()[-1] != "0" else "1")

    def prepare(database: Any, deployment_id: str) -> None:
        write_beat(database, WatchdogBeat("w", (deployment_id,), 15_000, build=other if over else build()))

    return stored_halt(home, prepare)


HALTS: dict[str, tuple[Callable[[Path, bool], str], str]] = {
    "the day has lost 5 %": (daily_loss, "daily_loss"),
    "15 % below the peak": (drawdown, "drawdown"),
    "3 orders an hour": (order_rate, "R7_ORDER_RATE"),
    "5 orders refused by the venue": (reject_rate, "reject_rate"),
    "a size that no fill explains for 60 s": (reconcile, "reconcile"),
    "no data for 10 minutes": (stale_data, "stale_data"),
    "an alarm unread for 60 s": (unread_alarm, "unread_alarm"),
    "a process of another build": (build_mismatch, "build_mismatch"),
}


@pytest.mark.parametrize("name", HALTS)
def test_a_limit_stops_opens_when_it_is_passed_and_not_one_unit_before(tmp_path: Path, name: str) -> None:
    trip, code = HALTS[name]
    for over in (False, True):
        home = tmp_path / str(over)
        home.mkdir()
        assert trip(home, over) == (code if over else "")
