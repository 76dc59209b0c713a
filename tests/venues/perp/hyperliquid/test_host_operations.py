"""A host tells what happens: a halt arrives at the webhook, and figures and health are served in the form that Prometheus reads."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from notification_servers import http_receiver
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import FILE
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.deployment import OpenCommand
from pitboss.core.snapshot import seal
from pitboss.jobs.host_listener import HostListener
from pitboss.jobs.live_host import HostSettings, LiveHost, host
from pitboss.jobs.live_metrics import HostMetrics, serving_metrics
from pitboss.jobs.metrics_text import LatencyHistogram, write_metric
from pitboss.runs.deployment_run import DeploymentRun
from venues.perp.hyperliquid.guarded_scene import GuardedScene, run_in_scene

LINE = re.compile(r'[a-z_]+(\{([a-z]+="(?:[^"\\\n]|\\.)*",?)+\})? -?[0-9.e+-]+')


def test_a_halt_on_a_host_arrives_at_the_webhook(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        (scene.home / FILE).unlink()  # the account is gone: a fault that only a person repairs
        async with http_receiver() as server:
            (scene.home / "settings.toml").write_text(
                f'hyperliquid_url = "{scene.server.url}"\nnotify_webhook_url = "{server.url}/hook"\n'
            )
            with open_workspace(load_settings(scene.home)) as workspace:
                await host(workspace, HostSettings(idle_exit_s=0.2))
        messages = [json.loads(body) for _, _, body in server.requests]
        assert [message["event"] for message in messages] == ["halts"]
        assert messages[0]["deployment_id"] == scene.deployment.id
        assert "there is no account" in messages[0]["text"]

    run_in_scene(tmp_path, story)


class SingleRunHost:
    """A host with one deployment that is not driven."""

    def __init__(self, deployed: DeploymentRun) -> None:
        self.turned_s = 1e12
        self._runs = [deployed]

    def runs(self) -> list[DeploymentRun]:
        return self._runs


def deployment_with_tick(scene: GuardedScene) -> DeploymentRun:
    epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
    deployed = DeploymentRun(scene.workspace, scene.deployment, epoch)
    verdict = {"outcome": "refused", "code": "R5_SIZE", "detail": "x", "order_id": "", "duplicate": False}
    receipt = {"kind": "filled", "at": 1, "symbol": "ETH", "order_id": "o", "facts": {}}
    body: dict[str, Any] = {
        "flags": ["model_error"],
        "verdicts": [verdict, verdict],
        "proposals": [],
        "text": "",
        "receipts": [receipt],
        "equity": (),
        "after": {"equity_usd": "9990.5"},
    }
    deployed.board.add(seal(0, "tick", 60_000, "", body, {"cost_usd": "0.25"}))
    return deployed


def test_metrics_are_lines_that_prometheus_reads_with_the_figures_of_each_deployment(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        deployed = deployment_with_tick(scene)
        metrics = HostMetrics(SingleRunHost(deployed), scene.workspace)
        async with serving_metrics(metrics, ("127.0.0.1", 0)) as url, ClientSession() as client:
            async with client.get(f"{url}/metrics") as reply:
                text = await reply.text()
                assert (reply.status, reply.content_type) == (200, "text/plain")
            async with client.get(f"{url}/health") as reply:
                assert (reply.status, (await reply.json())["ok"]) == (200, True)
            async with client.get(f"{url}/metrics", headers={"Host": "evil.example"}) as reply:
                assert reply.status == 403
            async with client.post(f"{url}/metrics") as reply:
                assert reply.status == 405
            async with client.get(f"{url}/secrets") as reply:
                assert reply.status == 404
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert [line for line in lines if not LINE.fullmatch(line) and "le=" not in line] == []
        values = {line.split("{")[0]: line.rsplit(" ", 1)[1] for line in lines}
        assert values["pitboss_deployment_ticks_total"] == "1"
        assert values["pitboss_deployment_errors_total"] == "1"
        assert values["pitboss_deployment_fills_total"] == "1"
        assert values["pitboss_deployment_equity_usd"] == "9990.5"
        assert values["pitboss_deployment_cost_usd_total"] == "0.25"
        assert values["pitboss_deployment_open_refused"] == "0"
        assert "pitboss_deployment_heartbeat_age_seconds" in values
        assert 'code="R5_SIZE"} 2' in text
        assert 'state="running"} 1' in text
        assert 'state="halted"} 0' in text

    run_in_scene(tmp_path, story)


def test_a_host_whose_loop_hangs_is_not_healthy_and_gives_up_its_heartbeat(
    tmp_path: Path,
) -> None:
    async def story(scene: GuardedScene) -> None:
        live_host = LiveHost(scene.workspace, HostSettings())
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        live_host.begin(scene.deployment, epoch)
        assert live_host.leases() == {scene.deployment.run_id: epoch}
        assert live_host.metrics.health()["ok"]
        live_host.turned_s -= 11
        assert live_host.leases() == {}
        assert live_host.metrics.health()["problem"] == "the event loop hangs"
        task = live_host.hosted[scene.deployment.id].task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_scene(tmp_path, story)


def test_the_time_of_commands_is_measured(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        told: list[Any] = []
        live_host = LiveHost(scene.workspace, HostSettings(), HostListener(command=told.append))
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        live_host.begin(scene.deployment, epoch)
        sent = scene.workspace.deployments.send(scene.deployment.id, "pause", "", "kim")
        control = live_host.hosted[scene.deployment.id].run.control
        command = OpenCommand(sent.id, scene.deployment.id, sent.number, "pause", "", "kim")
        control.deliver(command)
        control.acknowledge(command)
        assert [each.id for each in told] == [sent.id]
        assert "pitboss_command_seconds_count 1" in live_host.metrics.text()
        task = live_host.hosted[scene.deployment.id].task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_scene(tmp_path, story)


def test_labels_cannot_break_the_format_and_bounds_are_cumulative() -> None:
    (line,) = write_metric("x", "gauge", "y", [({"name": 'a"\n\\b'}, 1.5)])[2:]
    assert line == 'x{name="a\\"\\n\\\\b"} 1.5'
    assert write_metric("x", "gauge", "y", []) == []
    histogram = LatencyHistogram((0.1, 1.0))
    for seconds in (0.05, 0.5, 5.0, -1.0):
        histogram.observe(seconds)
    lines = histogram.lines("h", "y")
    assert lines[2:5] == ['h_bucket{le="0.1"} 2', 'h_bucket{le="1"} 3', 'h_bucket{le="+Inf"} 4']
    assert lines[5:] == ["h_sum 5.55", "h_count 4"]


def test_metrics_on_a_port_that_is_taken_are_a_clear_error(tmp_path: Path) -> None:
    async def story(workspace: Workspace) -> None:
        metrics = LiveHost(workspace, HostSettings()).metrics
        async with serving_metrics(metrics, ("127.0.0.1", 0)) as url:
            port = int(url.rsplit(":", 1)[1])
            with pytest.raises(Exception, match="metrics cannot be served"):
                async with serving_metrics(metrics, ("127.0.0.1", port)):
                    pass

    with open_workspace(load_settings(tmp_path)) as workspace:
        asyncio.run(story(workspace))
