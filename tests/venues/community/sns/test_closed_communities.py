"""A closed community can be read for two weeks, and is then gone, whichever request comes first."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from manual_clock import ManualClock
from pitboss.bootstrap.machine import random_hex
from pitboss.core.instant import DAY_MS
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community import events
from pitboss.venues.community.ownership import DELETE_AFTER_MS, MOST_COMMUNITIES
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.routes import owner_writes, public_reads
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.sns_server import SnsServer

NOW, WALLET = 1_767_225_600_000, "0x" + "a" * 40


@dataclass
class ClosedForum:
    """A server with as many communities of one wallet as it may own, all of them closed at `NOW`."""

    server: SnsServer
    clock: ManualClock
    slug: str = ""

    def read(self) -> int:
        call = ApiCall("GET", f"/api/communities/{self.slug}/threads", "203.0.113.1", {}, {}, {"id": self.slug})
        return self.server.answer(public_reads.read_threads, call).status

    def register(self, session: str) -> tuple[int, Any]:
        body = {"serviceName": "New", "name": "New", "address": f"0x{0:040x}", "abi": []}
        headers = {"authorization": f"Bearer {session}"}
        call = ApiCall("POST", "/api/contracts/register", "203.0.113.1", headers, body=json.dumps(body).encode())
        reply = self.server.answer(owner_writes.register_community, call)
        return reply.status, json.loads(reply.text)


@pytest.fixture
def closed_forum(tmp_path: Path) -> Iterator[ClosedForum]:
    clock = ManualClock(NOW)
    server = open_server(WorkspaceOptions(tmp_path, None), SnsOptions(rate_limit=0), clock, random_hex)
    with server.database:
        forum = ClosedForum(server, clock)
        for number in range(MOST_COMMUNITIES):
            contract = events.NewContract(server.new_id(), "Vault", f"0x{number:040x}", "Sepolia", [], None)
            id_ = server.new_id()
            made = events.RegisterCommunity(
                NOW, WALLET, id_, f"Vault{number}", (contract,), server.new_id(), server.new_id()
            )
            with server.database.write() as connection:
                forum.slug = server.apply(connection, made)[0].communities[id_].slug
                server.apply(connection, events.CloseCommunity(NOW, WALLET, id_, f"Vault{number}"))
        yield forum


def test_a_read_finds_it_until_then_and_not_after(closed_forum: ClosedForum) -> None:
    closed_forum.clock.at = NOW + DELETE_AFTER_MS - DAY_MS
    assert closed_forum.read() == 200
    closed_forum.clock.at = NOW + DELETE_AFTER_MS + 1
    assert closed_forum.read() == 404


def test_its_owner_registers_another_in_its_place_and_its_contract_again(closed_forum: ClosedForum) -> None:
    closed_forum.clock.at = NOW + DELETE_AFTER_MS - DAY_MS // 2
    with closed_forum.server.database.write() as connection:
        session = closed_forum.server.credentials.new_session(connection, WALLET, closed_forum.clock.at)
    assert closed_forum.register(session)[0] == 409
    closed_forum.clock.at = NOW + DELETE_AFTER_MS + 1
    status, answer = closed_forum.register(session)
    assert status == 200, answer
    assert answer["systemThreadsCreated"] == 1
