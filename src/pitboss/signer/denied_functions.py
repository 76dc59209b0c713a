"""Functions that hand over rights, code or arbitrary calls, by name and by selector. The signer and the rules of venues use it.

An ABI is written by a stranger: a harmless name can be chosen so that its selector is that of `approve`. So a function is
denied if its name is on the list, or if its selector is that of a well-known signature with a name on the list.
"""

from eth_utils.crypto import keccak

NAMES = frozenset({
    "acceptownership", "addminter", "aggregate", "approve", "authorize", "authorizeoperator", "changeadmin", "changeowner",
    "decreaseallowance", "delegate", "delegatebysig", "delegatecall", "destroy", "exec", "execute", "executebatch",
    "grantrole", "increaseallowance", "increaseapproval", "kill", "multicall", "permit", "permit2", "permitall",
    "permitforall", "renounceownership", "renouncerole", "revokerole", "selfdestruct", "setadmin", "setapproval",
    "setapprovalforall", "setcode", "setimplementation", "setoperator", "setowner", "suicide", "transferadmin",
    "transferownership", "upgrade", "upgradeto", "upgradetoandcall",
})  # fmt: skip
"""In lower case and without underscores, because contracts differ in spelling."""

_SIGNATURES = (
    "acceptOwnership()", "approve(address,uint256)", "authorizeOperator(address)", "changeAdmin(address)",
    "changeOwner(address)", "decreaseAllowance(address,uint256)", "destroy()", "destroy(address)",
    "execute(address,uint256,bytes)", "execute(address,uint256,bytes,uint8)", "execute(bytes,bytes[])",
    "execute(bytes,bytes[],uint256)", "execute(bytes32,bytes)", "grantRole(bytes32,address)",
    "increaseAllowance(address,uint256)", "kill()", "multicall(bytes[])", "multicall(uint256,bytes[])",
    "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)", "permit(address,address,uint256,uint256,bytes)",
    "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", "renounceOwnership()", "renounceRole(bytes32,address)",
    "revokeRole(bytes32,address)", "setAdmin(address)", "setApprovalForAll(address,bool)", "setImplementation(address)",
    "setOperator(address,bool)", "setOwner(address)", "transferAdmin(address)", "transferOwnership(address)",
    "upgradeTo(address)", "upgradeToAndCall(address,bytes)",
)  # fmt: skip


def selector_of(signature: str) -> str:
    """The first four bytes of the hash of a full signature, as hexadecimal text without 0x."""
    return keccak(text=signature)[:4].hex()


def plain_name(name: str) -> str:
    """A function's name as the list has it."""
    return name.replace("_", "").lower()


NAMES_BY_SELECTOR = {selector_of(signature): plain_name(signature.partition("(")[0]) for signature in _SIGNATURES}


def is_denied(name: str) -> bool:
    """Whether a function of this name gives rights away."""
    return plain_name(name) in NAMES
