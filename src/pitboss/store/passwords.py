"""Hashes of passwords: scrypt with a salt for each, at a cost that makes guessing slow.

The parameters are stored with each hash, so that they can be raised later. The only rule for a password is its length. Few hashes
are computed at once, because each takes 32 MB.
"""

import hashlib
import hmac
import threading

from pitboss.core.errors import UserError

SHORTEST, LONGEST = 12, 1_024
LOG_N, R, P = 15, 8, 3
SALT_BYTES, HASH_BYTES = 16, 32
NO_PASSWORD = "$".join(("scrypt", str(LOG_N), str(R), str(P), "00" * SALT_BYTES, "00" * HASH_BYTES))
"""A hash that no password fits: comparing with it takes as long as with the one of a user."""
_MAX_MEMORY = 96 * 1_024 * 1_024
_TURN = threading.BoundedSemaphore(2)


def check_password(password: str) -> None:
    """Raise unless a new password has an allowed length. The message does not repeat it."""
    if len(password) < SHORTEST:
        raise UserError(f"a password has at least {SHORTEST} characters", "a few unrelated words make a good one")
    if len(password) > LONGEST:
        raise UserError(f"a password has at most {LONGEST} characters")


def hash_password(password: str, salt: str, log_n: int = LOG_N, p: int = P) -> str:
    """The hash of a password as it is stored. `salt` is random text in hex; `log_n` and `p` are the cost."""
    return "$".join(("scrypt", str(log_n), str(R), str(p), salt, _scrypt(password, salt, log_n, R, p)))


def is_password(password: str, stored: str) -> bool:
    """Whether a password fits a stored hash. Takes equally long for a wrong one."""
    if len(password) > LONGEST:
        return False
    kind, log_n, r, p, salt, expected = stored.split("$")
    return kind == "scrypt" and hmac.compare_digest(_scrypt(password, salt, int(log_n), int(r), int(p)), expected)


def _scrypt(password: str, salt: str, log_n: int, r: int, p: int) -> str:
    secret = password.encode("utf-8", "surrogatepass")
    with _TURN:
        return hashlib.scrypt(
            secret, salt=bytes.fromhex(salt), n=1 << log_n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=HASH_BYTES
        ).hex()
