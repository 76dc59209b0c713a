"""`SignIn`: the start token of one server, for the person who started it. The link with it works once, the token until the server ends.

Credentials of users are in `credentials.py`.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from pitboss.bootstrap.accounts import digest_of as digest


@dataclass
class SignIn:
    """The start token of one server, by its digest, and the source of new secrets."""

    start_token_digest: str
    random_hex: Callable[[int], str]
    link_used: bool = False
    _lock: Lock = field(default_factory=Lock)

    def is_start_token(self, token: str) -> bool:
        """Whether this is the start token."""
        return hmac.compare_digest(digest(token), self.start_token_digest)

    def use_link(self, token: str) -> bool:
        """Whether the one-time link with this token may be used now. Of several callers one gets True."""
        if not self.is_start_token(token):
            return False
        with self._lock:
            was_used, self.link_used = self.link_used, True
        return not was_used
