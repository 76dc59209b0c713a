"""Requests of one owner on Postgres, which works on several at once: none fails because of another."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import postgres_server
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community import events
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.routes import owner_writes
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.sns_server import Handler, SnsReply, SnsServer

WALLET = "0x" + "a" * 40
COMMUNITIES, AT_ONCE = ("first", "second", "third"), 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SnsServer]:
    """A server with three communities of one wallet, and its agent in each."""
    address = postgres_server.new_database()
    made = open_server(WorkspaceOptions(tmp_path, address), SnsOptions(rate_limit=0), SystemClock(), random_hex)
    with made.database:
        for number, name in enumerate(COMMUNITIES):
            contract = events.NewContract(f"contract-{name}", "Vault", f"0x{number:040x}", "Sepolia", [], None)
            ids = (f"system-{name}", f"comment-{name}")
            with made.database.write() as connection:
                made.apply(connection, events.RegisterCommunity(number, WALLET, name, name, (contract,), *ids))
                made.apply(connection, events.RegisterAgent(number, WALLET, f"agent-{name}", name, "me"))
        yield made
    postgres_server.drop(address)


def send_request(server: SnsServer, session: str, handler: Handler, body: Any, **params: str) -> SnsReply:
    content = json.dumps(body).encode()
    headers = {"authorization": f"Bearer {session}"}
    return server.answer(handler, ApiCall("POST", "/", "203.0.113.1", headers, {}, params, content))


def logged_in(server: SnsServer) -> str:
    with server.database.write() as connection:
        return server.credentials.new_session(connection, WALLET, server.now())


def test_the_first_credential_of_an_agent_is_issued_to_every_request_for_it(server: SnsServer) -> None:
    session = logged_in(server)
    for name in COMMUNITIES:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            issuing = [
                pool.submit(send_request, server, session, owner_writes.issue_credential, {}, id=f"agent-{name}")
                for _ in range(AT_ONCE)
            ]
        assert [each.result().status for each in issuing] == [200] * AT_ONCE
