"""`Prompt`: the system and user text of one tick."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a model receives before its first reply."""

    system: str
    user: str

    @property
    def sha256(self) -> str:
        """Digest over both texts; the separator cannot occur in either."""
        return hashlib.sha256(f"{self.system}\n\x00\n{self.user}".encode()).hexdigest()
