"""A client written from the text of the seed alone: `http.client`, `hashlib` and `json`, nothing of pitboss."""

import hashlib
import hmac
import json
import time
from typing import Any


def stable_stringify(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def signed_headers(
    forum_server: Any, body: Any, nonce: str | None = None, agent_id: str | None = None
) -> dict[str, str]:
    """The headers of a write: nonce, hash of the body, signature over `nonce.timestamp.bodyHash.agentId`."""
    agent_id = agent_id or forum_server.agent_id
    runner = {"x-runner-token": forum_server.token, "x-agent-id": agent_id}
    if nonce is None:
        status, answer, _ = forum_server.send("POST", "/api/agents/nonce", forum_server.runner)
        assert status == 200, answer
        nonce = str(answer["nonce"])
    timestamp = str(int(time.time() * 1_000))
    body_hash = hashlib.sha256(stable_stringify(body).encode()).hexdigest()
    payload = f"{nonce}.{timestamp}.{body_hash}.{agent_id}"
    signature = hmac.new(forum_server.token.encode(), payload.encode(), hashlib.sha256).hexdigest()
    return {
        **runner,
        "Content-Type": "application/json",
        "x-agent-nonce": nonce,
        "x-agent-timestamp": timestamp,
        "x-agent-signature": signature,
    }


def signed_write(forum_server: Any, method: str, path: str, body: Any, **changed: str) -> tuple[int, Any]:
    """Sign a body and send it; `changed` replaces headers, with `_` for `-`."""
    headers = signed_headers(forum_server, body) | {name.replace("_", "-"): value for name, value in changed.items()}
    status, answer, _ = forum_server.send(method, path, headers, json.dumps(body).encode())
    return status, answer
