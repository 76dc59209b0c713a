"""The forum server over HTTP: the seed's own client, its verification floor, its forbidden regressions, owners, limits."""

import asyncio
import json
import sqlite3
from typing import Any

import pytest
from forum_server import RunningForum, fill_database, serving
from owner_client import login, request_json
from seed_client import signed_headers, signed_write, stable_stringify

from pitboss.bootstrap.machine import SystemClock
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.client import SnsClient, SnsRefused, SnsUnavailable
from pitboss.venues.community.sns.routes.route_table import ROUTES

SOURCE = shipped_scenario(TRIAL)["contracts"][0]["source"]


def context(forum_server: RunningForum) -> Any:
    status, answer, _ = forum_server.send(
        "GET", f"/api/agents/context?agentId={forum_server.agent_id}", forum_server.runner
    )
    assert status == 200, answer
    return answer["context"]


# The seed's flow ------------------------------------------------------------------------------------------------------


def test_a_client_written_from_the_seed_alone_reads_and_writes_everything(forum_server: RunningForum) -> None:
    status, general, _ = forum_server.send("GET", f"/api/agents/{forum_server.agent_id}/general", forum_server.runner)
    assert status == 200
    schemas.GeneralReply.model_validate(general)
    community = general["community"]["id"]
    body = {"communityId": community, "title": 'Résumé "x" 😀', "body": "line1\nline2", "type": "REQUEST_TO_HUMAN"}
    status, answer = signed_write(forum_server, "POST", "/api/threads", body)
    assert status == 200, answer
    thread = answer["thread"]
    assert (thread["title"], thread["type"], thread["agentId"]) == (body["title"], body["type"], forum_server.agent_id)
    status, answer = signed_write(forum_server, "POST", f"/api/threads/{thread['id']}/comments", {"body": "a comment"})
    assert status == 200
    comment = answer["comment"]
    path = f"/api/threads/{thread['id']}/request-status"
    status, answer = signed_write(forum_server, "PATCH", path, {"status": "resolved"})
    assert (status, answer["thread"]["isResolved"], answer["thread"]["isRejected"]) == (200, True, False)
    path = f"/api/agents/threads/comments?threadId={thread['id']}&commentLimit=5"
    status, answer, _ = forum_server.send("GET", path, forum_server.runner)
    assert (status, [row["id"] for row in answer["comments"]], answer["commentLimit"]) == (200, [comment["id"]], 5)
    contract = forum_server.seeded["contracts"][0]
    for query in (f"contractId={contract['id']}", f"contractAddress={contract['address'].upper().replace('0X', '0x')}"):
        status, answer, _ = forum_server.send("GET", f"/api/agents/contracts/source?{query}", forum_server.runner)
        assert (status, answer["contract"]["source"]) == (200, SOURCE)
    report = forum_server.thread("REPORT_TO_HUMAN")
    status, answer = signed_write(forum_server, "PATCH", f"/api/threads/{report}/issued", {})
    assert (status, answer["thread"]["isIssued"]) == (200, True)
    status, answer = signed_write(forum_server, "POST", f"/api/threads/{report}/comments", {"body": "more"})
    status, answer = signed_write(
        forum_server, "PATCH", f"/api/comments/{answer['comment']['id']}/issued", {"isIssued": True}
    )
    assert (status, answer["comment"]["isIssued"], answer["comment"]["thread"]["id"]) == (200, True, report)


def test_reads_succeed_with_a_valid_credential_and_not_without(forum_server: RunningForum) -> None:
    paths = [
        f"/api/agents/{forum_server.agent_id}/general",
        f"/api/agents/context?agentId={forum_server.agent_id}",
        f"/api/agents/contracts/source?contractId={forum_server.seeded['contracts'][0]['id']}",
        f"/api/agents/threads/comments?threadId={forum_server.thread('DISCUSSION')}",
    ]
    for path in paths:
        assert forum_server.send("GET", path, forum_server.runner)[0] == 200
        assert forum_server.send("GET", path)[0] == 401
        assert forum_server.send("GET", path, {**forum_server.runner, "x-runner-token": "rnr_" + "0" * 64})[0] == 401
        assert forum_server.send("GET", path, {"x-runner-token": forum_server.token})[0] == 401  # without x-agent-id


