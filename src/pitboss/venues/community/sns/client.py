"""The client of the forum server for runners: reads, and signed writes with a nonce, in protocol v1 or v2.

One call is one attempt. A write is safe to repeat with the same idempotency key: the server then returns the first answer. The
client holds the token and shows it nowhere; with protocol v2 it never leaves this process. Secrets of this process are removed
from the errors that it raises.
"""

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from pitboss.bootstrap.redact import REDACTOR
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import Clock
from pitboss.venues.community.addresses import split_address
from pitboss.venues.community.sns.canonical_json import MAX_DEPTH, JsonRefused, canonical_json, read_json
from pitboss.venues.community.sns.signature_v1 import sign_v1
from pitboss.venues.community.sns.signature_v2 import PROTOCOL, SignedParts, key_id, sign_v2, signing_key

TIMEOUT_S = 30.0
MAX_REPLY_BYTES = 32 << 20
MAX_REPLY_DEPTH = 2 * MAX_DEPTH
"""What others sent in a request of the largest depth is deeper in a reply."""
_NONCE = re.compile(r"[!-~]{1,256}")


class SnsRefused(UserError):
    """The server refused a request; the same request would be refused again."""

    def __init__(self, status: int, text: str) -> None:
        hint = "issue a new runner credential and start again" if status == 401 else ""
        super().__init__(f"the forum server refused the request ({status}): {text[:300]}", hint)
        self.status = status
        self.text = text


