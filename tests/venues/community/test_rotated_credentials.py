"""A credential that ends between a lost answer and the next attempt: what was made before is told after the next start."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import EVERY_MS, LiveAgent, client_of, database_in, fresh_state
from sns.forum_server import RunningForum, serving

from pitboss.store.database import Database
from pitboss.venues.community.sns.client import SnsRefused, SnsUnavailable

AT = 1_800_000_000_000 // EVERY_MS * EVERY_MS


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningForum]:
    with serving(tmp_path_factory.mktemp("forum")) as server:
        yield server


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with database_in(tmp_path) as database:
        yield database


def action(served: RunningForum, title: str) -> dict[str, str]:
    slug = served.seeded["community"]["slug"]
    return {"action": "create_thread", "communitySlug": slug, "title": title, "body": title}


def test_a_write_that_was_made_stays_open_while_the_credential_is_refused(
    served: RunningForum, database: Database
) -> None:
    steps: list[str] = []

    def breaks(step: str) -> None:
        if step.endswith("create_thread"):
            steps.append(step)
            if steps == ["before create_thread", "after create_thread"]:
                raise SnsUnavailable("the answer is lost")
            if len(steps) > 2:
                raise SnsRefused(401, "Invalid or revoked runner credential")

    async def story() -> None:
        async with client_of(served) as client:
            agent = LiveAgent(client, database, fresh_state(served), breaks)
            record = await agent.heartbeat(AT, action(served, "rotated"))
            (verdict,) = record.body()["verdicts"]
            assert "not known yet" in verdict["detail"]
            following = LiveAgent(client, database, agent.state).begin()
            await following.settle(AT + EVERY_MS)
            assert following.state.world.use.posts == 1

    asyncio.run(story())


def test_a_first_attempt_that_is_refused_is_no_open_action(served: RunningForum, database: Database) -> None:
    def breaks(step: str) -> None:
        if step == "before create_thread":
            raise SnsRefused(401, "Invalid or revoked runner credential")

    async def story() -> None:
        async with client_of(served) as client:
            agent = LiveAgent(client, database, fresh_state(served), breaks)
            record = await agent.heartbeat(AT, action(served, "refused"))
            assert "revoked" in record.body()["verdicts"][0]["detail"]
            assert not agent.source.pending(agent.state.world)

    asyncio.run(story())
