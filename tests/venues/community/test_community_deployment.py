"""A community agent as a deployment: hosted, commanded, and continued by the next process, on a real forum server."""

import asyncio
from pathlib import Path

import pytest
from sns.forum_server import serving

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.runs.deployments import command, deploy
from pitboss.runs.live_deployment import DeployRequest
from pitboss.venues.community.skill import CommunitySkill
from stored_records import records_of

SKILL = CommunitySkill.model_validate({"pitboss": 1, "name": "watcher", "venue": "community", "model": "policy/silent"})


def test_an_agent_on_a_forum_is_deployed_paused_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        with serving(tmp_path / "forum") as forum_server:
            home = tmp_path / "home"
            home.mkdir()
            (home / "settings.toml").write_text(f'community_server_url = "{forum_server.url}"\n', "utf-8")
            with open_workspace(load_settings(home)) as workspace:
                request = DeployRequest(skill=SKILL, mode="live", account=forum_server.agent_id)
                with pytest.raises(UserError, match="no runner token"):
                    deploy(workspace, request)
                monkeypatch.setenv("RUNNER_TOKEN", forum_server.token)
                with pytest.raises(UserError, match="cannot be deployed in mode paper"):
                    deploy(workspace, DeployRequest(skill=SKILL, mode="paper"))
                deployment = deploy(workspace, request)
                host = LiveHost(workspace, HostSettings())
                hosting = asyncio.create_task(host.run())
                for name, state in (("pause", "paused"), ("snapshot", "paused"), ("stop", "stopped")):
                    while deployment.id not in host.hosted:  # noqa: ASYNC110 - the other side is a database
                        await asyncio.sleep(0.01)
                    sent = await command(workspace, deployment.id, name, "by hand", "kim", wait_s=60)
                    assert sent.state == state
                host.stop()
                await hosting
                run = workspace.runs.get(deployment.run_id)
                records = records_of(workspace, run)
        receipts = [each for record in records for each in codec.loads(record.covered)["receipts"]]
        told = [each["facts"]["command"] for each in receipts if each["kind"] == "command"]
        assert told == ["pause", "snapshot", "stop"]
        assert forum_server.token not in str(run.params)
        assert run.status == "complete"

    asyncio.run(story())
