"""Addresses of Ethereum's form in requests and policy files."""

import re

from eth_utils.address import is_checksum_address

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


def address_problem(text: str) -> str:
    """Return what is wrong with an address; empty if nothing is. Mixed case must be its checksum."""
    if not _ADDRESS.fullmatch(text):
        return "an address is 0x and 40 hexadecimal digits"
    digits = text[2:]
    if digits != digits.lower() and digits != digits.upper() and not is_checksum_address(text):
        return "the checksum of the address is wrong"
    return ""
