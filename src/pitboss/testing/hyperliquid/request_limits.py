"""Limits of requests: weight of one IP in a minute, and the budget of an address by what it has traded."""

from collections import deque
from typing import Any

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.account import FakeAccount
from pitboss.testing.hyperliquid.replies import venue_text

LIGHT = frozenset(
    {"l2Book", "allMids", "clearinghouseState", "orderStatus", "spotClearinghouseState", "exchangeStatus"}
)
BY_ROWS = frozenset(
    {"userFills", "userFillsByTime", "userFunding", "fundingHistory", "historicalOrders", "recentTrades"}
)
TRICKLE_MS = 10 * SECOND_MS
EXPIRED_COST = 5


def info_weight(kind: str, reply: Any) -> int:
    """The weight of an info request, rows of its reply included."""
    rows = len(reply) if isinstance(reply, list) else 0
    weight = 2 if kind in LIGHT else 60 if kind == "userRole" else 20
    if kind in BY_ROWS:
        return weight + rows // 20
    return weight + rows // 60 if kind == "candleSnapshot" else weight


def action_count(action: dict[str, Any]) -> int:
    """How many requests an action counts as: the length of its batch."""
    for name in ("orders", "cancels", "modifies"):
        batch = action.get(name)
        if isinstance(batch, list):
            return max(1, len(batch))
    return 1


class IpWeight:
    """The weight of the last minute."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.current = 0
        self.highest = 0
        self._recent: deque[tuple[Instant, int]] = deque()

    def allows(self, now: Instant) -> bool:
        """Whether one more request is answered at all."""
        while self._recent and self._recent[0][0] <= now - MINUTE_MS:
            self.current -= self._recent.popleft()[1]
        return not self.most or self.current < self.most

    def add(self, now: Instant, weight: int) -> None:
        """Count a request that was answered."""
        self.current += weight
        self.highest = max(self.highest, self.current)
        self._recent.append((now, weight))


def budget_cap(account: FakeAccount) -> int:
    """How many requests an address may send in all."""
    return account.requests_cap_base + int(account.volume)


def budget_refusal(account: FakeAccount, action: dict[str, Any], now: Instant) -> str:
    """Count an action against the budget of its address: empty, or why it is refused. Without budget, one request in 10 s."""
    count, cap = action_count(action), budget_cap(account)
    is_cancel = str(action.get("type", "")).startswith(("cancel", "scheduleCancel"))
    limit = min(cap + 100_000, 2 * cap) if is_cancel else cap
    if account.requests_used + count > limit:
        if now - account.last_trickle < TRICKLE_MS:
            return refusals.ADDRESS_BUDGET.format(
                used=account.requests_used + count, cap=limit, volume=venue_text(round(account.volume, 2))
            )
        account.last_trickle = now
    account.requests_used += count
    return ""
