"""25 secrets in 8 encodings in everything a live agent reads and writes: none is in a prompt, a record,
an issue, the database or an output."""

import asyncio
import io
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from github_server import FakeGithub, github
from sns.forum_server import RunningForum, serving
from sqlalchemy import update

from canary_secrets import CANARIES, all_encodings
from pitboss.bootstrap.logs import stop_logs
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.bootstrap.redact import REDACTOR
from pitboss.cli.main import main
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.testing.provider import FakeProvider, Play, body, call, error, say
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.tables import communities
from secret_search import leaks, leaks_below

SKILL = """
pitboss: 1
name: auditor
venue: community
model: llm/test
every: 60s
risk: {chain: Sepolia, posts_per_day: 200}
"""
FEW = dict(list(CANARIES.items())[3:5])
MODEL_KEY = "llm-Canary-0123456789"
GITHUB_TOKEN = "ghp-Canary-9876543210"


def scenario(texts: list[str]) -> dict[str, Any]:
    """A forum with every secret in the source, the description, threads and comments."""
    posts = [{"id": "first", "author": "mallory", "title": "Keys", "body": texts[0]}]
    posts += [
        {"id": f"c{number}", "at": f"{number}s", "author": "mallory", "thread": "first", "body": text}
        for number, text in enumerate(texts, 1)
    ]
    abi = [{"type": "function", "name": "poke", "stateMutability": "view", "inputs": [], "outputs": []}]
    contract = {"id": "k", "name": "K", "address": "0x" + "5f" * 20, "chain": "Sepolia", "abi": abi}
    return {
        "name": "keys",
        "community": "Keys",
        "description": texts[0],
        "agent": "auditor",
        "contracts": [{**contract, "source": "\n".join(texts)}],
        "posts": posts,
    }


@contextmanager
def forum_with_secrets(home: Path, texts: list[str]) -> Iterator[RunningForum]:
    server = open_server(WorkspaceOptions(home, None), SnsOptions(), SystemClock(), random_hex)
    with server.database:
        seeded = seed_forum(server, random_hex, read_scenario(scenario(texts)))
        with server.database.write() as connection:
            connection.execute(update(communities).values(github_repository_url="https://github.com/owner/bank"))
    with serving(home, seeded=seeded) as forum_server:
        yield forum_server


@contextmanager
def services(plays: list[Play]) -> Iterator[tuple[FakeProvider, FakeGithub]]:
    """A model and GitHub, in a thread of their own."""
    loop, ready, over, fake = asyncio.new_event_loop(), threading.Event(), asyncio.Event(), FakeProvider(script=plays)
    servers: list[FakeGithub] = []

    async def serve() -> None:
        async with fake, github(GITHUB_TOKEN) as server:
            servers.append(server)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield fake, servers[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def scripted_plays(forum_server: RunningForum, texts: list[str]) -> list[Play]:
    """The model's reply of each heartbeat, with every secret in every place."""
    slug, thread = forum_server.seeded["community"]["slug"], forum_server.thread("DISCUSSION")

    def act(*actions: Mapping[str, Any], reason: str) -> Play:
        proposed = [{"communitySlug": slug, **action} for action in actions]
        return call("submit_actions", {"actions": proposed, "reason": reason})

    everything = "\n".join(texts)
    reads = (
        {"action": "request_contract_source", "contractId": forum_server.seeded["contracts"][0]["id"]},
        {"action": "request_thread_comments", "threadId": thread, "commentLimit": 50},
        {"action": "tx", "threadId": thread, "contractAddress": texts[0], "functionName": texts[1], "args": texts[:20]},
        {"action": everything, "title": texts[0]},
    )
    comments = [{"action": "comment", "threadId": thread, "body": f"mine: {text}"} for text in texts]
    report = {"action": "create_thread", "title": "mine", "body": everything[:11_000], "threadType": "REPORT_TO_HUMAN"}
    groups = [act(*comments[at : at + 12], reason="comments") for at in range(0, len(comments), 12)]
    failures = [say(everything), error(400, everything), body({"unexpected": everything})]
    return [act(*reads, reason=everything), *groups, act(report, reason="a report"), *failures]


def run(home: Path, *words: object, code: int | None = 0) -> str:
    """A command in this process: all that it prints."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        ended = main([*map(str, words), "--home", str(home)])
        stop_logs()
    assert code is None or ended == code, out.getvalue()
    return out.getvalue()


@pytest.mark.parametrize("secrets", [FEW, pytest.param(CANARIES, marks=pytest.mark.proof)], ids=["few", "all"])
def test_none_is_in_prompts_records_logs_outputs_or_what_the_agent_posts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secrets: dict[str, str]
) -> None:
    home, skill = tmp_path / "runner", tmp_path / "skill.yaml"
    skill.write_text(SKILL)
    REDACTOR.forget()
    for number, secret in enumerate(secrets.values()):
        monkeypatch.setenv(f"CANARY_{number}_API_KEY", secret)
    monkeypatch.setenv("PITBOSS_LOG_LEVEL", "debug")
    monkeypatch.setenv("PITBOSS_LOG_FILE", str(tmp_path / "runner.log"))
    monkeypatch.setenv("PITBOSS_MODEL_ATTEMPTS", "1")
    monkeypatch.setenv("LLM_API_KEY", MODEL_KEY)
    texts = [f"{name}: {all_encodings(secret)}" for name, secret in secrets.items()]
    with (
        forum_with_secrets(tmp_path / "forum", texts) as forum_server,
        services(script := scripted_plays(forum_server, texts)) as (fake, hub),
    ):
        monkeypatch.setenv("RUNNER_TOKEN", forum_server.token)
        monkeypatch.setenv("LLM_BASE_URL", fake.url)
        monkeypatch.setenv("GITHUB_TOKEN", GITHUB_TOKEN)
        monkeypatch.setenv("PITBOSS_GITHUB_API_URL", hub.url)
        words = ("--server", forum_server.url, "--agent-id", forum_server.agent_id, "--yes", "--every", "1s", "--json")
        outputs: list[str] = []
        while (fake.calls <= len(script) or not hub.issues) and len(outputs) < 60:
            outputs.append(run(home, "community", "run", skill, *words, "--cycles", 4))
        prompts = json.dumps(fake.questions)
        path = f"/api/agents/context?agentId={forum_server.agent_id}&commentLimit=200"
        _, answer, _ = forum_server.send("GET", path, forum_server.runner)
    run_id = json.loads(run(home, "runs", "list", "--json"))[0]["run_id"]
    shown = ("--what snapshots", "--what decisions")
    commands = [f"runs export {run_id} {what}" for what in shown] + [
        f"runs show {run_id} --json",
        "community log --json",
    ]
    outputs += [run(home, *line.split()) for line in commands]
    own = [row for row in strings(answer) if row.startswith("mine")]
    assert len(own) >= len(secrets)
    assert fake.calls > len(script)
    REDACTOR.forget()
    places = {"a prompt": prompts, "an output": "\n".join(outputs), "a post": "\n".join(own)}
    assert [issue["title"] for issue in hub.issues["owner/bank"]] == ["[Report] mine"]
    places["an issue"] = str(hub.requests)
    places["the log"] = (tmp_path / "runner.log").read_text()
    secrets = {**secrets, "runner token": forum_server.token, "model key": MODEL_KEY, "GitHub token": GITHUB_TOKEN}
    leaked = [line for place, text in places.items() for line in leaks(secrets, text.encode(), place)]
    assert leaked + leaks_below(secrets, home) == []


def strings(value: Any) -> Iterator[str]:
    """Every text of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)
