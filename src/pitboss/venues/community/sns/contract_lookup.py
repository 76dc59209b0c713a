"""The port through which the server gets ABI and source of a contract that a request gives by its address alone."""

from collections.abc import Sequence
from typing import Any, Protocol

from pitboss.core.noun import noun


@noun
class PublishedContract:
    """What a block explorer has published about a contract."""

    abi: Sequence[Any]
    source: Any = None


class ContractLookup(Protocol):
    """Looks a contract up. Returns None if nothing is published; raises `TransientError` if it cannot tell now."""

    def lookup(self, chain: str, address: str) -> PublishedContract | None: ...


class NoContractLookup:
    """Knows no contract: requests must give the ABI themselves."""

    def lookup(self, chain: str, address: str) -> PublishedContract | None:
        """None, always."""
        del chain, address
        return None
