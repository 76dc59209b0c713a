"""A live agent on a real forum server: what it reads, that it acts once under any fault, and what it is shown."""

import asyncio
import json
from typing import Any, cast

import pytest
from live_agent import EVERY_MS, LiveAgent, client_of, fresh_state, killer
from sns.forum_server import RunningForum

from pitboss.core.errors import TransientError
from pitboss.store.database import Database
from pitboss.venues.community.agent_prompts import CommunityPrompts
from pitboss.venues.community.sns.client import SnsRefused, SnsUnavailable
from pitboss.venues.community.source_cache import SourceCache
from pitboss.venues.community.untrusted_json import cleaner
from simulated_kill import Killed

AT = 1_800_000_000_000 // EVERY_MS * EVERY_MS


def posts(forum_server: RunningForum, text: str) -> int:
    """How many threads and comments of the forum hold a text."""
    status, answer, _ = forum_server.send(
        "GET", f"/api/agents/context?agentId={forum_server.agent_id}&commentLimit=500", forum_server.runner
    )
    assert status == 200
    (community,) = answer["context"]["communities"]
    rows = [*community["threads"], *community["recentComments"]]
    return sum(text in (row.get("body") or "") for row in rows)


def actions_of(forum_server: RunningForum, text: str) -> list[dict[str, Any]]:
    slug = forum_server.seeded["community"]["slug"]
    return [
        {"action": "create_thread", "communitySlug": slug, "title": f"About {text}", "body": f"thread {text}"},
        {
            "action": "comment",
            "communitySlug": slug,
            "threadId": forum_server.thread("DISCUSSION"),
            "body": f"comment {text}",
        },
    ]


def test_a_heartbeat_reads_acts_and_leaves_results_for_the_next(forum_server: RunningForum, database: Database) -> None:
    async def story() -> None:
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server))
            slug = forum_server.seeded["community"]["slug"]
            source = {"action": "request_contract_source", "communitySlug": slug}
            source["contractId"] = forum_server.seeded["contracts"][0]["id"]
            comments = {
                "action": "request_thread_comments",
                "communitySlug": slug,
                "threadId": forum_server.thread("REPORT_TO_HUMAN"),
            }
            await agent.heartbeat(AT, *actions_of(forum_server, "first"), source, comments, {"action": "dance"})
            world = agent.state.world
            assert world.handle == "auditor1"
            assert world.community["slug"] == slug
            kinds = [item.content["type"] for item in world.inbox]
            expected = ["action_result"] * 2 + ["contract_source_feedback", "thread_comments_feedback", "action_result"]
            assert kinds == expected
            assert [item.content["result"]["ok"] for item in world.inbox] == [True, True, True, True, False]
            assert "contract Vault" in world.inbox[2].content["result"]["source"]
            assert (world.use.posts, len(world.own_posts)) == (2, 2)
            await agent.heartbeat(AT + EVERY_MS, source)
            (item,) = agent.state.world.inbox
            assert item.content["cached"] is True
            assert posts(forum_server, "first") == 2

    asyncio.run(story())


@pytest.mark.parametrize("stride", [2, pytest.param(1, marks=pytest.mark.proof)])
def test_killed_at_any_step_and_started_again_it_posts_each_action_once(
    forum_server: RunningForum, database: Database, stride: int
) -> None:
    """The same two actions are decided again after the restart, as a model would that sees nothing of them."""

    async def count_steps() -> int:
        breaks, steps = killer(0)
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server), breaks)
            await agent.heartbeat(AT, *actions_of(forum_server, "counted"))
        return len(steps)

    async def story(step: int) -> None:
        text, scope = f"step {step} of every {stride}.", f"community:{step}"
        actions = actions_of(forum_server, text)
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server), killer(step)[0], scope=scope)
            with pytest.raises(Killed):
                await agent.heartbeat(AT, *actions)
            restarted = LiveAgent(client, database, agent.state, scope=scope).begin()
            await restarted.settle(AT)
            await restarted.heartbeat(AT + EVERY_MS, *actions)
            await restarted.heartbeat(AT + 2 * EVERY_MS)
            # The outbox still holds the actions; the world that includes them does not change again.
            again = LiveAgent(client, database, restarted.state, scope=scope)
            again.source.begin()
            unchanged = await again.source.update(again.state.world, 0)
            assert (unchanged.world.use, unchanged.receipts) == (restarted.state.world.use, ())
        world = restarted.state.world
        assert posts(forum_server, text) == 2, step
        assert (world.use.posts, len(world.own_posts)) == (2, 2)

    steps = asyncio.run(count_steps())
    assert steps == 13
    for step in range(1, steps + 1, stride):
        asyncio.run(story(step))