class SnsUnavailable(TransientError):
    """The server cannot answer now: too many requests, an error of its own, no connection, no reply in time."""

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class SnsClient:
    """One agent's connection to a forum server. Use it in an `async with`."""

    def __init__(
        self,
        server_url: str,
        agent_id: str,
        token: str,
        clock: Clock,
        protocol: Literal[1, 2] = 2,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        address = split_address(server_url, "the address of the forum")
        if address.scheme not in ("http", "https") or not address.netloc or "@" in address.netloc:
            raise UserError(f"{server_url[:100]!r} is not the address of a server", "for example http://127.0.0.1:8710")
        self._origin = f"{address.scheme}://{address.netloc}"
        self._host = address.netloc
        self._root = address.path.rstrip("/")
        self._agent_id = agent_id
        self._token = token
        REDACTOR.add(token)
        self._clock = clock
        self._protocol = protocol
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "SnsClient":
        # Cookies and redirects would let a server send the token elsewhere.
        self._session = aiohttp.ClientSession(timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # Reads ----------------------------------------------------------------------------------------------------------

    async def general(self) -> dict[str, Any]:
        """The agent's settings and its community."""
        return await self._read("GET", f"/api/agents/{quote(self._agent_id, safe='')}/general")

    async def context(self, comment_limit: int | None = None) -> dict[str, Any]:
        """The context document of the agent."""
        query = {"agentId": self._agent_id} | ({} if comment_limit is None else {"commentLimit": str(comment_limit)})
        return _part(await self._read("GET", "/api/agents/context", query), "context")

    async def contract_source(self, *, contract_id: str) -> dict[str, Any]:
        """A contract with its source."""
        query = {"contractId": contract_id}
        return _part(await self._read("GET", "/api/agents/contracts/source", query), "contract")

    async def thread_comments(self, thread_id: str, comment_limit: int | None = None) -> dict[str, Any]:
        """The newest comments of a thread."""
        query = {"threadId": thread_id} | ({} if comment_limit is None else {"commentLimit": str(comment_limit)})
        return await self._read("GET", "/api/agents/threads/comments", query)

    # Writes ---------------------------------------------------------------------------------------------------------

    async def create_thread(
        self, community_id: str, title: str, body: str, kind: str, idempotency_key: str
    ) -> dict[str, Any]:
        """Open a thread."""
        fields = {"communityId": community_id, "title": title, "body": body, "type": kind}
        return _part(await self.write("POST", "/api/threads", fields, idempotency_key), "thread")

    async def create_comment(self, thread_id: str, body: str, kind: str, idempotency_key: str) -> dict[str, Any]:
        """Comment on a thread."""
        fields = {"body": body, "commentKind": kind}
        path = f"/api/threads/{quote(thread_id, safe='')}/comments"
        return _part(await self.write("POST", path, fields, idempotency_key), "comment")

    async def set_request_status(self, thread_id: str, status: str, idempotency_key: str) -> dict[str, Any]:
        """Set the status of a request."""
        path = f"/api/threads/{quote(thread_id, safe='')}/request-status"
        return _part(await self.write("PATCH", path, {"status": status}, idempotency_key), "thread")

    async def mark_thread_issued(self, thread_id: str, idempotency_key: str) -> dict[str, Any]:
        """Note that a report has become an issue."""
        path = f"/api/threads/{quote(thread_id, safe='')}/issued"
        return _part(await self.write("PATCH", path, {"isIssued": True}, idempotency_key), "thread")

    async def mark_comment_issued(self, comment_id: str, idempotency_key: str) -> dict[str, Any]:
        """Note that a comment on a report has become an issue."""
        path = f"/api/comments/{quote(comment_id, safe='')}/issued"
        return _part(await self.write("PATCH", path, {"isIssued": True}, idempotency_key), "comment")

    async def write(self, method: str, path: str, body: Mapping[str, Any], idempotency_key: str = "") -> dict[str, Any]:
        """Fetch a nonce, sign the body and send it."""
        nonce = (await self._read("POST", "/api/agents/nonce")).get("nonce")
        if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
            raise SnsUnavailable("the forum server's reply has no nonce that can be used")
        content = canonical_json(dict(body)).encode("utf-8", "surrogatepass")
        timestamp = str(self._clock.now())
        headers = {"Content-Type": "application/json", "x-agent-nonce": nonce, "x-agent-timestamp": timestamp}
        if idempotency_key:
            headers["idempotency-key"] = idempotency_key
        path = self._root + path
        if self._protocol == 1:
            headers["x-agent-signature"] = sign_v1(self._token, nonce, timestamp, dict(body), self._agent_id)
        else:
            headers["x-agent-signature"] = self._sign(method, path, content, timestamp, nonce, idempotency_key)
        return await self._send(method, path, headers, content)

    async def _read(self, method: str, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        path = self._root + path + (f"?{urlencode(query)}" if query else "")
        if self._protocol == 1:
            return await self._send(method, path, {}, b"")
        timestamp = str(self._clock.now())
        signature = self._sign(method, path, b"", timestamp, "", "")
        return await self._send(method, path, {"x-agent-timestamp": timestamp, "x-agent-signature": signature}, b"")

    def _sign(self, method: str, path: str, content: bytes, timestamp: str, nonce: str, idempotency_key: str) -> str:
        parts = SignedParts(method, path, self._host, self._agent_id, timestamp, nonce, idempotency_key)
        return sign_v2(signing_key(self._token), parts, content)

    async def _send(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> dict[str, Any]:
        if self._session is None:
            raise RuntimeError("the client is not open")
        own = {"x-agent-id": self._agent_id, "Host": self._host}
        if self._protocol == 1:
            own["x-runner-token"] = self._token
        else:
            own |= {"x-agent-protocol": PROTOCOL, "x-agent-key-id": key_id(self._token)}
        try:
            async with self._session.request(
                method,
                URL(self._origin + path, encoded=True),  # the path that was signed, unchanged
                headers={**own, **headers},
                data=content,
                allow_redirects=False,
            ) as response:
                text = await _limited(response)
                return _value(response.status, text, response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SnsUnavailable(f"the forum server cannot be reached ({type(error).__name__})") from None


def _part(reply: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name of a reply."""
    part = reply.get(name)
    if not isinstance(part, dict):
        raise SnsUnavailable(f"the forum server's reply has no {name}")
    return cast("dict[str, Any]", part)


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        content += part
        if len(content) > MAX_REPLY_BYTES:
            raise SnsUnavailable("the forum server's reply is too long")
    return bytes(content)


def _value(status: int, content: bytes, retry_after: str) -> dict[str, Any]:
    try:
        value = read_json(content, MAX_REPLY_DEPTH)
    except JsonRefused:
        value = None
    error = REDACTOR.redact(str(value.get("error", ""))) if isinstance(value, dict) else ""
    if status == 429 or status >= 500:
        wait_s = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else None
        raise SnsUnavailable(f"the forum server answered {status}: {error[:300]}", wait_s)
    if status >= 300:
        raise SnsRefused(status, error or "no reason was given")
    if not isinstance(value, dict):
        raise SnsUnavailable("the forum server's reply is not a JSON object")
    return value
