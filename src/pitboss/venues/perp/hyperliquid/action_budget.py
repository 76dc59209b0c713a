"""The exchange's limit of the actions of one account: 10,000 for its whole life, and one more for each USDC traded. Pure.

The figure is the exchange's own; between two readings what is sent is subtracted. Opens stop while a reserve is left, which is
for stops and exits. Without any, the exchange takes one action in ten seconds; cancels have a higher limit of their own, so they
are always sent.
"""

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.venues.perp.hyperliquid.rate_budget import RequestClass

FIRST_ACTIONS = 10_000
"""The number of actions that every account has before it has traded."""
ACTION_RESERVE = FIRST_ACTIONS // 5
"""Opens stop when fewer actions than these are left, so that exits and stops can always be sent."""
TRICKLE_MS = 10 * SECOND_MS
"""How often the exchange takes an action of an account that has none left."""
READ_MS, REREAD_MS = 10 * MINUTE_MS, MINUTE_MS
"""How often the figure is read: usually, and after a refusal or a failure to read it."""


class ActionBudget:
    """The actions of one account."""

    def __init__(self) -> None:
        self.left = FIRST_ACTIONS
        """How many more actions the account may send, as far as known."""
        self._read_from: Instant = 0
        self._sent_at: Instant | None = None

    def wait_ms(self, kind: RequestClass, count: int, now: Instant) -> int:
        """Return how long an action has to wait because of this limit; 0 if it may be sent now."""
        if kind == "cancel" or self.left >= count or self._sent_at is None:
            return 0
        return max(0, min(TRICKLE_MS, self._sent_at + TRICKLE_MS - now))

    def spend(self, kind: RequestClass, count: int, now: Instant) -> None:
        """Count an action that is sent now."""
        self.left -= count
        if kind != "cancel":
            self._sent_at = now

    def on_refusal(self, now: Instant) -> None:
        """Note that the exchange refused an action because none is left; its figure is read soon."""
        self.left = min(self.left, 0)
        self._sent_at = now
        self._read_from = min(self._read_from, now)

    def on_read(self, left: int, now: Instant) -> None:
        """Set the exchange's figure."""
        self.left, self._read_from = left, now + READ_MS

    def on_read_failure(self, now: Instant) -> None:
        """Note that the figure could not be read."""
        self._read_from = now + REREAD_MS

    def is_read_due(self, now: Instant) -> bool:
        """Return whether the figure has to be read again; also after the clock was set back."""
        return not self._read_from - READ_MS <= now < self._read_from

    def open_problem(self) -> str:
        """Say why no position may be opened because of this limit; empty if one may."""
        if self.left < ACTION_RESERVE:
            return f"the account may send {max(0, self.left)} more actions, which are kept for exits"
        return ""
