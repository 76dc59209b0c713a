"""A workspace in which everything that people, models, news, forums and servers can write is hostile.

Strings go into every text that a page shows, many of them at once: decisions and prompts, news and tool results, names of skills,
models, studies, users and tokens, the forum, approvals, the logs, a catalogue of MCP servers, errors. Names that the app would refuse
are stored past its checks: what was stored once is shown.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forked_process import ForkedProcess
from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.jobs.study_plans import sweep_plan
from pitboss.runs.skill_reference import example_skills
from pitboss.runs.stored import journal_of, request_of
from pitboss.sim.study.axis import parse_axis
from pitboss.store import sealed_rows
from pitboss.store.audit_log import AuditLog
from pitboss.store.import_run import insert_run
from pitboss.store.passwords import hash_password
from pitboss.store.schema import users
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.testing import provider
from pitboss.testing.provider import Play
from pitboss.venues.community import events
from pitboss.venues.community.communication_log import CommunicationLog, log_folder
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.forum_store import ForumStore
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions
from provider_thread import fake_provider
from server.web.test_panel_pages import pay
from stored_records import records_of

FROM_AT = parse_instant("2025-01-20")
SERVER = Path(__file__).parents[1] / "bootstrap" / "minimal_mcp_server.py"
CATALOG, SERVERS = "catalogue.toml", 5
LISTED = 40
"""How many skills, studies, tokens, users and costs there are; the strings go round."""


class HostileTexts:
    """An endless cycle of hostile strings, cut to the length of a field."""

    def __init__(self, strings: Sequence[str]) -> None:
        self.strings = strings
        self._next = cycle(strings)

    def take(self, longest: int = 10_000) -> str:
        return next(self._next)[:longest]

    def printable(self, longest: int = 10_000) -> str:
        return "".join(character if character.isprintable() else " " for character in self.take(longest)).strip() or "x"


def write_hostile(home: Path, strings: Sequence[str]) -> dict[str, str]:
    """Fill an empty folder; the ids of what is in it by names. To be called where no event loop runs."""
    texts = HostileTexts(strings)
    write_demo(Lake(home / "lake"))
    _news(Lake(home / "lake"), texts)
    _catalog(home, texts)
    decided, read = _decided_run(home, strings), _reading_run(home, texts)
    ids = {"decided": decided, "read": read, "forum_run": _community_run(home, texts), "slug": _forum(home, texts)}
    with open_workspace(load_settings(home)) as workspace:
        ids |= _stored(workspace, decided, texts)
    _log(home, texts)
    return ids


def _news(lake: Lake, texts: HostileTexts) -> None:
    rows = [(FROM_AT + n * HOUR_MS // 4, texts.printable(60), texts.printable(), 0.1, "BTC", False) for n in range(60)]
    names = ("published_at", "source", "text", "sentiment", "symbols", "date_only")
    frame = pl.DataFrame(rows, schema=names, orient="row").cast({"published_at": pl.Datetime("ms", "UTC")})
    lake.put("news", "demo", None, None, frame)


def _skill(name: str, texts: Sequence[str], model: str, more: str = "") -> str:
    thesis = "\n".join(f"    {line}" for text in texts for line in text.splitlines() if line.isprintable())
    return (
        f"pitboss: 1\nname: {name}\nvenue: perp\nmodel: {model}\nschedule: {{every: 1h}}\nstrategy:\n  mode: thesis\n"
        f"  avoid: {json.dumps(texts[0])}\n  thesis: |\n{thesis}\n{more}"
        "context: {symbols: [BTC], bars_interval: 1h, bars_lookback: 40, news_lookback_hours: 12, news_top_k: 20}\n"
        "risk: {max_total_exposure_pct: 3}\n"
    )


def _backtest(home: Path, skill: Path, ticks: int, *options: object, env: Mapping[str, str] | None = None) -> str:
    span = ("--from", iso(FROM_AT), "--to", iso(FROM_AT + ticks * HOUR_MS))
    words = ("backtest", skill, *span, "--home", home, "--json", *options)
    run = ForkedProcess("-m", "pitboss", *words, env={**os.environ, **(env or {})})
    out, errors = run.communicate()
    assert run.returncode == 0, errors
    return json.loads(out)["run_id"]


def _decided_run(home: Path, strings: Sequence[str]) -> str:
    """A decision with each string as its reason, refused ones among them, and orders for symbols that are hostile themselves."""
    (home / "hostile.yaml").write_text(_skill("hostile", strings[:150], "policy/hold"), "utf-8")
    lines = [
        {
            "tick_at": iso(FROM_AT + number * HOUR_MS),
            "proposal": {
                "action": "open_long",
                "symbol": "BTC" if number % 3 else text,
                "size_usd": 100 if number % 2 else 1_000_000,
                "reason": text,
            },
        }
        for number, text in enumerate(strings)
    ]
    (home / "decisions.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    more = ("--decisions", home / "decisions.jsonl", "--data-venue", "demo")
    return _backtest(home, home / "hostile.yaml", len(strings), *more)


def _reading_run(home: Path, texts: HostileTexts) -> str:
    """A run whose prompts and tool results have hostile news, and whose model replies with hostile texts."""

    def play(question: Mapping[str, Any]) -> Play:
        if not any(message["role"] == "tool" for message in question["messages"]):
            return provider.calls(
                ("fetch_news_sentiment", {"hours": 100, "limit": 50}), (texts.take(60), {texts.take(60): texts.take()})
            )
        answer = {"action": "no_op", "reason": texts.take()}
        return provider.body(provider.message(question, texts.take(), [("propose_order", answer)]))

    more = "tools: {built_in: [fetch_news_sentiment]}\nmax_steps: 3\n"
    (home / "reads.yaml").write_text(_skill("reads", texts.strings[:20], "llm/fake", more), "utf-8")
    prices = ("--price-in", "1", "--price-out", "1", "--yes", "--speculate", "0", "--data-venue", "demo")
    with fake_provider(play) as served_provider:
        env = {"LLM_BASE_URL": served_provider.url, "LLM_API_KEY": "test-key-123456"}
        return _backtest(home, home / "reads.yaml", 12, *prices, env=env)


def _community_run(home: Path, texts: HostileTexts) -> str:
    """An agent in a forum where others post hostile texts."""
    scenario = json.loads(json.dumps(shipped_scenario()))
    scenario["posts"] += [
        {"id": f"p{n}", "at": f"{n % 9 + 1}m", "author": "gamma", "title": texts.printable(170), "body": texts.printable()}
        for n in range(40)
    ]  # fmt: skip
    (home / "scenario.json").write_text(json.dumps(scenario))
    text = next(example.text for example in example_skills() if example.name == "contract-auditor")
    (home / "auditor.yaml").write_text(text)
    words = ("backtest", home / "auditor.yaml", "--from", "2025-01-01", "--to", "2025-01-01T00:12Z", "--prompts")
    run = ForkedProcess("-m", "pitboss", *words, "--scenario", home / "scenario.json", "--home", home, "--json")
    out, errors = run.communicate()
    assert run.returncode == 0, errors
    return json.loads(out)["run_id"]


def _forum(home: Path, texts: HostileTexts) -> str:
    """Threads of each kind, each with comments, one of them with all strings; contracts, agents and a description. The slug."""
    clock = SystemClock()
    server = open_server(WorkspaceOptions(home, None), SnsOptions(), clock, random_hex)
    with server.database as database:
        seeded = seed_forum(server, random_hex, read_scenario(shipped_scenario(TRIAL)))
        agent, community, owner = seeded["agent"]["id"], seeded["community"]["id"], seeded["owner"]["wallet"]
        store, now = ForumStore(database), clock.now()
        with database.write() as connection:
            for number, event in enumerate(_posts(agent, community, owner, texts)):
                store.apply(connection, replace(event, at=now + number))
    return seeded["community"]["slug"]


def _posts(agent: str, community: str, owner: str, texts: HostileTexts) -> Iterator[Any]:
    kinds = ("DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
    for number in range(30):
        name = f"t{number}"
        content = {"title": texts.printable(170), "body": texts.printable(8_000), "kind": kinds[number % 3]}
        yield events.CreateThread(at=0, agent_id=agent, community_id=community, thread_id=name, **content)
    for number, text in enumerate(texts.strings):
        comment = {"agent_id": agent, "thread_id": "t1", "comment_id": f"c{number}", "kind": "DISCUSSION"}
        yield events.CommentByAgent(at=0, body=text.strip() or "x", **comment)
    yield events.CommentByOwner(at=0, wallet=owner, thread_id="t1", comment_id="reply", body=texts.printable())
    described = {"description": texts.printable(), "github_repository_url": None}
    ids = {"wallet": owner, "community_id": community}
    yield events.UpdateDescription(at=0, **ids, **described, system_thread_id="s1", comment_id="s1")
    first = events.NewContract("first", texts.printable(120), f"0x{99:040x}", "Sepolia", [])
    named = {"community_id": "named", "name": texts.strings[0], "contracts": (first,)}
    yield events.RegisterCommunity(at=0, wallet=owner, **named, system_thread_id="s3", comment_id="s3")
    for number in range(10):
        contract = events.NewContract(f"k{number}", texts.printable(120), f"0x{number:040x}", texts.printable(32), [])
        yield events.AddContract(at=0, **ids, contract=contract, system_thread_id="s2", comment_id=f"k{number}")


def _stored(workspace: Workspace, decided: str, texts: HostileTexts) -> dict[str, str]:
    """Names and labels, stored past the checks of forms and routes."""
    run = workspace.runs.get(decided)
    skill = workspace.skills.get("hostile", None)
    accounts, audit = Accounts(workspace), AuditLog(workspace.database, workspace.now)
    accounts.users.add("anna", "viewer", hash_password("correct horse battery staple", "ab" * 16, log_n=4, p=1))
    local = accounts.users.get("local")
    assert local is not None
    for number in range(LISTED):
        name = f"{number} {texts.printable(100)}"
        body = codec.dumps({**codec.loads(skill.body), "name": name, "description": texts.printable(300)})
        workspace.skills.save(name, hashlib.sha256(body).hexdigest(), body)
        plan = sweep_plan(request_of(run), [parse_axis("risk.max_leverage=1,2")], name=texts.printable(100)).plan
        document = {**plan.document(), "vary": [texts.printable()], "skill": {**run.params["skill"], "name": name}}
        workspace.studies.save(f"{number:012x}", document)
        accounts.create_token(local, texts.take(200), "viewer", None)
        audit.append(texts.take(64), texts.take(64), texts.take(160), texts.take(), texts.take())
        row = {"name": texts.take(64), "owner": texts.take(64), "role": "viewer", "password": "", "disabled": False}
        with workspace.database.write() as connection:
            if sealed_rows.fetch(connection, users, {"name": row["name"]}) is None:
                sealed_rows.add(connection, users, {**row, "created_at": workspace.now()})
        pay(workspace, decided, f"{number} {texts.printable(100)}", "0.01", number % 20)
    records, state = records_of(workspace, run)[:20], journal_of(workspace, run).latest_state()
    assert state is not None
    unfinished: dict[str, Any] = {"metrics": None, "baselines": None, "report": None, "digest": None}
    for number, status in enumerate(("error", "running", "queued", "cancelled") * 3):
        params = {**run.params, "skill": {**run.params["skill"], "name": texts.printable(100)}}
        if number >= 8:
            params |= {"every_ms": HOUR_MS, "venue": texts.printable(60), "mode": "live"}
        changes = {
            "status": status,
            "error_text": texts.take(),
            "model": texts.take(200),
            "params": params,
            **unfinished,
        }
        stored = replace(run, id=f"{number:x}" * 12, **changes)
        insert_run(workspace.database, stored, records if number < 4 else [], state[1] if number < 4 else None)
    for number in range(10):
        content = {
            "chain": texts.printable(30), "contract_address": "0x" + "ab" * 20, "contract_name": texts.printable(),
            "signature": texts.printable(), "args": [texts.take(), texts.take()], "value_wei": "1", "data": "0x00",
            "thread_id": texts.printable(100),
        }  # fmt: skip
        workspace.approval_requests.ask(f"key {number}", run.id, "community", texts.take(), codec.dumps(content))
    for number in (3, 1, 0):
        named = (texts.printable(100), 1, "perp", "live" if number else "paper", texts.printable(30))
        deployment = workspace.deployments.create(f"{number}" * 12, *named)
        for command in ("snapshot", "pause", "snapshot"):
            workspace.deployments.send(deployment.id, command, texts.take(), texts.take(64))
        workspace.deployments.halt(deployment.id, texts.take(30), texts.take())
    ids = {"deployment": deployment.id}
    return {**ids, "error": "0" * 12, "running": "1" * 12, "queued": "2" * 12, "bare": "4" * 12, "study": f"{0:012x}"}


def _log(home: Path, texts: HostileTexts) -> None:
    stamp = {"instance_id": "instance-1", "port": None, "pid": os.getpid(), "agent_id": texts.printable(60)}
    with CommunicationLog(folder=log_folder(home), clock=SystemClock(), redact=lambda text: text, **stamp) as log:
        for _ in range(50):
            log.agent_to_runner(texts.take(), [texts.take(40)])
            log.runner_to_agent({"type": texts.take(), "body": texts.take()}, [texts.take(40)])


def _catalog(home: Path, texts: HostileTexts) -> None:
    """Servers of tools with hostile titles and notes, whose tools have hostile descriptions."""
    parts = ["format = 1"]
    for number in range(SERVERS):
        folder = home / f"mcp{number}"
        folder.mkdir()
        (folder / "description").write_text(texts.take())
        argv = ["{python}", "-I", str(SERVER), str(folder)]
        parts.append(
            f"[servers.hostile{number}]\ntitle = {json.dumps(texts.printable(100))}\nnote = {json.dumps(texts.printable(300))}\n"
            f'transport = "stdio"\nargv = {json.dumps(argv)}\ntools = {{ twice = {{}} }}'
        )
    (home / CATALOG).write_text("\n".join(parts), "utf-8")


def shared_hostile(folder: Path, strings: Sequence[str]) -> tuple[Path, dict[str, str]]:
    """The workspace in a folder of its own."""
    home = folder / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PITBOSS_EXECUTOR", "none")
        return home, write_hostile(home, strings)
