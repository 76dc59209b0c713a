"""Contracts that owners register by address alone: ABI and source come from an explorer, a real HTTP server here."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from forum_server import RunningForum, serving
from owner_client import login, request_json

from pitboss.core.errors import UserError
from pitboss.venues.community.sns import contract_lookup

KEY = "an-explorer-key-0123456789"
ADDRESS, SECOND = "0x" + "ab" * 20, "0x" + "cd" * 20
ABI = [{"type": "function", "name": "Faucet", "inputs": [], "outputs": [], "stateMutability": "nonpayable"}]
SOURCE = "contract Vault {}"
UNPUBLISHED = {"ContractName": "", "ABI": "Contract source code not verified", "SourceCode": ""}
REFUSED = {"status": "0", "message": "NOTOK", "result": f"Invalid API Key {KEY}"}
LIMITED = {"status": "0", "message": "NOTOK", "result": "Max calls per sec rate limit reached"}


def explorer_reply(source: str = SOURCE) -> dict[str, Any]:
    row = {"ContractName": "Vault", "ABI": json.dumps(ABI), "SourceCode": source}
    return {"status": "1", "message": "OK", "result": [row]}


@dataclass
class Explorer:
    """An explorer that gives the same reply to everything; None as a reply is an error of the server."""

    url: str
    reply: Any = None
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    while_asked: Callable[[], object] = lambda: None


@pytest.fixture
def explorer() -> Iterator[Explorer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(dict(parse_qsl(urlsplit(self.path).query)))
            state.while_asked()
            body = json.dumps(state.reply).encode()
            self.send_response(200 if state.reply is not None else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Explorer(f"http://127.0.0.1:{server.server_address[1]}/v2/api", explorer_reply())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join(30)


@contextmanager
def running_forum(
    home: Path, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[RunningForum, dict[str, str]]]:
    """A forum that asks the explorer, and the session of an owner."""
    monkeypatch.setenv("PITBOSS_COMMUNITY_EXPLORER_URL", explorer.url)
    monkeypatch.setenv("ETHERSCAN_API_KEY", KEY)
    monkeypatch.setattr("pitboss.venues.community.chain.contract_source.FIRST_PAUSE_S", 0.0)
    with serving(home) as forum_server:
        yield forum_server, login(forum_server, "0x" + "33" * 32)


def register(forum_server: RunningForum, session: dict[str, str], *addresses: str, **more: Any) -> tuple[int, Any]:
    contracts = [{"name": f"Contract {number}", "address": address} for number, address in enumerate(addresses)]
    return request_json(
        forum_server, session, "POST", "/api/contracts/register", {"serviceName": "Mine", "contracts": contracts} | more
    )


def stored_source(forum_server: RunningForum, contract_id: str) -> Any:
    """The source of a contract in the database."""
    import sqlite3

    with sqlite3.connect(forum_server.home / "community.db") as connection:
        (text,) = connection.execute("SELECT source FROM sns_contracts WHERE id = ?", (contract_id,)).fetchone()
    connection.close()
    return json.loads(text)


def test_a_contract_registered_by_address_alone_gets_the_published_abi_and_source(
    tmp_path: Path, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_forum(tmp_path, explorer, monkeypatch) as (forum_server, session):
        status, answer = register(forum_server, session, ADDRESS, ADDRESS.upper().replace("0X", "0x"))
        assert status == 200, answer
        (row,) = answer["contracts"]
        assert (row["abi"], row["faucetFunction"], row["chain"]) == (ABI, "Faucet", "Sepolia")
        assert stored_source(forum_server, row["id"]) == SOURCE
        (request,) = explorer.requests
        assert request == {
            "chainid": "11155111",
            "module": "contract",
            "action": "getsourcecode",
            "address": ADDRESS,
            "apikey": KEY,
        }
        several = {"sources": {"a.sol": {"content": "A"}, "b.sol": {"content": "B"}}}
        explorer.reply = explorer_reply("{" + json.dumps(several) + "}")
        update = {
            "communityId": answer["community"]["id"],
            "action": "ADD_CONTRACT",
            "chain": "Mainnet",
            "contract": {"name": "Second", "address": SECOND},
        }
        status, answer = request_json(forum_server, session, "POST", "/api/contracts/update", update)
        assert (status, explorer.requests[-1]["chainid"]) == (200, "1")
        (second,) = [one for one in answer["contracts"] if one["address"] == SECOND]
        assert stored_source(forum_server, second["id"]) == {"a.sol": "A", "b.sol": "B"}
        change = update | {"action": "UPDATE_CONTRACT", "contractId": second["id"]}
        explorer.reply = explorer_reply()
        assert request_json(forum_server, session, "POST", "/api/contracts/update", change)[0] == 200
        assert stored_source(forum_server, second["id"]) == SOURCE
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_the_explorer_is_asked_after_the_session_was_checked_and_outside_of_a_transaction(
    tmp_path: Path, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_forum(tmp_path, explorer, monkeypatch) as (forum_server, session):
        assert register(forum_server, {}, ADDRESS)[0] == 401
        assert register(forum_server, {"Authorization": "Bearer x"}, ADDRESS)[0] == 401
        update = {"communityId": "c", "action": "ADD_CONTRACT", "contract": {"name": "x", "address": ADDRESS}}
        assert request_json(forum_server, {}, "POST", "/api/contracts/update", update)[0] == 401
        assert register(forum_server, session, "0x12")[0] == 400
        assert explorer.requests == []
        others: list[int] = []
        owner = login(forum_server, forum_server.seeded["owner"]["private_key"])
        path = f"/api/threads/{forum_server.thread('REQUEST_TO_HUMAN')}/comments/human"
        explorer.while_asked = lambda: others.append(
            request_json(forum_server, owner, "POST", path, {"body": "meanwhile"})[0]
        )
        assert register(forum_server, session, ADDRESS)[0] == 200
        assert others == [200]


def test_what_the_explorer_does_not_have_or_the_server_does_not_know_is_refused_with_the_reason(
    tmp_path: Path, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_forum(tmp_path, explorer, monkeypatch) as (forum_server, session):
        status, answer = register(forum_server, session, ADDRESS, chain="Base")
        assert (status, explorer.requests) == (400, [])
        assert all(name in answer["error"] for name in ("Sepolia", "Mainnet", "Ethereum"))
        many = [f"0x{number:040x}" for number in range(1, contract_lookup.MOST_CONTRACTS + 2)]
        assert (register(forum_server, session, *many)[0], explorer.requests) == (400, [])
        explorer.reply = {"status": "1", "message": "OK", "result": [UNPUBLISHED]}
        status, answer = register(forum_server, session, ADDRESS)
        assert (status, f"{ADDRESS} is not published" in answer["error"]) == (400, True)
        with_abi = [{"name": "Vault", "address": ADDRESS, "abi": ABI}]
        wish = {"serviceName": "Mine", "chain": "Base", "contracts": with_abi}
        assert request_json(forum_server, session, "POST", "/api/contracts/register", wish)[0] == 200


@pytest.mark.parametrize(("reply", "logged"), [(LIMITED, 0), (None, 0), (REFUSED, 1), ({"status": "1"}, 1)])
def test_an_explorer_that_does_not_answer_is_a_503_without_its_key(
    tmp_path: Path,
    explorer: Explorer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reply: Any,
    logged: int,
) -> None:
    explorer.reply = reply
    with running_forum(tmp_path, explorer, monkeypatch) as (forum_server, session), caplog.at_level(logging.DEBUG):
        caplog.clear()
        body = {"serviceName": "Mine", "contracts": [{"name": "Vault", "address": ADDRESS}]}
        status, answer, headers = forum_server.send(
            "POST", "/api/contracts/register", session, json.dumps(body).encode()
        )
        assert (status, headers.get("retry-after")) == (503, "5")
        assert KEY not in json.dumps(answer)
        assert request_json(forum_server, session, "GET", "/api/communities/owned")[1] == {"communities": []}
    lines = [record for record in caplog.records if record.name == "pitboss.community"]
    assert len(lines) == logged
    assert KEY not in json.dumps([vars(record) for record in caplog.records], default=str)


def test_a_slow_explorer_occupies_a_few_threads_only(
    tmp_path: Path, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        asked.release()
        assert go_on.wait(30)

    explorer.while_asked = wait
    with running_forum(tmp_path, explorer, monkeypatch) as (forum_server, session):
        replies: list[int] = []

        def send(number: int) -> None:
            replies.append(register(forum_server, session, f"0x{number:040x}")[0])

        threads = [
            threading.Thread(target=send, args=(number,)) for number in range(1, 1 + contract_lookup.MOST_AT_ONCE)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert asked.acquire(timeout=30)
        status, answer = register(forum_server, session, ADDRESS)
        assert (status, "try again" in answer["error"]) == (503, True)
        assert forum_server.send("GET", "/health")[0] == 200
        go_on.set()
        for thread in threads:
            thread.join(30)
        assert replies == [200] * len(threads)
        assert register(forum_server, session, ADDRESS)[0] == 200


def test_an_address_of_an_explorer_that_is_none_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_COMMUNITY_EXPLORER_URL", "explorer.example")
    with pytest.raises(UserError, match="the address of the explorer"), serving(tmp_path):
        pass
