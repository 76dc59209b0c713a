"""ABI and source of a contract: from an Etherscan-compatible API, or from files.

The API's answers are a stranger's: bounded, checked for their shape, and never repeated in messages. Its key is sent to the one
configured address and in no message. A rate limit or a timeout is tried again, three times in all with growing pauses.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import orjson

from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun
from pitboss.core.plain_http import check_plain_http
from pitboss.venues.community.chain.abi import ContractAbi, read_abi

ATTEMPTS = 3
FIRST_PAUSE_S = 0.45
TIMEOUT_S = 20.0
MOST_BYTES = 4 << 20
_PASSING = ("rate limit", "timeout", "timed out", "too many", "try again", "busy", "max calls")


@noun
class ContractSource:
    """What is published about a contract. `abi_json` is the ABI as text, `files` the source by file name."""

    name: str
    abi_json: str
    abi: ContractAbi
    files: tuple[tuple[str, str], ...]

    @property
    def has_faucet(self) -> bool:
        """Whether a function is called faucet, in any case of letters."""
        return any(function.name.lower() == "faucet" for function in self.abi.functions)


class ExplorerApi:
    """Reads published contracts from an Etherscan-compatible API (version 2: one address for all chains)."""

    def __init__(
        self,
        url: str,
        chain_id: int,
        api_key: str = "",
        http_hosts: str = "",
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        parts = urlsplit(url)
        check_plain_http(parts.scheme, parts.hostname, "the address of the explorer", http_hosts)
        self._url = url
        self._chain_id = chain_id
        self._api_key = api_key
        self._pause = pause

    async def fetch(self, address: str) -> ContractSource:
        """Raise `UserError` if the contract is not published, `TransientError` if the API does not answer."""
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                await self._pause(FIRST_PAUSE_S * (attempt - 1))
            try:
                rows = await self._ask(address)
            except TransientError as error:
                problem = str(error)
                continue
            return _published(address, rows)
        raise TransientError(problem)

    async def _ask(self, address: str) -> Any:
        query = {
            "chainid": str(self._chain_id),
            "module": "contract",
            "action": "getsourcecode",
            "address": address,
            **({"apikey": self._api_key} if self._api_key else {}),
        }
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
        try:
            content = orjson.loads(body)
        except ValueError:
            content = None
        fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        if fields.get("status") == "1":
            return fields.get("result")
        text = f"{fields.get('message')} {fields.get('result')}".lower()[:2_000]
        if any(word in text for word in _PASSING):
            raise TransientError("the explorer limits the rate of requests")
        raise UserError("the explorer refuses the request", "check its address, its key and the chain")


def _published(address: str, rows: Any) -> ContractSource:
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
    if row is None:
        raise UserError("the explorer's answer cannot be read", "check its address")
    name, abi_json, source = row.get("ContractName"), row.get("ABI"), row.get("SourceCode")
    if not isinstance(abi_json, str) or not isinstance(source, str) or not isinstance(name, str) or not source:
        raise UserError(f"the source of {address} is not published", "give its ABI and source as files")
    return _contract(name, abi_json, _files(name, source), f"the ABI of {address}")


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


def read_contract_files(abi_path: Path, source_path: Path | None = None) -> ContractSource:
    """Read an ABI file, or a compiled contract with `abi` and `source`, and the source beside it."""
    try:
        for path in (abi_path, source_path):
            if path is not None and path.stat().st_size > MOST_BYTES:
                raise UserError(f"{path} is larger than {MOST_BYTES} bytes", "give the ABI and source of one contract")
        content = orjson.loads(abi_path.read_bytes())
        source = source_path.read_text("utf-8") if source_path is not None else ""
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}", "check the path") from None
    except ValueError:
        raise UserError(f"{abi_path} is not JSON", "an ABI file holds a list of functions") from None
    fields = cast("dict[str, Any]", content) if isinstance(content, dict) else {"abi": content}
    source = source or (fields["source"] if isinstance(fields.get("source"), str) else "")
    name = fields["name"] if isinstance(fields.get("name"), str) else abi_path.stem
    files = ((source_path.name if source_path else name, source),) if source else ()
    return _contract(name, json.dumps(fields.get("abi")), files, str(abi_path))


def _contract(name: str, abi_json: str, files: tuple[tuple[str, str], ...], what: str) -> ContractSource:
    try:
        abi = read_abi(orjson.loads(abi_json))
    except ValueError:
        abi = ContractAbi(())
    if not abi.functions:
        raise UserError(f"{what} has no function that can be called", "check that it is the ABI of a contract")
    return ContractSource(name[:120], abi_json, abi, files)
