"""Wallet signatures: recovery of the signer of a text (EIP-191), and checksums of addresses (EIP-55)."""

from pitboss.venues.community.ownership import ADDRESS
from pitboss.venues.community.sns.api_call import HttpRefusal

WRONG_CHECKSUM = "The checksum of this mixed-case address is wrong (EIP-55); write the address in lower case"


def recover_wallet(message: str, signature: str) -> str | None:
    """The wallet that signed a text, in lower case; None if the signature is malformed."""
    from eth_account import Account  # takes a second to import
    from eth_account.messages import encode_defunct

    try:
        return str(Account.recover_message(encode_defunct(text=message), signature=signature)).lower()
    except Exception:  # noqa: BLE001 - whatever the library raises on a stranger's bytes, they are no signature
        return None


def read_wallet(text: str, refusal: str) -> str:
    """An address in lower case. Raises `HttpRefusal` 400 with `refusal`, or if its mixed case is not its checksum."""
    if not ADDRESS.fullmatch(text.lower()):
        raise HttpRefusal(400, refusal)
    digits = text[2:]
    if digits not in (digits.lower(), digits.upper()):
        from eth_utils.address import is_checksum_address

        if not is_checksum_address(text):
            raise HttpRefusal(400, WRONG_CHECKSUM)
    return text.lower()
