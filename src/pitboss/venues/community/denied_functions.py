"""Functions that an agent may not send unless its skill allows them by name: those that give rights away, or move tokens."""

from collections.abc import Iterable

from pitboss.signer import denied_functions
from pitboss.signer.denied_functions import plain_name
from pitboss.venues.community.chain.abi import AbiFunction, selector_of

_MOVES = (
    "transfer(address,uint256)", "transferFrom(address,address,uint256)", "safeTransfer(address,uint256)",
    "safeTransferFrom(address,address,uint256)", "safeTransferFrom(address,address,uint256,bytes)",
    "safeTransferFrom(address,address,uint256,uint256,bytes)",
    "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
)  # fmt: skip
_NAMES_OF_MOVES = {selector_of(signature): plain_name(signature.partition("(")[0]) for signature in _MOVES}
NAMES = denied_functions.NAMES | set(_NAMES_OF_MOVES.values())
NAMES_BY_SELECTOR = {
    **{f"0x{selector}": name for selector, name in denied_functions.NAMES_BY_SELECTOR.items()},
    **_NAMES_OF_MOVES,
}


def denied_name(function: AbiFunction, allowed: Iterable[str] = ()) -> str | None:
    """The name on the list that a function stands for, or None. `allowed` are names that may be called nevertheless."""
    names = {plain_name(function.name), NAMES_BY_SELECTOR.get(function.selector, "")} & NAMES
    return next(iter(sorted(names - set(map(plain_name, allowed)))), None)
