"""ABI and source from an Etherscan-compatible API: rate limits, wrong shapes, and the key kept back."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from pitboss.core.errors import TransientError, UserError
from pitboss.models.secret import Secret
from pitboss.venues.community.chain.contract_source import ContractSource, ExplorerApi

ADDRESS = "0x" + "ab" * 20
ABI = json.dumps([{"type": "function", "name": "Faucet", "inputs": [], "stateMutability": "nonpayable"}])
KEY = "an-explorer-key-0123456789"
ROW = {"ContractName": "Vault", "ABI": ABI, "SourceCode": "contract Vault {}"}
LIMITED = {"status": "0", "message": "NOTOK", "result": "Max calls per sec rate limit reached"}


def explorer_reply(**changes: Any) -> dict[str, Any]:
    return {"status": "1", "message": "OK", "result": [{**ROW, **changes}]}


def fetch(replies: Sequence[Any]) -> tuple[ContractSource | None, list[dict[str, str]], list[float]]:
    """Fetch from a server that gives these replies in turn, the last for ever."""
    requests: list[dict[str, str]] = []
    pauses: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        reply = replies[min(len(requests), len(replies) - 1)]
        requests.append(dict(request.query))
        if isinstance(reply, int):
            return web.Response(status=reply)
        return web.Response(body=reply) if isinstance(reply, bytes) else web.json_response(reply)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def work() -> ContractSource | None:
        app = web.Application()
        app.router.add_get("/v2/api", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/api"
            return await ExplorerApi(url, Secret(KEY), pause=pause).fetch(11155111, ADDRESS)
        finally:
            await runner.cleanup()

    return asyncio.run(work()), requests, pauses


def test_a_published_contract_is_fetched_with_chain_and_key() -> None:
    contract, requests, _ = fetch([explorer_reply()])
    assert contract == ContractSource(ABI, (("Vault", "contract Vault {}"),))
    assert requests == [
        {"chainid": "11155111", "module": "contract", "action": "getsourcecode", "address": ADDRESS, "apikey": KEY}
    ]


@pytest.mark.parametrize("first", [LIMITED, 429, 503])
def test_a_rate_limit_is_tried_again_with_growing_pauses(first: Any) -> None:
    contract, requests, pauses = fetch([first, first, explorer_reply()])
    assert contract is not None
    assert (len(requests), pauses) == (3, [0.45, 0.9])


def test_after_three_attempts_it_gives_up_without_naming_the_key() -> None:
    with pytest.raises(TransientError) as error:
        fetch([LIMITED])
    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    "reply",
    [
        explorer_reply(SourceCode="", ABI="Contract source code not verified"),
        explorer_reply(ABI="Contract source code not verified"),
        explorer_reply(ABI=None),
        explorer_reply(ABI="{}"),
        {"status": "1", "message": "OK", "result": [{"Address": ADDRESS}]},
        {"status": "0", "message": "NOTOK", "result": "Contract source code not verified"},
    ],
)
def test_a_contract_that_is_not_published_is_none(reply: Any) -> None:
    contract, requests, _ = fetch([reply])
    assert (contract, len(requests)) == (None, 1)


def test_a_key_that_the_explorer_repeats_is_removed() -> None:
    contract, _, _ = fetch([explorer_reply(SourceCode=f"contract Vault {{}} // {KEY}")])
    assert contract is not None
    assert contract.files == (("Vault", "contract Vault {} // ***"),)


@pytest.mark.parametrize(
    "reply",
    [
        {"status": "0", "message": "NOTOK", "result": f"Invalid API Key {KEY}"},
        {"status": "1", "result": []},
        {"status": "1", "result": "x"},
        b"<html>",
        b"[" * 100_000,
        404,
    ],
)
def test_other_answers_are_one_line_for_the_user(reply: Any) -> None:
    with pytest.raises(UserError) as error:
        fetch([reply])
    assert KEY not in error.value.message + error.value.hint
    assert "\n" not in error.value.message


@pytest.mark.parametrize("wrapped", [False, True])
def test_sources_of_several_files_are_taken_apart(wrapped: bool) -> None:
    text = json.dumps({"language": "Solidity", "sources": {"a.sol": {"content": "A"}, "b.sol": {"content": "B"}}})
    contract, _, _ = fetch([explorer_reply(SourceCode="{" + text + "}" if wrapped else text)])
    assert contract is not None
    assert contract.files == (("a.sol", "A"), ("b.sol", "B"))


@pytest.mark.parametrize("url", ["explorer.example/api", "ftp://explorer.example", "https://", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="the address of the explorer"):
        ExplorerApi(url)


def test_plain_http_to_another_machine_is_refused() -> None:
    with pytest.raises(UserError, match="http://"):
        ExplorerApi("http://explorer.example/api")
