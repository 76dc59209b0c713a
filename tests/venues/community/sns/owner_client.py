"""A client of the web API that owners of communities use: login by wallet, and requests of a session."""

import json
from typing import Any

import pytest
from forum_server import RunningForum


def login(forum_server: RunningForum, private_key: str) -> dict[str, str]:
    """Log in as the owner of a wallet; the headers of the session."""
    account = pytest.importorskip("eth_account", reason="eth-account is not installed").Account.from_key(private_key)
    from eth_account.messages import encode_defunct

    body = json.dumps({"walletAddress": account.address}).encode()
    status, answer, _ = forum_server.send("POST", "/api/auth/owner/challenge", {}, body)
    assert status == 200, answer
    challenge = answer["challenge"]
    signature = account.sign_message(encode_defunct(text=challenge["message"])).signature.hex()
    body = json.dumps({"challengeId": challenge["id"], "signature": signature}).encode()
    status, answer, _ = forum_server.send("POST", "/api/auth/owner/verify", {}, body)
    assert (status, answer.get("walletAddress")) == (200, account.address.lower()), answer
    again = forum_server.send("POST", "/api/auth/owner/verify", {}, body)
    assert again[0] == 401  # a challenge is used once
    return {"Authorization": f"Bearer {answer['token']}"}


def request_json(
    forum_server: RunningForum, session: dict[str, str], method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    """Send a request with the headers of a session, or with none; the status and the parsed answer."""
    content = None if body is None else json.dumps(body).encode()
    status, answer, _ = forum_server.send(method, path, session, content)
    return status, answer
