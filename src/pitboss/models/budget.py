"""`Budget`: the money of one run, checked before each call by the most that the call can cost.

That amount is reserved while the call is under way and then settled with the real cost. Nothing here knows prices,
providers or databases: a resumed run starts with the cost of its stored replies and with the amount that was noted as
uncertain. The note is written before a call is made, so a kill at any moment loses nothing. One event loop per budget.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_CEILING, Decimal

from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.core.money import ZERO, exact, text

MICRO_USD = Decimal("0.000001")
SPARE = Decimal("0.5")
"""Share of the reserved amount that is noted in advance, so that most calls need no write of their own."""


class Budget:
    """The money of one run, shared by all its calls.

    `spent` is known cost. `uncertain` is the worst case of calls that failed in a way that may have been charged, or whose
    reply came without a cost: it counts against the limit and is reported separately. `unpriced` counts replies whose cost
    is unknown and has no bound either (only possible without a limit). The limit holds as long as no call costs more than
    its worst case; a provider that charges more than its own price list is believed and counted.

    The uncertain and the reserved amount appear in no stored reply, so `store_note` receives their sum before a call is
    made.
    """

    def __init__(
        self,
        limit_usd: Decimal | None = None,
        spent: Decimal = ZERO,
        uncertain: Decimal = ZERO,
        store_note: Callable[[Decimal], None] | None = None,
    ) -> None:
        if limit_usd is not None and not (limit_usd.is_finite() and limit_usd >= 0):
            raise UserError(f"--max-cost-usd must be an amount, not {limit_usd}", "for example --max-cost-usd 2.50")
        self.limit_usd = limit_usd
        self.spent = spent
        self.uncertain = uncertain
        self.unpriced = 0
        self._store_note = store_note
        self._stored_note = uncertain
        self._reserved = ZERO
        self._open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def reserved(self) -> Decimal:
        """Reserved for calls that are under way."""
        return self._reserved

    @property
    def under_way(self) -> int:
        """The number of calls with a reservation."""
        return self._open

    @exact
    def fits(self, worst: Decimal) -> bool:
        """Whether a call that can cost this much may be made now."""
        return self.limit_usd is None or self.spent + self.uncertain + self._reserved + worst <= self.limit_usd

    @exact
    def reserve(self, worst: Decimal) -> None:
        """Reserve the worst case of a call. Raises `BudgetExceeded` where it does not fit."""
        if not self.fits(worst):
            raise BudgetExceeded(self._refusal(worst))
        self._store_uncertain(worst)
        self._reserved += worst
        self._open += 1

    async def reserve_in_turn(self, worst: Decimal) -> None:
        """Reserve, waiting for calls under way if only their reservations prevent it: most cost far less than reserved."""
        while not self.fits(worst) and self._open and self._fits_alone(worst):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)
        self.reserve(worst)

    @exact
    def settle(self, worst: Decimal, cost: Decimal, uncertain: Decimal = ZERO) -> None:
        """Replace a reservation by the real cost and by the amount that will never be known."""
        self.spent += cost
        self.uncertain += uncertain
        self._release(worst)
        self._store_uncertain(ZERO)

    @exact
    def close(self) -> None:
        """Store the exact uncertain amount at the regular end of a run."""
        amount = self._unrecorded()
        if self._store_note is not None and amount != self._stored_note:
            with suppress(UserError):  # the earlier note is at least as high
                self._store_note(amount)
                self._stored_note = amount

    def _unrecorded(self) -> Decimal:
        return self.uncertain + self._reserved

    def _store_uncertain(self, worst: Decimal) -> None:
        """Store the amount that no stored reply covers once one more call is made, unless the stored note covers it."""
        amount = self._unrecorded() + worst
        if self._store_note is None or amount <= self._stored_note:
            return
        total = amount + (self._reserved + worst) * SPARE
        if self.limit_usd is not None:  # more than that is never spent
            total = max(amount, min(total, self.limit_usd - self.spent))
        self._store_note(total)
        self._stored_note = total

    def _release(self, worst: Decimal) -> None:
        self._reserved -= worst
        self._open -= 1
        while self._waiting:  # each waiting call checks again: several may fit now
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)

    @exact
    def _fits_alone(self, worst: Decimal) -> bool:
        return self.limit_usd is None or self.spent + self.uncertain + worst <= self.limit_usd

    def _refusal(self, worst: Decimal) -> str:
        used = f"{usd(self.spent)} of {usd(self.limit_usd or ZERO)} spent"
        if self.uncertain:
            used += f", up to {usd(self.uncertain)} more by calls that were cut off and may have been charged"
        if self._reserved:
            used += f", up to {usd(self._reserved)} by calls under way"
        return f"{used}; the next call could cost {usd(worst)}: resume with a higher --max-cost-usd"


def usd(amount: Decimal) -> str:
    """An amount as text, never rounded down."""
    return f"${text(amount.quantize(MICRO_USD, ROUND_CEILING))}"
