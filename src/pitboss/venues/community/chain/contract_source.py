"""ABI and source of a contract from an Etherscan-compatible API.

The API's answers are a stranger's: bounded, checked for their shape, and never repeated in messages. Its key is sent to the one
configured address, and removed from its answers. A rate limit or a timeout is tried again, three times in all with growing pauses.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import orjson

from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun
from pitboss.core.plain_http import check_plain_http
from pitboss.models.secret import Secret
from pitboss.venues.community.addresses import split_address

ATTEMPTS = 3
FIRST_PAUSE_S = 0.45
TIMEOUT_S = 20.0
MOST_BYTES = 4 << 20
_PASSING = ("rate limit", "timeout", "timed out", "too many", "try again", "busy", "max calls")
_UNPUBLISHED = "not verified"
ADDRESS = "the address of the explorer"


@noun
class ContractSource:
    """What is published about a contract: its ABI, a list as JSON text, and its source by file name."""

    abi_json: str
    files: tuple[tuple[str, str], ...]


class ExplorerApi:
    """Reads published contracts from an Etherscan-compatible API (version 2: one address for all chains)."""

    def __init__(
        self,
        url: str,
        api_key: Secret | None = None,
        http_hosts: str = "",
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        parts = split_address(url, ADDRESS)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"{ADDRESS} is not that of a server", "for example https://api.etherscan.io/v2/api")
        check_plain_http(parts.scheme, parts.hostname, ADDRESS, http_hosts)
        self._url = url
        self._api_key = api_key
        self._pause = pause

    async def fetch(self, chain_id: int, address: str) -> ContractSource | None:
        """The contract; None if it is not published.

        Raises `TransientError` if the API does not answer, and `UserError` if it refuses or its answer cannot be read.
        """
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                await self._pause(FIRST_PAUSE_S * (attempt - 1))
            try:
                return await self._ask(chain_id, address)
            except TransientError as error:
                problem = str(error)
        raise TransientError(problem)

    async def _ask(self, chain_id: int, address: str) -> ContractSource | None:
        query = {"chainid": str(chain_id), "module": "contract", "action": "getsourcecode", "address": address}
        if self._api_key is not None:
            query["apikey"] = self._api_key.reveal()
        try:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._url, params=query, allow_redirects=False) as response,
            ):
                body = b""
                while len(body) <= MOST_BYTES and (more := await response.content.read(1 << 16)):
                    body += more
                status = response.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransientError(f"the explorer cannot be reached: {type(error).__name__}") from None
        if status == 429 or status >= 500:
            raise TransientError(f"the explorer answers with status {status}")
        if status != 200 or len(body) > MOST_BYTES:
            raise UserError(f"the explorer's answer cannot be used (status {status})", "check its address and key")
        text = body.decode("utf-8", "replace")
        try:
            content = orjson.loads(text if self._api_key is None else self._api_key.hide(text))
        except ValueError:
            content = None
        fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if fields.get("status") == "1":
            return _published(fields.get("result"))
        text = f"{fields.get('message')} {fields.get('result')}".lower()[:2_000]
        if _UNPUBLISHED in text:
            return None
        if any(word in text for word in _PASSING):
            raise TransientError("the explorer limits the rate of requests")
        raise UserError("the explorer refuses the request", "check its address, its key and the chain")


def _published(rows: Any) -> ContractSource | None:
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
    if row is None:
        raise UserError("the explorer's answer cannot be read", "check its address")
    name, abi_json, source = row.get("ContractName"), row.get("ABI"), row.get("SourceCode")
    if not isinstance(abi_json, str) or not isinstance(source, str) or not isinstance(name, str) or not source:
        return None
    try:
        abi = orjson.loads(abi_json)
    except ValueError:
        abi = None  # the text says that it is not verified
    return ContractSource(abi_json, _files(name, source)) if isinstance(abi, list) else None


def _files(name: str, source: str) -> tuple[tuple[str, str], ...]:
    """The files of a source: plain text, or the compiler's JSON input in one or two pairs of braces."""
    text = source[1:-1] if source.startswith("{{") and source.endswith("}}") else source
    try:
        content = orjson.loads(text) if text.startswith("{") else None
    except ValueError:
        content = None
    sources = cast("dict[str, Any]", content).get("sources", content) if isinstance(content, dict) else None
    files = [
        (str(path), cast("dict[str, Any]", entry)["content"])
        for path, entry in (cast("dict[str, Any]", sources).items() if isinstance(sources, dict) else ())
        if isinstance(entry, dict) and isinstance(cast("dict[str, Any]", entry).get("content"), str)
    ]
    return tuple(files) or ((name, source),)
