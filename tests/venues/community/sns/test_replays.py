"""Captured requests, changed or sent to another route: v2 accepts none, v1 only what its signature does not cover."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import postgres_server
from manual_clock import ManualClock
from pitboss.bootstrap.machine import random_hex
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns.api_call import ApiCall
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.canonical_json import canonical_json
from pitboss.venues.community.sns.routes.route_table import ROUTES
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.signature_v1 import sign_v1
from pitboss.venues.community.sns.signature_v2 import SignedParts, key_id, sign_v2, signing_key
from pitboss.venues.community.sns.sns_server import SnsServer
from saved_figures import save_figures

REPLAYS = 100_000
NONCES_AT_ONCE = 50
NOW = 1_767_225_600_000
HOST = "forum.example:8710"


@dataclass
class ReplayServer:
    """A server in this process and what its forum was filled with."""

    server: SnsServer
    seeded: dict[str, Any]
    nonces: list[str] = field(default_factory=list[str])

    @property
    def token(self) -> str:
        return self.seeded["runner_token"]

    @property
    def agent_id(self) -> str:
        return self.seeded["agent"]["id"]

    def send(self, call: ApiCall) -> int:
        """The status of a request, routed by its method and path as the app does."""
        path, _, query = call.path.partition("?")
        for route in ROUTES:
            match = re.fullmatch(route.path.replace("{id}", "(?P<id>[^/]+)"), path)
            if match and route.method == call.method:
                pairs = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
                return self.server.answer(route.handler, replace(call, params=match.groupdict(), query=pairs)).status
        return 404

    def next_nonce(self) -> str:
        """A nonce that was not used yet; many are made in one transaction."""
        if not self.nonces:
            with self.server.database.write() as connection:
                made = [
                    self.server.credentials.new_nonce(connection, self.agent_id, NOW) for _ in range(NONCES_AT_ONCE)
                ]
            self.nonces.extend(nonce for nonce, _ in made)
        return self.nonces.pop()

    def captured(self, version: int, method: str, path: str, body: Any) -> ApiCall:
        """A valid signed write that has not been sent yet."""
        nonce = self.next_nonce()
        content = canonical_json(body).encode()
        headers = {"host": HOST, "x-agent-id": self.agent_id, "x-agent-nonce": nonce, "x-agent-timestamp": str(NOW)}
        if version == 1:
            headers["x-runner-token"] = self.token
            headers["x-agent-signature"] = sign_v1(self.token, nonce, str(NOW), body, self.agent_id)
        else:
            headers |= {"x-agent-protocol": "2", "x-agent-key-id": key_id(self.token), "idempotency-key": random_hex(4)}
            parts = SignedParts(method, path, HOST, self.agent_id, str(NOW), nonce, headers["idempotency-key"])
            headers["x-agent-signature"] = sign_v2(signing_key(self.token), parts, content)
        return ApiCall(method, path, "203.0.113.1", headers, {}, {}, content)


@contextmanager
def open_replay_server(home: Path, db: str | None) -> Iterator[ReplayServer]:
    server = open_server(WorkspaceOptions(home, db), SnsOptions(rate_limit=0), ManualClock(NOW), random_hex)
    with server.database:
        yield ReplayServer(server, seed_forum(server, random_hex, read_scenario(shipped_scenario(TRIAL))))


@pytest.fixture
def replay_server(tmp_path: Path) -> Iterator[ReplayServer]:
    with open_replay_server(tmp_path, None) as one:
        yield one


def captured_calls(replay_server: ReplayServer, version: int) -> list[ApiCall]:
    threads = {row["type"]: row["id"] for row in replay_server.seeded["threads"]}
    thread = {"communityId": replay_server.seeded["community"]["id"], "title": "t", "body": "b", "type": "DISCUSSION"}
    comments = f"/api/threads/{threads['DISCUSSION']}/comments"
    status = f"/api/threads/{threads['REQUEST_TO_HUMAN']}/request-status"
    issued = f"/api/threads/{threads['REPORT_TO_HUMAN']}/issued"
    return [
        replay_server.captured(version, "POST", "/api/threads", thread),
        replay_server.captured(version, "POST", comments, {"body": "hello", "commentKind": "DISCUSSION"}),
        replay_server.captured(version, "PATCH", status, {"status": "resolved"}),
        replay_server.captured(version, "PATCH", issued, {"isIssued": True}),
    ]


def with_header(call: ApiCall, name: str, value: str) -> ApiCall:
    return replace(call, headers={**call.headers, name: value})


def with_changed_character(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text))
    return text[:place] + chance.choice([c for c in "0123456789abcdefXYZ" if c != text[place]]) + text[place + 1 :]


SIGNED_BY_BOTH = ("signature", "nonce", "timestamp", "agent", "body", "other body", "credential")
SIGNED_BY_V2_ONLY = ("path", "route", "method", "query", "host", "idempotency", "spaces")


def changed_call(kind: str, call: ApiCall, others: list[ApiCall], chance: random.Random) -> ApiCall:
    """The request, changed in one way."""
    other = chance.choice([one for one in others if one.path != call.path])
    names = {"signature": "x-agent-signature", "nonce": "x-agent-nonce", "agent": "x-agent-id"}
    if kind in names:
        value = call.headers[names[kind]]
        taken = chance.choice([with_changed_character(value, chance), other.headers[names[kind]]])
        return with_header(call, names[kind], taken if taken != value else with_changed_character(value, chance))
    if kind == "timestamp":
        return with_header(call, "x-agent-timestamp", str(NOW + chance.choice([-1, 1, 60_000, -60_000, 119_999])))
    if kind == "credential":
        name = "x-agent-key-id" if "x-agent-key-id" in call.headers else "x-runner-token"
        return with_header(call, name, with_changed_character(call.headers[name], chance))
    if kind == "body":
        text = call.body.decode()
        return replace(
            call, body=text.replace('":"', '":"' + chance.choice("xyz"), 1).replace("true", "false").encode()
        )
    if kind == "other body":
        return replace(call, body=other.body)
    if kind == "path":
        return replace(call, path=call.path.replace("/threads/", "/comments/") + chance.choice(["", "/", "/human"]))
    if kind == "route":
        return replace(call, method=other.method, path=other.path)
    if kind == "method":
        return replace(call, method=chance.choice([one for one in ("POST", "PATCH", "DELETE") if one != call.method]))
    if kind == "query":
        return replace(call, path=call.path + chance.choice(["?", "?a=1", "?agentId=x"]))
    if kind == "host":
        return with_header(call, "host", chance.choice(["evil.example", "forum.example", HOST + "0"]))
    if kind == "idempotency":
        return with_header(call, "idempotency-key", random_hex(8))
    return replace(call, body=call.body.replace(b":", b" : "))


KINDS = (*SIGNED_BY_BOTH, *SIGNED_BY_V2_ONLY)


def replay(replay_server: ReplayServer, version: int, count: int) -> Counter[str]:
    """Send `count` changed requests; return how many of each kind were accepted."""
    chance = random.Random(9)
    accepted = Counter[str]()
    calls = captured_calls(replay_server, version)
    sent = 0
    while sent < count:
        kind = KINDS[sent % len(KINDS)]
        place = chance.randrange(len(calls))
        if version == 1 and kind == "other body" and calls[place].path.endswith("/issued"):
            place = 0  # the route takes any body, so that another one says nothing
        call = calls[place]
        other = changed_call(kind, call, calls, chance)
        if other == call:
            continue
        sent += 1
        status = replay_server.send(other)
        accepted.update([kind] if status == 200 else [])
        if version == 1 and status != 401:  # its signature was valid, so that its nonce is used up
            calls[place] = replay_server.captured(version, call.method, call.path, json.loads(call.body))
    # A request with a wrong signature uses up no nonce: each original is accepted, once.
    assert [replay_server.send(call) for call in calls] == [200] * 4
    assert [replay_server.send(call) for call in calls] == [401] * 4
    return accepted


def check_replays(replay_server: ReplayServer, version: int, count: int) -> None:
    accepted = replay(replay_server, version, count)
    if version == 2:
        assert accepted == {}
        return
    assert set(accepted) <= set(SIGNED_BY_V2_ONLY)
    assert {"route", "query", "host", "spaces"} <= set(
        accepted
    )  # documented in docs/community.md; if not so, say so there


@pytest.mark.parametrize("version", [1, 2])
def test_of_changed_and_cross_route_replays_none_is_accepted_but_what_version_1_does_not_sign(
    replay_server: ReplayServer, version: int
) -> None:
    check_replays(replay_server, version, 250)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["SQLite", "Postgres"])
def test_of_100_000_changed_and_cross_route_replays_none_is_accepted_but_what_version_1_does_not_sign(
    tmp_path: Path, kind: str, version: int
) -> None:
    address = None if kind == "SQLite" else postgres_server.new_database()
    with open_replay_server(tmp_path, address) as replay_server:
        check_replays(replay_server, version, REPLAYS)
    if address is not None:
        postgres_server.drop(address)
    save_figures(
        f"changed and cross-route replays, v{version}, {kind}",
        {"replays": REPLAYS, "accepted": 0 if version == 2 else "only what v1 does not sign"},
    )


def test_a_signed_comment_of_version_1_fits_another_thread_and_that_of_version_2_does_not(
    replay_server: ReplayServer,
) -> None:
    other = next(row["id"] for row in replay_server.seeded["threads"] if row["type"] == "SYSTEM")
    for version, status in ((1, 200), (2, 401)):
        call = captured_calls(replay_server, version)[1]
        assert replay_server.send(replace(call, path=f"/api/threads/{other}/comments")) == status


def test_a_read_of_version_2_is_bound_to_its_path_and_its_time(replay_server: ReplayServer) -> None:
    path = f"/api/agents/context?agentId={replay_server.agent_id}"
    parts = SignedParts("GET", path, HOST, replay_server.agent_id, str(NOW))
    signature = sign_v2(signing_key(replay_server.token), parts, b"")
    headers = {
        "host": HOST,
        "x-agent-protocol": "2",
        "x-agent-id": replay_server.agent_id,
        "x-agent-key-id": key_id(replay_server.token),
        "x-agent-timestamp": str(NOW),
        "x-agent-signature": signature,
    }
    call = ApiCall("GET", path, "203.0.113.1", headers)
    assert replay_server.send(call) == 200
    assert replay_server.send(replace(call, path=path + "&commentLimit=9")) == 401
    assert replay_server.send(replace(call, path=f"/api/agents/{replay_server.agent_id}/general")) == 401
    assert replay_server.send(replace(call, method="POST", path="/api/agents/nonce")) == 401
    replay_server.server._clock.at = NOW + 120_001  # type: ignore[attr-defined]
    assert replay_server.send(call) == 401


def test_an_expired_nonce_is_refused_and_pruned(replay_server: ReplayServer) -> None:
    call = captured_calls(replay_server, 1)[1]
    clock: Any = replay_server.server._clock
    clock.at = NOW + 120_001
    late = with_header(call, "x-agent-timestamp", str(clock.at))
    body = {"body": "hello", "commentKind": "DISCUSSION"}
    nonce = call.headers["x-agent-nonce"]
    late = with_header(
        late, "x-agent-signature", sign_v1(replay_server.token, nonce, str(clock.at), body, replay_server.agent_id)
    )
    assert replay_server.send(late) == 401
    replay_server.server.prune()
    with replay_server.server.database.read() as connection:
        (left,) = connection.exec_driver_sql("SELECT count(*) FROM sns_nonces").one()
    assert left == 0


def test_a_closed_community_is_deleted_two_weeks_later(replay_server: ReplayServer) -> None:
    from pitboss.venues.community import events

    clock: Any = replay_server.server._clock
    community = replay_server.seeded["community"]["id"]
    with replay_server.server.database.write() as connection:
        closing = events.CloseCommunity(NOW, replay_server.seeded["owner"]["wallet"], community, "Vault")
        replay_server.server.apply(connection, closing)
    tables = ("communities", "contracts", "agents", "threads", "comments", "runner_credentials")
    for days, left in ((13, True), (15, False)):
        clock.at = NOW + days * 86_400_000
        replay_server.server.prune()
        with replay_server.server.database.read() as connection:
            counts = [connection.exec_driver_sql(f"SELECT count(*) FROM sns_{name}").scalar_one() for name in tables]
        assert bool(sum(counts)) is left