def test_a_mismatched_agent_id_is_rejected(forum_server: RunningForum) -> None:
    for other in ("other", forum_server.agent_id[:-1], "💥".encode().decode("latin-1")):
        assert forum_server.send("POST", "/api/agents/nonce", {**forum_server.runner, "x-agent-id": other})[0] == 401
    status, answer = signed_write(forum_server, "POST", "/api/threads", {"body": "x"}, x_agent_id="other")
    assert (status, answer["error"]) == (401, "Invalid or revoked runner credential")
    status, _, _ = forum_server.send("GET", "/api/agents/context?agentId=other", forum_server.runner)
    assert status == 403
    assert forum_server.send("GET", "/api/agents/other/general", forum_server.runner)[0] == 404


def test_a_replayed_nonce_is_rejected(forum_server: RunningForum) -> None:
    body = {"body": "once"}
    path = f"/api/threads/{forum_server.thread('DISCUSSION')}/comments"
    headers = signed_headers(forum_server, body)
    first = forum_server.send("POST", path, headers, stable_stringify(body).encode())
    again = forum_server.send("POST", path, headers, stable_stringify(body).encode())
    assert (first[0], again[0]) == (200, 401)
    other = signed_headers(forum_server, {"body": "twice"}, nonce=headers["x-agent-nonce"])
    assert forum_server.send("POST", path, other, b'{"body":"twice"}')[0] == 401


@pytest.mark.parametrize(
    "missing", ["x-agent-nonce", "x-agent-timestamp", "x-agent-signature", "x-agent-id", "x-runner-token"]
)
def test_an_unsigned_write_is_rejected(forum_server: RunningForum, missing: str) -> None:
    thread = forum_server.thread("REQUEST_TO_HUMAN")
    before = context(forum_server)
    for method, path, body in (
        ("POST", "/api/threads", {"communityId": forum_server.seeded["community"]["id"], "title": "t", "body": "b"}),
        ("POST", f"/api/threads/{thread}/comments", {"body": "b"}),
        ("PATCH", f"/api/threads/{thread}/request-status", {"status": "resolved"}),
        ("PATCH", f"/api/threads/{forum_server.thread('REPORT_TO_HUMAN')}/issued", {}),
    ):
        headers = signed_headers(forum_server, body)
        del headers[missing]
        assert forum_server.send(method, path, headers, json.dumps(body).encode())[0] == 401
    assert context(forum_server) == before


def test_the_order_and_the_delimiter_of_the_signed_payload_are_those_of_the_seed(forum_server: RunningForum) -> None:
    import hashlib
    import hmac
    import time

    body = {"body": "x"}
    path = f"/api/threads/{forum_server.thread('DISCUSSION')}/comments"
    body_hash = hashlib.sha256(stable_stringify(body).encode()).hexdigest()
    accepted = []
    for order in (
        "{n}.{t}.{h}.{a}",
        "{t}.{n}.{h}.{a}",
        "{n}.{t}.{a}.{h}",
        "{n}:{t}:{h}:{a}",
        "{n}.{t}.{h}",
        "{n}{t}{h}{a}",
    ):
        nonce = forum_server.send("POST", "/api/agents/nonce", forum_server.runner)[1]["nonce"]
        stamp = str(int(time.time() * 1_000))
        payload = order.format(n=nonce, t=stamp, h=body_hash, a=forum_server.agent_id)
        signature = hmac.new(forum_server.token.encode(), payload.encode(), hashlib.sha256).hexdigest()
        headers = {
            **forum_server.runner,
            "x-agent-nonce": nonce,
            "x-agent-timestamp": stamp,
            "x-agent-signature": signature,
        }
        if forum_server.send("POST", path, headers, b'{"body":"x"}')[0] == 200:
            accepted.append(order)
    assert accepted == ["{n}.{t}.{h}.{a}"]


def test_a_stale_or_malformed_time_is_rejected(forum_server: RunningForum) -> None:
    body = {"body": "x"}
    path = f"/api/threads/{forum_server.thread('DISCUSSION')}/comments"
    now = int(signed_headers(forum_server, body)["x-agent-timestamp"])
    for stamp, status in ((str(now - 121_000), 401), (str(now + 125_000), 401), ("soon", 400), ("-1", 400)):
        assert signed_write(forum_server, "POST", path, body, x_agent_timestamp=stamp)[0] == status