def test_an_answer_that_is_lost_is_asked_for_and_nothing_else_is_done_meanwhile(
    forum_server: RunningForum, database: Database
) -> None:
    lost = {"create_thread": True}

    def breaks(step: str) -> None:
        if step == "after create_thread" and lost["create_thread"]:
            raise SnsUnavailable("the answer is lost")

    async def story() -> None:
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server), breaks)
            record = await agent.heartbeat(AT, *actions_of(forum_server, "lost"))
            verdicts = record.body()["verdicts"]
            assert [verdict["outcome"] for verdict in verdicts] == ["refused", "refused"]
            assert "not known yet" in verdicts[0]["detail"]
            assert "has no result yet" in verdicts[1]["detail"]
            assert agent.source.pending(agent.state.world)
            assert agent.state.world.use.posts == 0
            lost["create_thread"] = False
            await agent.settle(AT)
            record = await agent.heartbeat(AT + EVERY_MS, *actions_of(forum_server, "lost"))
            outcomes = [(verdict["outcome"], verdict["code"]) for verdict in record.body()["verdicts"]]
            assert outcomes == [("refused", "C6_DUPLICATE"), ("allowed", None)]
            assert posts(forum_server, "lost") == 2

    asyncio.run(story())


def test_what_the_forum_refuses_is_told_and_is_not_open(forum_server: RunningForum, database: Database) -> None:
    async def story() -> None:
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server))
            await agent.heartbeat(AT)
            community = dict(agent.state.world.community)
            community["threads"] = [
                *community["threads"],
                {"id": "gone", "type": "DISCUSSION", "title": "", "body": ""},
            ]
            slug = community["slug"]
            order = {"action": "comment", "communitySlug": slug, "threadId": "gone", "body": "to nobody"}
            agent.source._read_slot = 10**12
            agent.state = agent.state.after(world=agent.state.world.__class__(**{
                **{name: getattr(agent.state.world, name) for name in agent.state.world.__slots__}, "community": community,
            }))  # fmt: skip
            record = await agent.heartbeat(AT + EVERY_MS, order)
            (verdict,) = record.body()["verdicts"]
            assert (verdict["outcome"], verdict["code"]) == ("refused", "C18_VENUE")
            assert not agent.source.pending(agent.state.world)
            assert agent.state.world.inbox[-1].content["result"]["ok"] is False

    asyncio.run(story())


def test_a_refused_credential_ends_the_run_and_an_unreachable_server_only_the_heartbeat(
    forum_server: RunningForum, database: Database
) -> None:
    async def story() -> None:
        async with client_of(forum_server) as client:
            agent = LiveAgent(client, database, fresh_state(forum_server))
            client._token = "rnr_" + "0" * 64
            with pytest.raises(SnsRefused) as refused:
                await agent.heartbeat(AT)
            assert refused.value.status == 401
            client._origin = "http://127.0.0.1:9"
            with pytest.raises(TransientError):
                await agent.heartbeat(AT)

    asyncio.run(story())


class OtherForum:
    """Answers with whatever documents a test gives it."""

    def __init__(self, general: Any, context: Any) -> None:
        self._general, self._context = general, context

    async def general(self) -> Any:
        return self._general

    async def context(self, comment_limit: int | None = None) -> Any:
        del comment_limit
        return self._context


ODD: list[Any] = [None, [], 5, "x", {}, {"id": 2**200}, {"id": "\ud800"}, {"id": ["c1"]}, [[[[]]]], 1e308]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_documents_of_a_hostile_server_never_break_a_heartbeat(
    odd: Any, database: Database, forum_server: RunningForum
) -> None:
    slug = {"action": "comment", "communitySlug": "x", "threadId": "t", "body": "b"}
    documents = [
        ({"agent": odd, "community": odd}, {"communities": odd, "constraints": odd}),
        ({"agent": {"handle": odd}, "community": {"id": "c1"}}, {"communities": [odd, {"id": "c1", "threads": odd}]}),
        (
            {"community": {"id": "c1"}},
            {
                "communities": [
                    {"id": "c1", "slug": odd, "threads": [odd], "contracts": [odd, {"id": odd, "abi": odd}]}
                ],
                "constraints": {"textLimits": {"thread": odd, "comment": {"body": odd}}},
            },
        ),
    ]

    async def story() -> None:
        for general, context in documents:
            other_forum: Any = OtherForum(general, context)
            agent = LiveAgent(other_forum, database, fresh_state(forum_server))
            record = await agent.heartbeat(AT, slug)
            assert all(verdict["outcome"] == "refused" for verdict in record.body()["verdicts"])

    asyncio.run(story())


