"""`Signer`: holds an ed25519 key and signs transactions with it. It exposes its address and never its key.

The key is passed once as text and kept in a closure: no attribute, repr or pickle contains it. pysui repeats an
unreadable key in its error message, so its messages are never passed on.
"""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from pitboss.core.errors import UserError
from pitboss.venues.predict.sui.transaction import library

ED25519 = 0


class Signer:
    """Signs bytes for one address."""

    __slots__ = ("_sign", "address")

    def __init__(self, key: str) -> None:
        """`key` is in a wallet's export format: `suiprivkey1…`, or 33 bytes in base64."""
        pair = _key_pair(key)
        if pair is None:
            raise UserError("the Sui key cannot be read", "it starts with suiprivkey1; `sui keytool export` shows it")
        if int(pair.scheme) != ED25519:
            raise UserError("the Sui key is not an ed25519 key", "make one with `sui client new-address ed25519`")
        public = bytes(pair.public_key.key_bytes)
        self.address = "0x" + hashlib.blake2b(bytes([ED25519]) + public, digest_size=32).hexdigest()
        self._sign = _signing(pair)

    def sign(self, tx: bytes) -> str:
        """Return the signature in the nodes' format: scheme, signature and public key in base64."""
        return self._sign(tx)

    def __repr__(self) -> str:
        return f"Signer({self.address})"

    def __reduce__(self) -> str:
        raise TypeError("a signer is never pickled or copied")


def spellings(key: str) -> tuple[str, ...]:
    """Return every encoding of a key, for the redactor."""
    pair = _key_pair(key)
    if pair is None:
        return (key,)
    secret = bytes(pair.private_key.key_bytes)
    return key.strip(), pair.serialize(), pair.to_bech32(), secret.hex(), base64.b64encode(secret).decode()


def _key_pair(key: str) -> Any:
    crypto = library().crypto
    try:
        return crypto.keypair_from_keystring(key.strip())
    except (ValueError, AssertionError, TypeError, NotImplementedError):
        return None  # the caller raises, so that no exception chain includes the one that contains the key


def _signing(pair: Any) -> Callable[[bytes], str]:
    def sign(tx: bytes) -> str:
        return pair.new_sign_secure(base64.b64encode(tx).decode())

    return sign
