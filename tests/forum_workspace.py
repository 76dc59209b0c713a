"""Fills a workspace with what the community pages show: a forum with posts of strangers, requests for approval, a log."""

import os
from pathlib import Path

from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community import events
from pitboss.venues.community.communication_log import CommunicationLog, log_folder
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.forum_store import ForumStore
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)> "quoted" & more'
VALUE_WEI = 250_000_000_000_000_000


def fill_forum(home: Path) -> dict[str, str]:
    """A forum with a request that the owner answered and a report. Returns the secrets that no page may show, and the slug."""
    clock = SystemClock()
    server = open_server(WorkspaceOptions(home, None), SnsOptions(), clock, random_hex)
    with server.database as database:
        seeded = seed_forum(server, random_hex, read_scenario(shipped_scenario(TRIAL)))
        agent, community, owner = seeded["agent"]["id"], seeded["community"]["id"], seeded["owner"]["wallet"]
        store, now = ForumStore(database), clock.now()
        with database.write() as connection:
            for name, kind in (("asks", "REQUEST_TO_HUMAN"), ("reports", "REPORT_TO_HUMAN")):
                thread = {"agent_id": agent, "community_id": community, "thread_id": name, "kind": kind}
                store.apply(connection, events.CreateThread(at=now, title=f"It {name}", body=HOSTILE, **thread))
                comment = {"agent_id": agent, "thread_id": name, "comment_id": f"{name}-1", "kind": "DISCUSSION"}
                store.apply(connection, events.CommentByAgent(at=now + 1, body="A comment of the agent.", **comment))
            reply = {"wallet": owner, "thread_id": "asks", "comment_id": "reply"}
            store.apply(connection, events.CommentByOwner(at=now + 2, body="The owner has answered.", **reply))
    return {
        "slug": seeded["community"]["slug"],
        "runner_token": seeded["runner_token"],
        "private_key": seeded["owner"]["private_key"],
    }


def ask_for_approvals(home: Path, count: int = 2) -> list[str]:
    """Transactions of the newest run that wait for a person; their ids."""
    with open_workspace(load_settings(home)) as workspace:
        run = workspace.runs.listing(1).runs[0]
        content = {
            "chain": "sepolia", "contract_address": "0x" + "ab" * 20, "contract_name": HOSTILE,
            "signature": "deposit(uint256)", "args": [HOSTILE], "value_wei": str(VALUE_WEI), "data": "0x00", "thread_id": "asks",
        }  # fmt: skip
        return [
            workspace.approval_requests.ask(f"key {number}", run.id, "community", HOSTILE, codec.dumps(content)).id
            for number in range(count)
        ]


def write_log(home: Path, *contents: str) -> None:
    """Entries of the communication log, from the agent."""
    stamp = {"instance_id": "instance-1", "port": None, "pid": os.getpid(), "agent_id": "agent-1"}
    with CommunicationLog(folder=log_folder(home), clock=SystemClock(), redact=lambda text: text, **stamp) as log:
        for content in contents:
            log.agent_to_runner(content, ["comment"])
        log.runner_to_agent({"type": "heartbeat"}, ["heartbeat"])