def test_of_several_communities_only_the_assigned_one_is_kept(forum_server: RunningForum, database: Database) -> None:
    rows = [{"id": name, "slug": name, "threads": [], "contracts": []} for name in ("c1", "c2", "c3")]
    general = {"agent": {"handle": "a"}, "community": {"id": "c2", "slug": "c2", "name": "", "status": "ACTIVE"}}

    async def story() -> None:
        other_forum: Any = OtherForum(general, {"communities": rows})
        agent = LiveAgent(other_forum, database, fresh_state(forum_server))
        await agent.heartbeat(AT)
        assert agent.state.world.community["slug"] == "c2"
        other_forum = OtherForum({**general, "community": None}, {"communities": rows})
        agent = LiveAgent(other_forum, database, fresh_state(forum_server))
        record = await agent.heartbeat(AT)
        assert agent.state.world.community is None
        assert record.body()["flags"] == ["unassigned"]

    asyncio.run(story())


@pytest.mark.parametrize(("size", "shown"), [(10, 201), (12_000, 14)])
def test_of_a_large_forum_the_newest_threads_are_kept_and_the_system_thread(
    forum_server: RunningForum, database: Database, size: int, shown: int
) -> None:
    threads: list[Any] = [
        {"id": f"t{number}", "type": "DISCUSSION", "title": "", "body": "x" * size} for number in range(1_000)
    ]
    row = {"id": "c1", "slug": "c1", "contracts": [], "threads": [*threads, {"id": "s", "type": "SYSTEM"}]}
    row["recentComments"] = [{"id": f"m{number}", "body": ""} for number in range(100)]
    general = {"agent": {"handle": "a"}, "community": {"id": "c1"}}

    async def story() -> None:
        agent = LiveAgent(cast("Any", OtherForum(general, {"communities": [row]})), database, fresh_state(forum_server))
        await agent.heartbeat(AT)
        community = agent.state.world.community
        ids = [thread["id"] for thread in community["threads"]]
        assert ids == [*(f"t{number}" for number in range(shown - 1)), "s"]
        assert community["threadsLeftOut"] == 1_001 - shown
        assert len(community["recentComments"]) == 20

    asyncio.run(story())


def test_a_long_source_is_cut_and_many_of_them_share_the_room(forum_server: RunningForum, database: Database) -> None:
    rows = [{"id": f"k{number}", "address": "0x" + f"{number:040x}", "abi": []} for number in range(5)]
    community = {"id": "c1", "slug": "c1", "threads": [], "contracts": rows}
    other_forum = OtherForum({"community": {"id": "c1"}}, {"communities": [community]})
    source = "contract K { function f() {} } // " + "<" * 900_000

    async def contract_source(contract_id: str) -> Any:
        return {"source": source if contract_id == "k0" else {"K.sol": source, "files": [source[:50_000]] * 9}}

    async def story() -> None:
        other_forum.contract_source = contract_source  # pyright: ignore[reportAttributeAccessIssue]
        agent = LiveAgent(cast("Any", other_forum), database, fresh_state(forum_server))
        wish = {"action": "request_contract_source", "communitySlug": "c1"}
        await agent.heartbeat(AT, *[{**wish, "contractId": row["id"]} for row in rows])
        observation = agent.ports.observe(agent.state, AT)
        prompt = CommunityPrompts(agent.skill).user(observation)
        assert len(prompt) < 125_000
        assert prompt.count("contract K {") == 5 + 4 * 9
        assert "more characters]" in prompt
        assert sum(len(json.dumps(item.content)) for item in agent.state.world.inbox) < 600_000

    asyncio.run(story())


def test_a_source_is_read_again_when_its_contract_changes() -> None:
    cache = SourceCache(2)
    row = {"id": "k1", "address": "0x1", "updatedAt": "2025-01-01T00:00:00.000Z"}
    assert cache.get(row) is None
    cache.put(row, "first")
    assert cache.get(dict(row)) == "first"
    assert cache.get({**row, "updatedAt": "2025-01-02T00:00:00.000Z"}) is None
    assert cache.get(row) is None
    for number in range(3):
        cache.put({"id": f"k{number}"}, number)
    assert [cache.get({"id": f"k{number}"}) for number in range(3)] == [None, 1, 2]


def test_documents_are_cleaned_of_what_cannot_be_seen_then_of_secrets() -> None:
    clean = cleaner(lambda text: text.replace("SECRET", "[hidden]"))
    value = {"a\u200b": ["SEC\u200bRET", 2**60, 1.5, True, None], "deep": json.loads("[" * 40 + "]" * 40)}
    cleaned = clean(value)
    assert cleaned["a"] == ["[hidden]", str(2**60), 1.5, True, None]
    assert json.dumps(cleaned["deep"]).count("[") < 40
