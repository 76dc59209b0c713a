"""The rate limits of the exchange, kept with a reserve: how long a request has to wait, and what stops after a 429. Pure.

The exchange allows 1,200 weight in any 60 s per address of the network. This budget uses at most 80 % of it, and keeps a fifth of
that for what reduces risk: cancels, stops and exits. After a refusal opens stop, and what reduces risk goes first. Random numbers
are passed in. The limit of an account's own actions is in `action_budget`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant

RequestClass = Literal["open", "read", "resolve", "reduce", "cancel"]
"""What a request is for: adding risk, reading, ending a doubt, reducing risk (stops, exits), or cancelling."""

EXCHANGE_WEIGHT = 1_200
WINDOW_MS = MINUTE_MS
BUDGET = EXCHANGE_WEIGHT * 8 // 10
SHARES: Mapping[RequestClass, int] = {
    "open": BUDGET * 6 // 10,
    "read": BUDGET * 7 // 10,
    "resolve": BUDGET * 8 // 10,
    "reduce": BUDGET * 19 // 20,
    "cancel": BUDGET,
}
"""How much of the budget each class may use: opens leave enough to look after what they open, reads enough for exits, and
exits something for cancels."""
FIRST_BACKOFF_MS = SECOND_MS // 2
LONGEST_BACKOFF_MS = 30 * SECOND_MS
LONGEST_REDUCE_BACKOFF_MS = 3 * SECOND_MS // 2
"""A cancel leaves within two seconds even while the exchange refuses everything."""

_LIGHT = frozenset(
    ("l2Book", "allMids", "clearinghouseState", "orderStatus", "spotClearinghouseState", "exchangeStatus")
)
_BY_ROWS = frozenset(("userFills", "userFillsByTime", "userFunding", "fundingHistory", "historicalOrders"))
ROWS_PER_WEIGHT = 20
CANDLES_PER_WEIGHT = 60


def info_weight(kind: str, rows: int = 0) -> int:
    """Return the weight of an info request with a reply of so many rows."""
    if kind in _LIGHT:
        return 2
    if kind == "userRole":
        return 60
    if kind == "candleSnapshot":
        return 20 + -(-rows // CANDLES_PER_WEIGHT)
    return 20 + (-(-rows // ROWS_PER_WEIGHT) if kind in _BY_ROWS else 0)


def action_weight(orders: int) -> int:
    """Return the weight of a signed action with so many orders or cancels."""
    return 1 + orders // 40


class RateBudget:
    """The requests of one process. `unit_random` gives numbers from 0 to 1 for the jitter of backoffs."""

    def __init__(self, unit_random: Callable[[], float]) -> None:
        self._random = unit_random
        self._sent: deque[tuple[Instant, int]] = deque()
        self._used = 0
        self._refusals = 0
        self._opens_from: Instant = 0
        self._reduces_from: Instant = 0
        self._last_at: Instant = 0

    def wait_ms(self, kind: RequestClass, weight: int, now: Instant) -> int:
        """Return how long a request has to wait; 0 if it may be sent now."""
        self._forget(now)
        wait = max(0, (self._opens_from if kind in ("open", "read") else self._reduces_from) - now)
        limit = SHARES[kind]
        if self._used + weight <= limit:
            return wait
        excess = self._used + weight - limit
        for at, sent in self._sent:
            excess -= sent
            if excess <= 0:
                return max(wait, at + WINDOW_MS - now)
        return max(wait, WINDOW_MS)

    def spend(self, weight: int, now: Instant) -> None:
        """Count a request that is sent now, before its reply is known."""
        self._forget(now)
        if self._sent and self._sent[-1][0] >= now:
            at, sent = self._sent.pop()
            self._sent.append((at, sent + weight))
        else:
            self._sent.append((now, weight))
        self._used += weight

    def on_refusal(self, now: Instant) -> None:
        """Back off after a 429: a random time of up to a bound that doubles, so that clients do not return together."""
        self._forget(now)
        bound = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS << min(self._refusals, 10))
        self._refusals += 1
        self._opens_from = now + round(bound * self._random())
        self._reduces_from = now + round(min(bound, LONGEST_REDUCE_BACKOFF_MS) * self._random())

    def on_success(self) -> None:
        """Forget earlier refusals after a request that was answered."""
        self._refusals = 0

    def open_problem(self, now: Instant) -> str:
        """Say why no position may be opened because of the limits; empty if one may."""
        self._forget(now)
        if self._refusals or self._opens_from > now:
            return "the exchange has refused requests because there were too many"
        return ""

    @property
    def used(self) -> int:
        """The weight used in the last 60 s, as of the last call."""
        return self._used

    def _forget(self, now: Instant) -> None:
        back = self._last_at - now
        if back > 0:  # the clock was set back: what was sent stays as old as it was
            self._sent = deque((at - back, weight) for at, weight in self._sent)
            self._opens_from -= back
            self._reduces_from -= back
        self._last_at = now
        while self._sent and self._sent[0][0] <= now - WINDOW_MS:
            self._used -= self._sent.popleft()[1]
