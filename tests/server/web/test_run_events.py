"""The events of runs: one reader for all subscribers, bounded queues, and an end without subscribers."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs import speculation_progress
from pitboss.server.api import run_events
from pitboss.server.api.run_events import EventListener, RunFeeds, encoded
from pitboss.testing import provider
from provider_thread import fake_provider
from server.web.queue_work import run_queued
from server.web.test_api_runs import DAY


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")
    monkeypatch.setattr(run_events, "POLL_S", 0.01)


async def collect_events(
    stream: AsyncIterator[bytes], has_begun: asyncio.Event | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """The kind and data of every event until the stream ends. `has_begun` is set with the first of them."""
    events: list[tuple[str, dict[str, Any]]] = []
    async for chunk in stream:
        for block in chunk.decode().split("\n\n"):
            lines = dict(line.partition(": ")[::2] for line in block.splitlines())
            if "event" in lines:
                events.append((lines["event"], json.loads(lines["data"])))
        if events and has_begun is not None:
            has_begun.set()
    return events


def test_all_listeners_share_one_reader_and_get_every_tick_once(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    feeds = RunFeeds()

    async def listen() -> list[list[tuple[str, dict[str, Any]]]]:
        streams = [feeds.stream(workspace, "local", run_id) for _ in range(5)]
        begun = [asyncio.Event() for _ in streams]
        tasks = [asyncio.create_task(collect_events(*pair)) for pair in zip(streams, begun, strict=True)]
        await asyncio.gather(*(event.wait() for event in begun))
        await asyncio.to_thread(run_queued, workspace)
        return await asyncio.gather(*tasks)

    everything = asyncio.run(listen())
    for events in everything:
        numbers = [data["seq"] for kind, data in events if kind == "tick"]
        assert numbers == sorted(set(numbers))
        assert next(data["status"] for kind, data in events if kind == "progress") == "queued"
        assert events[-1][0] == "done"
        assert events[-1][1]["status"] == "complete"
    assert feeds.is_empty


def test_progress_tells_how_many_decisions_asked_ahead_were_used(
    client: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speculation_progress, "EVERY_S", 0.01)
    with fake_provider(provider.decide, latency_s=0.01) as server:
        for name, value in {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "LLM_MODEL": "fake"}.items():
            monkeypatch.setenv(name, value)
        body = {**DAY, "model": "llm/fake", "price_in": 0.1, "price_out": 0.1, "speculate": "4"}
        queued = client.post("/api/runs", json=body)
        assert queued.status_code == 201, queued.text
        run_id = queued.json()["run_id"]
        assert client.get(f"/api/runs/{run_id}").json()["speculation"] is None

        async def listen() -> list[tuple[str, dict[str, Any]]]:
            begun = asyncio.Event()
            task = asyncio.create_task(collect_events(RunFeeds().stream(workspace, "local", run_id), begun))
            await begun.wait()
            await asyncio.to_thread(run_queued, workspace)
            return await task

        events = asyncio.run(listen())
    *_, (_, done) = events
    assert done["status"] == "complete"
    counts = done["speculation"]
    assert 0 < counts["used"] <= counts["asked"]
    assert client.get(f"/api/runs/{run_id}").json()["speculation"] == counts
    while_running = [data["speculation"] for kind, data in events if kind == "progress" and data["status"] == "running"]
    assert any(while_running), "it is told before the end"
    assert client.delete(f"/api/runs/{run_id}").status_code == 204
    with workspace.database.read() as connection:
        left = connection.exec_driver_sql(f"SELECT key FROM facts WHERE key LIKE '%{run_id}%'").all()
    assert left == []


def test_the_reader_ends_with_the_last_listener(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    feeds = RunFeeds()

    async def leave_early() -> None:
        stream = feeds.stream(workspace, "local", run_id)
        await anext(stream)
        assert not feeds.is_empty
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    asyncio.run(leave_early())
    assert feeds.is_empty


def test_a_listener_that_does_not_keep_up_is_dropped() -> None:
    listener = EventListener()
    for number in range(run_events.MOST_QUEUED + 5):
        listener.put((encoded("tick", {"seq": number}),))
    assert listener.is_dropped
    assert listener.queue.get_nowait() is None
    assert listener.queue.empty()


def test_the_stream_of_a_run_that_is_deleted_ends(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    feeds = RunFeeds()

    async def listen() -> list[tuple[str, dict[str, Any]]]:
        stream = feeds.stream(workspace, "local", run_id)
        await anext(stream)
        await asyncio.to_thread(workspace.runs.delete, run_id)
        return await collect_events(stream)

    assert "done" not in [kind for kind, _ in asyncio.run(listen())]
