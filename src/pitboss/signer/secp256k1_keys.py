"""Keys of Ethereum's curve, for the schemes that use it."""

from eth_account import Account

from pitboss.core.errors import UserError
from pitboss.signer.scheme_definition import KeyKind


def make_key() -> bytes:
    """Make a new key."""
    return bytes(Account.create().key)


def key_of_text(text: str) -> bytes:
    """Read a key of 32 bytes from hexadecimal text."""
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
        if len(key) == 32:
            Account.from_key(key)
            return key
    except ValueError:
        pass
    raise UserError("the key cannot be read", "it is 64 hexadecimal digits")


def address_of(key: bytes) -> str:
    """Return the address of a key, in lower case."""
    return str(Account.from_key(key).address).lower()


SECP256K1 = KeyKind(make_key, key_of_text, address_of)
