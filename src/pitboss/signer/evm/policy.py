"""`EvmPolicy`: what may be signed by the scheme `evm_transaction`.

It is independent of every skill and of the rules of a venue: a takeover of the asking process cannot change it. Functions
are listed by full signature. A function that gives rights away (`denied_functions.py`) must be listed a second time under
`allow_denied`, so that it is never allowed by mistake.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from eth_abi.exceptions import ABITypeError, ParseError
from eth_abi.grammar import parse
from pydantic import Field, field_validator, model_validator

from pitboss.core.noun import noun
from pitboss.signer.addresses import address_problem
from pitboss.signer.denied_functions import NAMES_BY_SELECTOR, is_denied, selector_of
from pitboss.signer.scheme_definition import PolicySection

MOST_WEI = 2**256 - 1
_SIGNATURE = re.compile(r"([A-Za-z_$][A-Za-z0-9_$]{0,127})(\(.*\))")

Wei = Annotated[int, Field(ge=0, le=MOST_WEI, strict=True)]


def signature_parts(signature: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the name and the argument types of a full signature in canonical form, or None."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None or len(signature) > 2_000 or signature.count("(") > 64:
        return None
    if match[2] == "()":
        return match[1], ()
    try:
        arguments: Any = parse(match[2])
        arguments.validate()
        if arguments.arrlist or arguments.to_type_str() != match[2]:
            return None
        return match[1], tuple(component.to_type_str() for component in arguments.components)
    except (ParseError, ABITypeError, ValueError, AttributeError, RecursionError):
        return None


@noun
class AllowedFunction:
    """A function that may be called, with the types of its arguments."""

    signature: str
    types: tuple[str, ...]
    payable: bool


class EvmCaps(PolicySection):
    """Limits of one transaction and of one UTC day, in wei. `spend_per_day_wei` counts value and the highest possible fee."""

    value_wei: Wei
    gas: Annotated[int, Field(ge=21_000, le=30_000_000, strict=True)]
    max_fee_per_gas_wei: Wei
    max_priority_fee_per_gas_wei: Wei
    spend_per_day_wei: Wei
    transactions_per_day: Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
    replacements: Annotated[int, Field(ge=0, le=100, strict=True)] = 10


class ContractPolicy(PolicySection):
    """One contract: its address, the functions that may be called, and those of them that may be paid."""

    address: str
    functions: Annotated[tuple[str, ...], Field(min_length=1, max_length=500)]
    payable: tuple[str, ...] = ()
    allow_denied: tuple[str, ...] = ()

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        problem = address_problem(value)
        if problem:
            raise ValueError(problem)
        return value.lower()

    @model_validator(mode="after")
    def _functions_fit(self) -> "ContractPolicy":
        for signature in self.functions:
            parts = signature_parts(signature)
            if parts is None:
                raise ValueError(f"{signature[:80]!r} is no full signature such as withdraw(uint256)")
            gives_rights = is_denied(parts[0]) or selector_of(signature) in NAMES_BY_SELECTOR
            if gives_rights and signature not in self.allow_denied:
                raise ValueError(f"{signature[:80]} gives rights away; list it under allow_denied too if that is meant")
        for name, listed in (("payable", self.payable), ("allow_denied", self.allow_denied)):
            if not set(listed) <= set(self.functions):
                raise ValueError(f"{name} names a function that is not listed under functions")
        return self


class EvmPolicy(PolicySection):
    """The policy file. `table` maps address and selector to the function that may be called there."""

    version: Literal[1]
    scheme: Literal["evm_transaction"]
    chain_id: Annotated[int, Field(ge=1, lt=2**63, strict=True)]
    caps: EvmCaps
    contracts: Annotated[tuple[ContractPolicy, ...], Field(min_length=1, max_length=1_000)]

    @model_validator(mode="after")
    def _addresses_differ(self) -> "EvmPolicy":
        if len({contract.address for contract in self.contracts}) < len(self.contracts):
            raise ValueError("a contract is listed twice")
        return self

    def table(self) -> Mapping[str, Mapping[str, AllowedFunction]]:
        """The functions that may be called, by address in lower case and selector."""
        return {
            contract.address: {
                selector_of(signature): AllowedFunction(signature, _types(signature), signature in contract.payable)
                for signature in contract.functions
            }
            for contract in self.contracts
        }


def _types(signature: str) -> tuple[str, ...]:
    parts = signature_parts(signature)
    assert parts is not None  # the model has checked it
    return parts[1]
