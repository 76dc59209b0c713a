"""The watchdog on the fake exchange: a silent process loses its orders and keeps its stops; others are left alone."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.jobs.watchdog import Watchdog, WatchdogEvent, WatchdogSettings
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.store.retry import Unreachable
from pitboss.store.watchdog_beats import read_beat, watch_problem
from pitboss.testing.hyperliquid.control import act
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.guardian import HyperliquidGuardian
from venues.perp.hyperliquid.guarded_scene import OPENS, GuardedScene, run_in_scene

SILENT_MS = 14_000


class WatchdogSetup:
    """A watchdog with a manual stopwatch."""

    def __init__(self, scene: GuardedScene, flatten: bool = False) -> None:
        self.seconds = 100.0
        self.events: list[WatchdogEvent] = []
        settings = WatchdogSettings(flatten=flatten, poll_s=60)  # a pass ends with what it began
        self.watchdog = Watchdog(scene.workspace, settings, self.events.append, lambda: self.seconds)
        scene.stack.push_async_callback(self.watchdog.close)

    async def watch(self, after_s: float = 0.0) -> None:
        self.seconds += after_s
        await self.watchdog.watch()

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def test_a_silent_process_loses_its_orders_keeps_its_stops_and_is_halted_for_good(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        scene.age(SILENT_MS)
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        assert scene.open_orders() == {("ETH", "stop")}
        assert scene.position("ETH") == Decimal("0.5")
        stored = scene.stored()
        assert (stored.state, stored.code) == ("halted", "watchdog")
        assert watchdog.kinds == ["watching", "silent", "acted"]
        assert "1 order cancelled, 1 stop stays" in watchdog.events[-1].text

        await watchdog.watch(5)  # it looks again, and there is nothing to do or to tell
        assert watchdog.kinds == ["watching", "silent", "acted"]
        again = WatchdogSetup(scene, flatten=False)  # so does a watchdog that was started anew
        await again.watch()
        assert scene.open_orders() == {("ETH", "stop")}
        assert scene.stored() == stored

    run_in_scene(tmp_path, story)


def test_with_flatten_the_position_is_closed_once_and_a_second_watchdog_opens_nothing(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        scene.age(SILENT_MS)
        watchdog = WatchdogSetup(scene, flatten=True)
        await watchdog.watch()
        assert scene.position("ETH") == 0
        assert "1 of 1 positions closed" in watchdog.events[-1].text
        again = WatchdogSetup(scene, flatten=True)
        await again.watch()
        assert scene.position("ETH") == 0
        assert scene.exchange.truth().duplicates() == {}
        # The process that continues finds its account explained: the close is one of its own orders.
        broker = await scene.broker()
        reconciled = await broker.resolve(None)
        assert (reconciled.world.positions, broker.alarm()) == ({}, "")

    run_in_scene(tmp_path, story)


def test_a_process_that_is_heard_is_left_alone(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        scene.age(12_000)  # a second below the limit
        watchdog = WatchdogSetup(scene, flatten=True)
        await watchdog.watch()
        assert scene.open_orders() == {("BTC", "limit"), ("ETH", "stop")}
        assert (scene.stored().state, watchdog.kinds) == ("running", ["watching"])
        scene.age(SILENT_MS)
        await watchdog.watch(1)
        scene.workspace.runs.heartbeat(scene.deployment.run_id, scene.epoch)
        await watchdog.watch(1)
        assert watchdog.kinds[-1] == "back"
        assert scene.stored().state == "halted"

    run_in_scene(tmp_path, story)


def test_a_deployment_that_no_process_ever_worked_on_and_a_stopped_one_are_not_touched(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        assert scene.stored().state == "running"
        scene.workspace.deployments.stop(scene.deployment.id, "stop", "")
        await watchdog.watch(1)
        watchdog.watchdog.beat()
        beat, _ = read_beat(scene.workspace.database)
        assert beat is not None
        assert beat.watched == ()

    run_in_scene(tmp_path, story)


def test_orders_of_others_on_the_account_are_not_cancelled(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        other = next(order for order in scene.exchange.account().open_orders.values() if not order.is_trigger)
        with scene.workspace.database.write() as connection:  # the order is another program's: no row of ours names it
            connection.exec_driver_sql("delete from live_orders where cloid = ?", (other.request.cloid,))
        scene.age(SILENT_MS)
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        assert scene.open_orders() == {("BTC", "limit"), ("ETH", "stop")}
        assert scene.stored().state == "halted"

    run_in_scene(tmp_path, story)


def test_a_lost_answer_is_looked_after_until_nothing_is_left(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        scene.server.gateway.plan.add(FaultRule("http_500", on=("cancel",), times=1))
        scene.age(SILENT_MS)
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        first = set(scene.open_orders())
        await watchdog.watch(2)
        assert scene.open_orders() == {("ETH", "stop")}
        assert watchdog.kinds[-1] == "acted"
        assert ("failed" in watchdog.kinds) == (("BTC", "limit") in first)

    run_in_scene(tmp_path, story)


def test_without_the_database_orders_are_cancelled_and_nothing_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        watchdog = WatchdogSetup(scene, flatten=True)
        await watchdog.watch()  # it knows the deployment and its orders from now on

        def fail(*_: object) -> None:
            raise Unreachable("the database does not answer")

        monkeypatch.setattr(type(scene.workspace.database), "read", fail)
        monkeypatch.setattr(type(scene.workspace.database), "write", fail)
        for _ in range(8):
            await watchdog.watch(2)
        monkeypatch.undo()
        assert scene.open_orders() == {("ETH", "stop")}
        assert scene.position("ETH") == Decimal("0.5")
        assert scene.stored().state == "running"
        assert "database" in watchdog.kinds

    run_in_scene(tmp_path, story)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"watchdog_caps": OPENS}, "may open positions"),
        ({"shared_key": True}, "holds the key of the trading one"),
    ],
)
def test_a_signer_that_could_do_harm_is_told_in_the_heartbeat(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    async def story(scene: GuardedScene) -> None:
        scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        watchdog.watchdog.beat()
        assert words in watch_problem(scene.workspace.database, scene.deployment.id, 15_000)

    run_in_scene(tmp_path, story, **options)


def test_a_deployment_that_demands_a_watchdog_opens_only_while_one_is_heard(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        demanding = scene.workspace.settings.model_copy(update={"live_require_watchdog": True})
        object.__setattr__(scene.workspace, "settings", demanding)
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        process = DeploymentRun(scene.workspace, scene.deployment, epoch)
        assert process.open_refusal() == "there is no watchdog"
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        watchdog.watchdog.beat()
        assert process.open_refusal() == ""
        assert "last heartbeat" in watch_problem(scene.workspace.database, scene.deployment.id, -1)
        relaxed = demanding.model_copy(update={"live_require_watchdog": False})
        object.__setattr__(scene.workspace, "settings", relaxed)
        assert DeploymentRun(scene.workspace, scene.deployment, epoch).open_refusal() == ""

    run_in_scene(tmp_path, story)


def test_a_host_that_holds_the_deployment_takes_the_halt_over_at_once(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        host = LiveHost(scene.workspace, HostSettings())
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        host.begin(scene.deployment, epoch)
        control = host.hosted[scene.deployment.id].run.control
        assert control.open_refusal() == ""
        scene.workspace.deployments.halt(scene.deployment.id, "watchdog", "silent")
        host.deliver()
        assert (control.state, control.code) == ("halted", "watchdog")
        assert control.open_refusal() == "the deployment is halted"
        task = host.hosted[scene.deployment.id].task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_scene(tmp_path, story)


def test_a_venue_that_does_not_answer_is_told_once_and_tried_again(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        scene.age(SILENT_MS)
        act(scene.server, {"do": "outage", "on": True})
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        await watchdog.watch(2)
        assert watchdog.kinds.count("failed") == 1
        assert scene.stored().state == "halted"
        act(scene.server, {"do": "outage", "on": False})
        await watchdog.watch(2)
        assert scene.open_orders() == {("ETH", "stop")}

    run_in_scene(tmp_path, story)


def test_the_ids_of_orders_that_have_ended_are_not_kept(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        await scene.trade()
        watchdog = WatchdogSetup(scene)
        await watchdog.watch()
        guardian = watchdog.watchdog._watched[scene.deployment.id].guardian
        assert isinstance(guardian, HyperliquidGuardian)
        limit, stop = scene.store.open_orders()
        assert guardian._cloids == {limit.cloid, stop.cloid}
        scene.store.change(limit, replace(limit.fence, state="cancelled"))
        await watchdog.watch(5)
        assert guardian._cloids == {stop.cloid}

    run_in_scene(tmp_path, story)


def test_the_exchange_that_the_settings_file_names_is_the_one_that_orders_go_to(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('hyperliquid_url = "https://api.hyperliquid-testnet.xyz"\n')
    assert exchange_url(load_settings(tmp_path)) == "https://api.hyperliquid-testnet.xyz"


def test_a_process_that_was_suspended_opens_nothing_that_was_halted_or_taken_over_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: GuardedScene) -> None:
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        process = DeploymentRun(scene.workspace, scene.deployment, epoch)
        assert process.open_refusal() == ""
        other = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        assert process.open_refusal() == "another process works on the deployment"
        process = DeploymentRun(scene.workspace, scene.deployment, other)
        scene.workspace.deployments.halt(scene.deployment.id, "watchdog", "silent")
        assert process.open_refusal() == "the deployment is halted"
        assert (process.control.state, process.control.code) == ("halted", "watchdog")

        def fail(*_: object) -> None:
            raise Unreachable("the database does not answer")

        process = DeploymentRun(scene.workspace, scene.deployment, other)
        monkeypatch.setattr(type(scene.workspace.database), "read", fail)
        assert "cannot be read" in process.open_refusal()
        monkeypatch.undo()

    run_in_scene(tmp_path, story)
