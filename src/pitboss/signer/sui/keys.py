"""Keys of Sui: ed25519, in a wallet's export format. Messages never repeat a key."""

import base64
import binascii
import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pitboss.core.errors import UserError
from pitboss.signer.scheme_definition import KeyKind

ED25519_FLAG = b"\x00"
INTENT = b"\x00\x00\x00"
"""What is signed is a transaction, for version 0 of the chain's encoding."""
_PREFIX = "suiprivkey"
_LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def make_key() -> bytes:
    """Make a new key."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def key_of_text(text: str) -> bytes:
    """Read a key in a wallet's export format: `suiprivkey1…`, or 33 bytes in base64."""
    data = _of_bech32(text.strip()) or _of_base64(text.strip())
    if data is None or len(data) != 33:
        raise UserError("the Sui key cannot be read", "it starts with suiprivkey1; `sui keytool export` shows it")
    if data[:1] != ED25519_FLAG:
        raise UserError("the Sui key is not an ed25519 key", "make one with `sui client new-address ed25519`")
    return data[1:]


def address_of(key: bytes) -> str:
    """Return the address of a key: 0x and 64 digits."""
    return "0x" + hashlib.blake2b(ED25519_FLAG + _public(key), digest_size=32).hexdigest()


def sign_bytes(tx: bytes, key: bytes) -> str:
    """Return the signature of a transaction in the nodes' format: flag, signature and public key in base64."""
    digest = hashlib.blake2b(INTENT + tx, digest_size=32).digest()
    signature = Ed25519PrivateKey.from_private_bytes(key).sign(digest)
    return base64.b64encode(ED25519_FLAG + signature + _public(key)).decode()


def _public(key: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()


def _of_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _of_bech32(text: str) -> bytes | None:
    """Decode bech32 (BIP 173) with the prefix of private keys; None if it is not that."""
    prefix, _, data = text.rpartition("1")
    if prefix != _PREFIX or len(data) < 7 or not set(data) <= set(_LETTERS):
        return None
    values = [_LETTERS.index(letter) for letter in data]
    codes = prefix.encode()
    if _checksum([*(code >> 5 for code in codes), 0, *(code & 31 for code in codes), *values]) != 1:
        return None
    number, bits = 0, 0
    for value in values[:-6]:
        number, bits = number << 5 | value, bits + 5
    spare = bits % 8
    if spare > 4 or number & ((1 << spare) - 1):
        return None
    return (number >> spare).to_bytes(bits // 8, "big")


def _checksum(values: list[int]) -> int:
    check = 1
    for value in values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATORS):
            check ^= generator if top >> place & 1 else 0
    return check


ED25519 = KeyKind(make_key, key_of_text, address_of)
