"""A clock for tests of servers and signers that never wait."""

from dataclasses import dataclass


@dataclass
class ManualClock:
    """A clock that shows `at`, which only tests change."""

    at: int

    def now(self) -> int:
        return self.at
