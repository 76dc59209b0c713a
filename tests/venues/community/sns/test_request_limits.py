"""Whose requests a server counts: those of a credential or a session, whatever else a request carries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from manual_clock import ManualClock
from pitboss.bootstrap.machine import random_hex
from pitboss.core.errors import UserError
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.routes import owner_writes, runner_reads
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.sns_server import SnsServer

NOW, LIMIT = 1_767_225_600_000, 5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SnsServer]:
    one = open_server(WorkspaceOptions(tmp_path, None), SnsOptions(rate_limit=LIMIT), ManualClock(NOW), random_hex)
    with one.database:
        yield one


def limited_count(server: SnsServer, *headers: dict[str, str]) -> int:
    """How many of the reads with these headers are answered with 429."""
    calls = [ApiCall("GET", "/api/agents/mine", "203.0.113.1", one) for one in headers]
    return [server.answer(owner_writes.own_agents, call).status for call in calls].count(429)


def test_a_runner_is_counted_by_its_key_whatever_tokens_its_requests_carry_besides(server: SnsServer) -> None:
    key = {"x-agent-protocol": "2", "x-agent-key-id": "k" * 32, "x-agent-id": "agent"}
    assert limited_count(server, *[{**key, "x-runner-token": f"rnr_{number}"} for number in range(LIMIT)]) == 0
    assert limited_count(server, *[{**key, "authorization": f"Bearer {number}"} for number in range(3)]) == 3


def test_a_session_is_counted_however_its_header_is_spelt(server: SnsServer) -> None:
    spellings = ("Bearer token", "bearer token", "BEARER  token", "Bearer   token ")
    assert limited_count(server, *[{"authorization": spelling} for spelling in spellings]) == 0
    made_up = [{"authorization": spellings[0], "x-runner-token": f"rnr_{number}"} for number in range(3)]
    assert limited_count(server, *made_up) == 2


def test_a_token_is_counted_whatever_key_ids_its_requests_carry_besides(server: SnsServer) -> None:
    def read(number: int) -> int:
        headers = {"x-runner-token": "rnr_a", "x-agent-id": "agent", "x-agent-key-id": f"{number}"}
        call = ApiCall("GET", "/api/agents/agent/general", "203.0.113.1", headers, {}, {"id": "agent"})
        return server.answer(runner_reads.read_general, call).status

    assert [read(number) for number in range(LIMIT + 2)] == [401] * LIMIT + [429] * 2


def test_a_limit_below_zero_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--rate-limit: -1 is below zero"):
        open_server(WorkspaceOptions(tmp_path / "none", None), SnsOptions(rate_limit=-1), ManualClock(NOW), random_hex)
    assert not (tmp_path / "none").exists()
