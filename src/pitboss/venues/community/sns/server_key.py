"""The server's own key, with which signing keys of protocol v2 are encrypted in the database.

It is not in the database: it comes from the environment (`SNS_SERVER_KEY`) or from the encrypted secrets of the workspace, where
it is created on first use. Several machines on one database need the same one.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.redact import REDACTOR

VARIABLE = "SNS_SERVER_KEY"
SHORTEST_KEY = 32
_NONCE_BYTES = 12


class ServerKey:
    """Encrypts and decrypts signing keys (AES-256-GCM). Its `repr` shows nothing."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.sha256(secret.encode()).digest()

    def seal(self, signing_key: bytes, agent_id: str, random_hex: Callable[[int], str]) -> str:
        """A signing key, encrypted and bound to its agent."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = bytes.fromhex(random_hex(_NONCE_BYTES))
        return (nonce + AESGCM(self._key).encrypt(nonce, signing_key, agent_id.encode())).hex()

    def unseal(self, sealed: str, agent_id: str) -> bytes | None:
        """The signing key; None if it was encrypted with another key, for another agent, or changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        content = bytes.fromhex(sealed)
        try:
            return AESGCM(self._key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], agent_id.encode())
        except InvalidTag:
            return None


def open_server_key(home: Path, random_hex: Callable[[int], str]) -> ServerKey:
    """The key of the server whose workspace this is; created if there is none."""
    from pitboss.core.errors import UserError

    store = open_secrets(home)
    key = key_for((VARIABLE,), environment, store)
    if key is not None:
        if len(key.reveal()) < SHORTEST_KEY:
            raise UserError(f"{VARIABLE} is too short", f"give at least {SHORTEST_KEY} random characters")
        return ServerKey(key.reveal())
    home.mkdir(parents=True, exist_ok=True)
    secret = random_hex(32)
    store.set(VARIABLE, secret)
    REDACTOR.add(secret)
    return ServerKey(secret)