def test_the_context_has_no_source_and_no_system_body(forum_server: RunningForum) -> None:
    document = context(forum_server)
    text = json.dumps(document)
    assert "pragma solidity" not in text
    assert "msg.sender" not in text
    (community,) = document["communities"]
    assert [row["body"] for row in community["threads"] if row["type"] == "SYSTEM"] == [None]
    assert community["contracts"][0]["faucetFunction"] == "faucet"


def test_permissions_of_the_world_are_those_of_the_routes(forum_server: RunningForum) -> None:
    community = forum_server.seeded["community"]["id"]
    thread = {"communityId": community, "title": "t", "body": "b", "type": "DISCUSSION"}
    for change, status in (
        ({"type": "SYSTEM"}, 403),
        ({"title": "t" * 181}, 400),
        ({"title": 5}, 400),
        ({"body": ""}, 400),
        ({"communityId": "other"}, 404),
        ({"communityId": "\x00"}, 404),
        ({"body": "a\x00b"}, 400),
    ):
        answer = signed_write(forum_server, "POST", "/api/threads", thread | change)
        assert (answer[0], list(answer[1])) == (status, ["error"]), change
    status, answer = signed_write(forum_server, "POST", "/api/threads", thread | {"type": "NO SUCH TYPE"})
    assert (status, answer["thread"]["type"]) == (200, "DISCUSSION")
    path = f"/api/threads/{forum_server.thread('REQUEST_TO_HUMAN')}/request-status"
    assert signed_write(forum_server, "PATCH", path, {"status": "rejected"})[0] == 403
    assert signed_write(forum_server, "PATCH", path, {"status": "done"})[0] == 400
    assert signed_write(forum_server, "PATCH", f"/api/threads/{forum_server.thread('DISCUSSION')}/issued", {})[0] == 403
    assert signed_write(forum_server, "POST", "/api/threads/none/comments", {"body": "x"})[0] == 404


def test_what_is_malformed_is_answered_with_an_error_and_never_with_500(forum_server: RunningForum) -> None:
    for content in (b"{", b"[]", b"5", b"\xff", b"[" * 100_000, b'{"a":' * 100_000):
        headers = signed_headers(forum_server, {})
        status, answer, _ = forum_server.send("POST", "/api/threads", headers, content)
        assert (status, list(answer)) == (400, ["error"])
    assert forum_server.send("POST", "/api/threads", forum_server.runner, b"x" * (1 << 20) + b"x")[0] == 413
    assert forum_server.send("GET", "/api/nothing")[:2] == (404, {"error": "Not Found"})
    assert forum_server.send("PUT", "/api/threads")[0] == 405
    assert forum_server.send("GET", "/api/agents/%00/general", forum_server.runner)[0] == 404


# Idempotency, limits, versions ------------------------------------------------------------------------------------------


def test_a_write_with_the_same_key_is_made_once_and_with_another_body_refused(forum_server: RunningForum) -> None:
    path = f"/api/threads/{forum_server.thread('DISCUSSION')}/comments"
    first = signed_write(forum_server, "POST", path, {"body": "keyed"}, idempotency_key="k1")
    again = signed_write(forum_server, "POST", path, {"body": "keyed"}, idempotency_key="k1")
    other = signed_write(forum_server, "POST", path, {"body": "changed"}, idempotency_key="k1")
    assert first == again
    assert first[0] == 200
    assert other[0] == 409
    refused = signed_write(forum_server, "POST", path, {"body": ""}, idempotency_key="k2")
    assert refused[0] == 400
    assert signed_write(forum_server, "POST", path, {"body": "now it is right"}, idempotency_key="k2")[0] == 200


def test_too_many_requests_are_answered_with_429_and_when_to_try_again(tmp_path: Any) -> None:
    with serving(tmp_path, rate=5) as limited:
        answers = [limited.send("POST", "/api/agents/nonce", limited.runner) for _ in range(12)]
        statuses = [status for status, _, _ in answers]
        assert statuses.count(429) >= 2  # at most five in each minute, and a minute may end meanwhile
        refused = next(headers for status, _, headers in answers if status == 429)
        assert 1 <= int(refused["retry-after"]) <= 61
        assert limited.send("GET", "/health")[0] == 200


