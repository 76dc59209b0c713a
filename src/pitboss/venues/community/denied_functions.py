"""Functions that hand over funds, rights or code, by name and by selector.

An ABI is written by a stranger: a harmless name can be chosen so that its selector is that of `approve`. So a function is
denied if its name is on the list, or if its selector is that of a well-known signature with a name on the list.
"""

from collections.abc import Iterable

from pitboss.venues.community.chain.abi import AbiFunction, selector_of

NAMES = frozenset({
    "approve", "increaseallowance", "decreaseallowance", "permit", "permitforall", "setapprovalforall", "setapproval",
    "authorizeoperator", "setoperator", "transfer", "transferfrom", "safetransfer", "safetransferfrom",
    "safebatchtransferfrom", "transferownership", "acceptownership", "renounceownership", "setowner", "changeowner",
    "setadmin", "changeadmin", "transferadmin", "grantrole", "revokerole", "renouncerole", "upgradeto", "upgradetoandcall",
    "setimplementation", "selfdestruct", "kill", "destroy", "suicide", "execute", "delegatecall", "multicall", "setcode",
})  # fmt: skip
"""In lower case, because contracts differ in spelling."""

_SIGNATURES = (
    "approve(address,uint256)", "increaseAllowance(address,uint256)", "decreaseAllowance(address,uint256)",
    "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
    "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)",
    "permit(address,address,uint256,uint256,bytes)", "setApprovalForAll(address,bool)", "authorizeOperator(address)",
    "setOperator(address,bool)", "transfer(address,uint256)", "transferFrom(address,address,uint256)",
    "safeTransferFrom(address,address,uint256)", "safeTransferFrom(address,address,uint256,bytes)",
    "safeTransferFrom(address,address,uint256,uint256,bytes)",
    "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)", "transferOwnership(address)",
    "acceptOwnership()", "renounceOwnership()", "setOwner(address)", "changeOwner(address)", "setAdmin(address)",
    "changeAdmin(address)", "transferAdmin(address)", "grantRole(bytes32,address)", "revokeRole(bytes32,address)",
    "renounceRole(bytes32,address)", "upgradeTo(address)", "upgradeToAndCall(address,bytes)", "setImplementation(address)",
    "kill()", "destroy()", "destroy(address)", "execute(address,uint256,bytes)", "execute(address,uint256,bytes,uint8)",
    "execute(bytes32,bytes)", "execute(bytes,bytes[])", "execute(bytes,bytes[],uint256)", "multicall(bytes[])",
    "multicall(uint256,bytes[])",
)  # fmt: skip
NAMES_BY_SELECTOR = {selector_of(signature): signature.partition("(")[0].lower() for signature in _SIGNATURES}


def denied_name(function: AbiFunction, allowed: Iterable[str] = ()) -> str | None:
    """The name on the list that a function stands for, or None. `allowed` are names that may be called nevertheless."""
    names = {function.name.lower(), NAMES_BY_SELECTOR.get(function.selector, "")} & NAMES
    return next(iter(sorted(names - {name.lower() for name in allowed})), None)
