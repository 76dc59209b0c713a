"""Wallet signatures: recovery of the signer of a text (EIP-191), and checksums of addresses (EIP-55)."""

from pitboss.venues.community.ownership import ADDRESS


def recover_wallet(message: str, signature: str) -> str | None:
    """The wallet that signed a text, in lower case; None if the signature is malformed."""
    from eth_account import Account  # takes a second to import
    from eth_account.messages import encode_defunct

    try:
        return str(Account.recover_message(encode_defunct(text=message), signature=signature)).lower()
    except Exception:  # noqa: BLE001 - whatever the library raises on a stranger's bytes, they are no signature
        return None


def read_wallet(text: object) -> str | None:
    """A wallet address in lower case; None if it is none, or if its mixed case is not its checksum."""
    if not isinstance(text, str) or not ADDRESS.fullmatch(text.lower()):
        return None
    digits = text[2:]
    if digits in (digits.lower(), digits.upper()):
        return text.lower()
    from eth_utils.address import is_checksum_address

    return text.lower() if is_checksum_address(text) else None
