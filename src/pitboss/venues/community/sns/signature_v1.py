"""Signatures of protocol v1: HMAC-SHA256 with the runner token over nonce, time, hash of the canonical body, and agent.

The method and the path are not part of it, and the token travels with every request. What that permits is in
docs/community.md; `signature_v2.py` is the protocol without either weakness.
"""

import hashlib
import hmac
from typing import Any

from pitboss.venues.community.sns.canonical_json import canonical_json

TOKEN_PREFIX = "rnr_"


def body_hash(body: Any) -> str:
    """SHA-256 of a body in canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()


def sign_v1(token: str, nonce: str, timestamp: str, body: Any, agent_id: str) -> str:
    """The signature of a write, in hex. `timestamp` is milliseconds since the epoch in decimal."""
    payload = f"{nonce}.{timestamp}.{body_hash(body)}.{agent_id}"
    return hmac.new(token.encode(), payload.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def token_hash(token: str) -> str:
    """What the server stores of a token. Tokens are 256 random bits, so a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
