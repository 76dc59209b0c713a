"""`Agenda`: what the exchange does as time passes. Prices step, orders fill and fire, funding is paid, what is due is carried out.

The order at one instant is fixed: what was put on the agenda first, then prices, then resting orders, triggers, liquidations, and
funding at the first step of an hour.
"""

import heapq
from collections.abc import Callable

from pitboss.core.instant import DAY_MS, HOUR_MS, Instant
from pitboss.testing.hyperliquid.liquidation import liquidate_if_due
from pitboss.testing.hyperliquid.matching import sweep
from pitboss.testing.hyperliquid.state import ExchangeState, FundingMade, PricesMoved
from pitboss.testing.hyperliquid.triggers import fire_triggers

MOST_SCHEDULE_TRIGGERS = 10


class Agenda:
    """Time of one exchange. Nothing happens but in `advance`."""

    def __init__(self, state: ExchangeState) -> None:
        self._state = state
        self._due: list[tuple[Instant, int, Callable[[], None]]] = []
        self._count = 0
        self._next_step = self._after(state.now)
        self._hour = state.now // HOUR_MS

    def _after(self, at: Instant) -> Instant:
        step = self._state.rules.step_ms
        return at - at % step + step

    def at(self, instant: Instant, work: Callable[[], None]) -> None:
        """Do something at an instant; at once, on the next `advance`, if it is past."""
        self._count += 1
        heapq.heappush(self._due, (max(instant, self._state.now), self._count, work))

    def advance(self, to: Instant) -> None:
        """Let time pass up to an instant. Time never goes back."""
        state = self._state
        while True:
            due = self._due[0][0] if self._due else to + 1
            if due <= to and due <= self._next_step:
                state.now = max(state.now, due)
                heapq.heappop(self._due)[2]()
            elif self._next_step <= to:
                state.now = self._next_step
                self._next_step = self._after(state.now)
                self.step()
            else:
                break
        state.now = max(state.now, to)

    def step(self) -> None:
        """One step of all prices, and what follows."""
        state = self._state
        for coin, market in state.markets.items():
            market.step(state.now)
            if state.resting[coin]:
                sweep(state, market)
            if state.triggers[coin]:
                fire_triggers(state, market)
        for account in state.accounts.values():
            if account.positions:
                liquidate_if_due(state, account)
            if account.scheduled_cancel is not None and account.scheduled_cancel <= state.now:
                self._cancel_scheduled(account.address)
        if state.now // HOUR_MS != self._hour:
            self._hour = state.now // HOUR_MS
            self._pay_funding(self._hour * HOUR_MS)
        if state.listeners:
            state.tell(PricesMoved(state.now))

    def _cancel_scheduled(self, address: str) -> None:
        account = self._state.accounts[address]
        account.scheduled_cancel = None
        day = self._state.now // DAY_MS
        account.schedule_triggers[day] = account.schedule_triggers.get(day, 0) + 1
        for order in list(account.open_orders.values()):
            self._state.set_status(order, "scheduledCancel")

    def _pay_funding(self, hour: Instant) -> None:
        for coin, market in self._state.markets.items():
            rate, _ = market.close_hour(hour)
            if market.delisted or market.oracle <= 0:
                continue
            for account in self._state.accounts.values():
                payment = account.pay_funding(coin, market.oracle, rate, hour)
                if payment is not None and self._state.listeners:
                    self._state.tell(FundingMade(account.address, payment))