def test_version_1_can_be_switched_off_and_version_2_still_works(tmp_path: Any) -> None:
    with serving(tmp_path, v1="off") as newer:
        status, answer, _ = newer.send("POST", "/api/agents/nonce", newer.runner)
        assert status == 401
        assert "x-agent-protocol" in answer["error"]

        async def talk() -> Any:
            async with SnsClient(newer.url, newer.agent_id, newer.token, SystemClock()) as client:
                return await client.create_comment(newer.thread("DISCUSSION"), "v2", "DISCUSSION", "k")

        assert asyncio.run(talk())["body"] == "v2"


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_client_reads_and_writes_in_both_versions(forum_server: RunningForum, protocol: Any) -> None:
    async def talk() -> None:
        async with SnsClient(
            forum_server.url, forum_server.agent_id, forum_server.token, SystemClock(), protocol
        ) as client:
            community = (await client.general())["community"]["id"]
            thread = await client.create_thread(
                community, "Title é 😀", "Body \u2028", "REQUEST_TO_HUMAN", f"t{protocol}"
            )
            again = await client.create_thread(
                community, "Title é 😀", "Body \u2028", "REQUEST_TO_HUMAN", f"t{protocol}"
            )
            assert again == thread
            await client.create_comment(thread["id"], "comment", "DISCUSSION", f"c{protocol}")
            assert (await client.set_request_status(thread["id"], "resolved", f"s{protocol}"))["isResolved"]
            document = await client.context(5)
            shown = next(row for row in document["communities"][0]["threads"] if row["id"] == thread["id"])
            assert shown.get("requestStatus") == (None if protocol == 1 else "resolved")
            assert len((await client.thread_comments(thread["id"], 1))["comments"]) == 1
            source = await client.contract_source(contract_id=forum_server.seeded["contracts"][0]["id"])
            assert source["source"] == SOURCE
            with pytest.raises(SnsRefused) as refused:
                await client.create_comment(thread["id"], "x" * 8_001, "DISCUSSION", f"l{protocol}")
            assert refused.value.status == 400
        async with SnsClient(forum_server.url, "other", forum_server.token, SystemClock(), protocol) as client:
            with pytest.raises(SnsRefused) as refused:
                await client.general()
            assert refused.value.status == 401
        async with SnsClient("http://127.0.0.1:1", "other", forum_server.token, SystemClock(), protocol) as client:
            with pytest.raises(SnsUnavailable) as unavailable:
                await client.general()
            assert forum_server.token not in str(unavailable.value)

    asyncio.run(talk())


# Owners -----------------------------------------------------------------------------------------------------------------


def test_an_owner_logs_in_by_wallet_and_answers_rejects_and_updates(forum_server: RunningForum) -> None:
    session = login(forum_server, forum_server.seeded["owner"]["private_key"])
    request, community = forum_server.thread("REQUEST_TO_HUMAN"), forum_server.seeded["community"]["id"]
    status, answer = request_json(
        forum_server, session, "POST", f"/api/threads/{request}/comments/human", {"body": "funded"}
    )
    assert (status, answer["comment"]["ownerWallet"]) == (200, forum_server.seeded["owner"]["wallet"])
    discussion = forum_server.thread("DISCUSSION")
    assert (
        request_json(forum_server, session, "POST", f"/api/threads/{discussion}/comments/human", {"body": "no"})[0]
        == 403
    )
    path = f"/api/threads/{request}/request-status"
    assert request_json(forum_server, session, "PATCH", path, {"status": "resolved"})[0] == 403
    assert request_json(forum_server, session, "PATCH", path, {"status": "rejected"})[1]["thread"]["isRejected"] is True
    assert request_json(forum_server, session, "PATCH", path, {"status": "pending"})[1]["thread"]["isRejected"] is False
    update = {"communityId": community, "action": "UPDATE_DESCRIPTION", "description": "changed"}
    status, answer = request_json(forum_server, session, "POST", "/api/contracts/update", update)
    assert (status, answer["community"]["description"]) == (200, "changed")
    added = {"name": "Bank", "address": "0x" + "12" * 20, "abi": []}
    update = {"communityId": community, "action": "ADD_CONTRACT", "contract": added}
    status, answer = request_json(forum_server, session, "POST", "/api/contracts/update", update)
    assert (status, [row["name"] for row in answer["contracts"]]) == (200, ["Vault", "Bank"])
    assert request_json(forum_server, {}, "POST", "/api/contracts/update", update)[0] == 401
    owned = request_json(forum_server, session, "GET", "/api/communities/owned")[1]["communities"]
    assert [row["id"] for row in owned] == [community]
    assert request_json(forum_server, session, "DELETE", "/api/auth/session")[0] == 200
    assert request_json(forum_server, session, "GET", "/api/communities/owned")[0] == 401


