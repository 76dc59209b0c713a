"""Signatures of protocol v2: the token never travels, and the signature binds everything that the server acts upon.

From the token both sides derive a key id, which is sent, and a signing key, which is not. The signature is HMAC-SHA256 over the
method, the path with its query, the host, the agent, the idempotency key, the nonce, the time, and the SHA-256 of the body's
bytes as they are sent. A write uses a nonce of the server, once; a read has none.
"""

import hashlib
import hmac

from pitboss.core.noun import noun

PROTOCOL = "2"
_LABEL = b"sns v2"


@noun
class SignedParts:
    """What a signature of protocol v2 covers, besides the body. Empty texts stand for absent headers."""

    method: str
    path: str
    """As it is sent, with the query: `/api/agents/context?agentId=a&commentLimit=5`."""
    host: str
    agent_id: str
    timestamp: str
    nonce: str = ""
    idempotency_key: str = ""


def key_id(token: str) -> str:
    """The public name of a token, 32 hex digits."""
    return _derive(token, b"key id").hex()[:32]


def signing_key(token: str) -> bytes:
    """The key that signs, 32 bytes. The token cannot be computed from it."""
    return _derive(token, b"signing key")


def _derive(token: str, purpose: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) for one block."""
    secret = hmac.new(_LABEL, token.encode(), hashlib.sha256).digest()
    return hmac.new(secret, purpose + b"\x01", hashlib.sha256).digest()


def sign_v2(key: bytes, parts: SignedParts, body: bytes) -> str:
    """The signature of a request, in hex."""
    lines = (
        _LABEL.decode(),
        parts.method.upper(),
        parts.path,
        parts.host.lower(),
        parts.agent_id,
        parts.idempotency_key,
        parts.nonce,
        parts.timestamp,
        hashlib.sha256(body).hexdigest(),
    )
    # The lengths keep two different lists of parts from giving the same text.
    payload = "\n".join(f"{len(line)}:{line}" for line in lines)
    return hmac.new(key, payload.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
