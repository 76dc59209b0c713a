"""`ContractLookup`: ABI and source of contracts that a request registers by address alone, from the server's block explorer."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun
from pitboss.venues.community.chain.contract_source import ContractSource, ExplorerApi
from pitboss.venues.community.chain_names import CHAIN_IDS, chain_id
from pitboss.venues.community.settings import CommunitySettings
from pitboss.venues.community.sns.api_call import HttpRefusal
from pitboss.venues.community.sns.canonical_json import JsonRefused, read_json

LOG = logging.getLogger("pitboss.community")
API_KEY = "ETHERSCAN_API_KEY"
REQUIRED = "serviceContract.abi is required"
MOST_AT_ONCE = 2
"""How many requests of a process may wait for the explorer; each occupies a thread that answers other requests otherwise."""
MOST_CONTRACTS = 10
"""How many contracts of one request are looked up."""
TIMEOUT_S = 30.0
"""How long a request waits for all its contracts."""


@noun
class PublishedContract:
    """ABI and source of a contract as the forum stores them."""

    abi: Sequence[Any]
    source: str | Mapping[str, str]


class ContractLookup:
    """Looks contracts up for the threads of a server."""

    def __init__(self, explorer: ExplorerApi, timeout_s: float = TIMEOUT_S) -> None:
        self._explorer = explorer
        self._timeout_s = timeout_s
        self._slots = BoundedSemaphore(MOST_AT_ONCE)

    def fetch(self, chain: str, addresses: Sequence[str]) -> Mapping[str, PublishedContract]:
        """Contracts by address. Raises `HttpRefusal` unless all are published. No transaction may be open: it takes seconds."""
        id_ = chain_id(chain)
        if id_ is None:
            names = ", ".join(name.title() for name in CHAIN_IDS)
            raise HttpRefusal(400, f"{REQUIRED}: contracts are looked up on {names} only")
        if len(addresses) > MOST_CONTRACTS:
            raise HttpRefusal(400, f"{REQUIRED}: at most {MOST_CONTRACTS} contracts of a request are looked up")
        if not self._slots.acquire(blocking=False):
            raise _unavailable("The explorer is asked for other contracts; try again")
        try:
            return asyncio.run(self._fetch(id_, addresses))
        except (TransientError, TimeoutError):
            raise _unavailable("The explorer cannot be reached or limits its requests; try again") from None
        except UserError as error:
            LOG.error("contract lookup failed", extra={"fields": {"problem": error.message, "hint": error.hint}})
            raise _unavailable("The explorer does not answer this server; give serviceContract.abi") from None
        finally:
            self._slots.release()

    async def _fetch(self, id_: int, addresses: Sequence[str]) -> Mapping[str, PublishedContract]:
        contracts: dict[str, PublishedContract] = {}
        async with asyncio.timeout(self._timeout_s):
            for address in addresses:
                contract = await self._explorer.fetch(id_, address)
                if contract is None:
                    raise HttpRefusal(400, f"{REQUIRED}: {address} is not published on the explorer")
                contracts[address] = _published(address, contract)
        return contracts


def open_lookup(settings: Settings) -> ContractLookup | None:
    """The lookup on the explorer of the setting `community_explorer_url`; None without one."""
    url = CommunitySettings.of(settings).community_explorer_url
    if not url:
        return None
    key = key_for((API_KEY,), environment, open_secrets(settings.home))
    return ContractLookup(ExplorerApi(url, key, settings.http_hosts))


def _published(address: str, contract: ContractSource) -> PublishedContract:
    """A contract as the forum stores it. The source is the text of a single file, or texts by file name."""
    try:
        abi = read_json(contract.abi_json.encode())
    except JsonRefused:
        raise HttpRefusal(400, f"{REQUIRED}: the published one of {address} cannot be read") from None
    return PublishedContract(abi, contract.files[0][1] if len(contract.files) == 1 else dict(contract.files))


def _unavailable(text: str) -> HttpRefusal:
    return HttpRefusal(503, text, {"Retry-After": "5"})