def test_a_signature_of_another_wallet_or_of_the_constant_text_opens_nothing(forum_server: RunningForum) -> None:
    account = pytest.importorskip("eth_account", reason="eth-account is not installed").Account
    from eth_account.messages import encode_defunct

    stranger = account.from_key("0x" + "11" * 32)
    for text in ("24-7-playground", None):
        wish = json.dumps({"walletAddress": forum_server.seeded["owner"]["wallet"]}).encode()
        challenge = forum_server.send("POST", "/api/auth/owner/challenge", {}, wish)[1]["challenge"]
        signature = stranger.sign_message(encode_defunct(text=text or challenge["message"])).signature.hex()
        for proof in (signature, "0x", "zz"):
            body = json.dumps({"challengeId": challenge["id"], "signature": proof}).encode()
            assert forum_server.send("POST", "/api/auth/owner/verify", {}, body)[0] == 401
    fixed = stranger.sign_message(encode_defunct(text="24-7-playground")).signature.hex()
    close = {"communityId": forum_server.seeded["community"]["id"], "confirmName": "Vault", "signature": fixed}
    assert request_json(forum_server, {}, "POST", "/api/communities/close", close)[0] == 401


def test_credentials_are_issued_rotated_and_revoked_and_bans_and_closing_end_writes(tmp_path: Any) -> None:
    with serving(tmp_path) as own:
        owner = login(own, own.seeded["owner"]["private_key"])
        provider = login(own, "0x" + "22" * 32)
        community = own.seeded["community"]["id"]
        wish = {"handle": "prober", "communityId": community}
        status, answer = request_json(own, provider, "POST", "/api/agents/register", wish)
        assert (status, answer["isExistingKey"]) == (200, False)
        agent, wallet = answer["agent"]["id"], answer["agent"]["ownerWallet"]
        path = f"/api/agents/{agent}/runner-credential"
        assert request_json(own, owner, "POST", path)[0] == 404  # of another wallet
        first = request_json(own, provider, "POST", path)[1]["token"]
        second = request_json(own, provider, "POST", path)[1]["token"]
        assert own.send("POST", "/api/agents/nonce", {"x-runner-token": first, "x-agent-id": agent})[0] == 401
        assert own.send("POST", "/api/agents/nonce", {"x-runner-token": second, "x-agent-id": agent})[0] == 200
        theirs = RunningForum(own.port, own.home, None, {**own.seeded, "agent": {"id": agent}, "runner_token": second})
        thread = {"communityId": community, "title": "t", "body": "b", "type": "DISCUSSION"}
        assert signed_write(theirs, "POST", "/api/threads", thread)[0] == 200
        ban = {"communityId": community, "ownerWallet": wallet, "action": "BAN"}
        assert request_json(own, provider, "POST", "/api/communities/bans", ban)[0] == 403
        assert request_json(own, owner, "POST", "/api/communities/bans", ban)[0] == 200
        assert signed_write(theirs, "POST", "/api/threads", thread)[0] == 403
        assert own.send("GET", f"/api/agents/context?agentId={agent}", theirs.runner)[0] == 403
        assert request_json(own, owner, "POST", "/api/communities/bans", ban | {"action": "UNBAN"})[0] == 200
        assert signed_write(theirs, "POST", "/api/threads", thread)[0] == 200
        settings = {"handle": "prober2", "llmProvider": "litellm", "llmModel": "m", "llmBaseUrl": "http://x/"}
        status, answer = request_json(own, provider, "PATCH", f"/api/agents/{agent}/general", settings)
        assert (status, answer["agent"]["llmProvider"], answer["agent"]["llmBaseUrl"]) == (200, "LITELLM", "http://x")
        assert request_json(own, provider, "DELETE", path) == (200, {"ok": True})
        assert own.send("POST", "/api/agents/nonce", theirs.runner)[0] == 401
        close = {"communityId": community, "confirmName": " v a u l t "}
        assert request_json(own, owner, "POST", "/api/communities/close", close)[1]["community"]["status"] == "CLOSED"
        assert signed_write(own, "POST", "/api/threads", thread)[0] == 403
        assert own.send("GET", f"/api/agents/context?agentId={own.agent_id}", own.runner)[0] == 200


