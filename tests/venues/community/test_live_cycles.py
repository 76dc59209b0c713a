"""Heartbeats of `community run` with a model server that answers the same prompt differently: each reply counts once, as it is."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sns.forum_server import serving

from pitboss.bootstrap.live_process import SignalStop
from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.live.board import Board, Entry
from pitboss.runs import live_session
from pitboss.runs.live_session import Listener
from pitboss.testing.provider import FakeProvider, say
from pitboss.venues.community.live import CommunityDeployment, run_live
from pitboss.venues.community.run_command import cycle_document
from pitboss.venues.community.skill import CommunitySkill

SKILL = CommunitySkill.model_validate(
    {"pitboss": 1, "name": "tester", "venue": "community", "model": "llm/scripted", "max_steps": 1}
)


class PauseClock:
    """A clock that only pauses move on, and at once: no heartbeat is late, however slow this machine is."""

    def __init__(self) -> None:
        self._at = SystemClock().now()

    def now(self) -> int:
        return self._at

    async def pause(self, wait_ms: int) -> None:
        self._at += wait_ms
        await asyncio.sleep(0)


def test_prose_does_nothing_json_without_an_action_fails_and_a_list_in_prose_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles: list[dict[str, Any]] = []
    clock = PauseClock()
    monkeypatch.setattr(live_session, "SystemClock", lambda: clock)
    monkeypatch.setattr(SignalStop, "pause", lambda stop, wait_ms: clock.pause(wait_ms))

    def heard(entry: Entry, board: Board) -> None:
        del board
        if entry["kind"] == "tick":
            cycles.append(cycle_document(entry))

    async def story() -> int:
        with serving(tmp_path / "forum") as forum_server:
            comment = (
                f'{{"action": "comment", "communitySlug": "{forum_server.seeded["community"]["slug"]}", '
                f'"threadId": "{forum_server.thread("DISCUSSION")}", "body": "withdraw sends before it reduces the balance"}}'
            )
            texts = ["All is quiet.", '{"foo": 1}', f"As in [1]: {comment}", "[]"]
            async with FakeProvider([say(text) for text in texts]) as provider:
                monkeypatch.setenv("LLM_BASE_URL", provider.url)
                monkeypatch.setenv("LLM_API_KEY", "key-of-no-provider")
                deployment = CommunityDeployment(
                    skill=SKILL, model=SKILL.model, every_ms=300_000, server_url=forum_server.url, agent_id=forum_server.agent_id,
                    token=forum_server.token, cycles=len(texts), price_in=Decimal(0), price_out=Decimal(0),
                )  # fmt: skip
                with open_workspace(load_settings(tmp_path / "home")) as workspace:
                    await run_live(workspace, deployment, Listener(entry=heard))
                return provider.calls

    assert asyncio.run(story()) == 4  # the prompts of the first two heartbeats are the same
    assert [cycle["failed"] for cycle in cycles] == [False, True, False, False]
    shown = [[(action["type"], action["verdict"]) for action in cycle["actions"]] for cycle in cycles]
    assert shown == [[], [], [("comment", "allowed")], []]
    assert cycles[2]["actions"][0]["result"]["result"]["ok"] is True
    assert {"cycle", "actions", "failed", "cost_usd"} <= set(cycles[0])
