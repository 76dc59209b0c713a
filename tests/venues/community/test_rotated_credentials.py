"""A credential that is revoked between a lost answer and the next attempt: the write is reported after the next start."""

import asyncio

from live_agent import EVERY_MS, LiveAgent, client_of, fresh_state
from sns.forum_server import RunningForum

from pitboss.store.database import Database
from pitboss.venues.community.sns.client import SnsRefused, SnsUnavailable

AT = 1_800_000_000_000 // EVERY_MS * EVERY_MS


def thread_action(forum_server: RunningForum, title: str) -> dict[str, str]:
    slug = forum_server.seeded["community"]["slug"]
    return {"action": "create_thread", "communitySlug": slug, "title": title, "body": title}


def test_a_write_that_was_made_stays_open_while_the_credential_is_refused(
    forum_server: RunningForum, database: Database
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
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server), breaks)
            record = await agent.heartbeat(AT, thread_action(forum_server, "rotated"))
            (verdict,) = record.body()["verdicts"]
            assert "not known yet" in verdict["detail"]
            following = LiveAgent(client, database, agent.state).begin()
            await following.settle(AT + EVERY_MS)
            assert following.state.world.use.posts == 1

    asyncio.run(story())


def test_a_first_attempt_that_is_refused_is_no_open_action(forum_server: RunningForum, database: Database) -> None:
    def breaks(step: str) -> None:
        if step == "before create_thread":
            raise SnsRefused(401, "Invalid or revoked runner credential")

    async def story() -> None:
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server), breaks)
            record = await agent.heartbeat(AT, thread_action(forum_server, "refused"))
            assert "revoked" in record.body()["verdicts"][0]["detail"]
            assert not agent.source.pending(agent.state.world)

    asyncio.run(story())