def test_a_community_is_registered_with_its_contracts_and_extended(forum_server: RunningForum) -> None:
    session = login(forum_server, "0x" + "33" * 32)
    contract = {"name": "Token", "address": "0x" + "ab" * 20, "abi": [], "source": {"files": ["a"]}}
    wish = {"serviceName": "My Tokens", "chain": "Sepolia", "contracts": [contract]}
    status, answer = request_json(forum_server, session, "POST", "/api/contracts/register", wish)
    assert (status, answer["community"]["slug"], answer["systemThreadsCreated"]) == (200, "my-tokens-0xabab", 1)
    assert request_json(forum_server, session, "POST", "/api/contracts/register", wish)[0] == 409
    more = {**contract, "name": "Second", "address": "0x" + "cd" * 20}
    status, answer = request_json(
        forum_server, session, "POST", "/api/contracts/register", {**wish, "contracts": [contract, more]}
    )
    assert (status, answer["contractCount"], answer["systemThreadsCreated"]) == (200, 2, 0)
    stranger = login(forum_server, "0x" + "44" * 32)
    assert request_json(forum_server, stranger, "POST", "/api/contracts/register", wish)[0] == 403
    bad = {**contract, "address": "0xABCDEFabcdefABCDEFabcdefABCDEFabcdefABCd"}  # not its checksum
    assert (
        request_json(forum_server, session, "POST", "/api/contracts/register", {**wish, "contracts": [bad]})[0] == 400
    )
    none = {key: value for key, value in more.items() if key != "abi"} | {"address": "0x" + "ef" * 20}
    status, answer = request_json(
        forum_server, session, "POST", "/api/contracts/register", {**wish, "contracts": [none]}
    )
    assert (status, "abi" in answer["error"]) == (400, True)


# What is stored and declared --------------------------------------------------------------------------------------------


def test_no_token_is_in_the_database_or_its_files(tmp_path: Any) -> None:
    with serving(tmp_path) as own:
        session = login(own, own.seeded["owner"]["private_key"])
        assert signed_write(own, "POST", f"/api/threads/{own.thread('DISCUSSION')}/comments", {"body": "x"})[0] == 200
    secrets = [own.token, own.token[4:], session["Authorization"][7:]]
    for file in tmp_path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not [secret for secret in secrets if secret.encode() in content], file
    with sqlite3.connect(tmp_path / "community.db") as connection:
        (sealed,) = connection.execute("SELECT sealed_key FROM sns_runner_credentials").fetchone()
    connection.close()
    from pitboss.venues.community.sns.server_key import ServerKey
    from pitboss.venues.community.sns.signature_v2 import signing_key

    assert signing_key(own.token).hex() not in sealed
    assert ServerKey("another key of a server, long enough").unseal(sealed, own.agent_id) is None


def test_the_openapi_document_declares_every_route_and_every_answer(forum_server: RunningForum) -> None:
    status, document, _ = forum_server.send("GET", "/api/openapi.json")
    assert status == 200
    operations = {
        (method.upper(), path): about
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    }
    assert set(operations) == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        about = operations[route.method, route.path]
        declared = {int(code) for code in about["responses"]}
        assert {200, 405, 413, 429, 500, 503, *route.errors} <= declared
        assert ("requestBody" in about) == (route.body is not None)
        assert len({(one["in"], one["name"]) for one in about.get("parameters", [])}) == len(
            about.get("parameters", [])
        )
    assert forum_server.send("GET", "/health")[:2] == (200, {"ok": True, "service": "sns"})


def test_a_database_that_is_not_empty_is_not_seeded_and_that_of_another_program_not_opened(tmp_path: Any) -> None:
    from pitboss.core.errors import UserError

    fill_database(tmp_path)
    with pytest.raises(UserError, match="not empty"):
        fill_database(tmp_path)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
    connection.close()
    with pytest.raises(UserError, match="another program"):
        fill_database(tmp_path, str(foreign))
