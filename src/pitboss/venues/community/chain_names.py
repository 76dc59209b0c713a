"""Names of chains as owners write them, and which of them mean one chain. Pure."""

from collections.abc import Mapping

CHAIN_IDS: Mapping[str, int] = {"sepolia": 11_155_111, "mainnet": 1, "ethereum": 1}
"""The ids of chains by name, in lower case; two names of one id are one chain."""


def chain_id(name: str) -> int | None:
    """The id of a chain by its name, in any case and with surrounding space; None if it is not listed."""
    return CHAIN_IDS.get(_normalised(name))


def chain_key(name: str) -> int | str:
    """The value by which chains are compared: the id, or the normalised name of a chain that is not listed."""
    normalised = _normalised(name)
    return CHAIN_IDS.get(normalised, normalised)


def _normalised(name: str) -> str:
    return name.strip().lower()
