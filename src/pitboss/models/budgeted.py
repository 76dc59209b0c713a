"""`Budget` and `Budgeted`: a run never spends more than it may.

The budget is judged before a call, by the most that the call can cost: that much is set aside while it is under way and
settled with what it did cost. Here a call is one try: who tries again stands around this. Nothing here knows prices,
providers or databases: a resumed run begins with what its stored answers cost and with what was noted as in doubt, which is
done before a call is made, so that a kill at any moment forgets nothing. One event loop, as everything in a run.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import ROUND_CEILING, Decimal

from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.core.money import ZERO, exact, text
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.cached import kept
from pitboss.models.prices import ModelPrice, worst_case
from pitboss.models.providers import MAX_TOKENS

CENT_PARTS = Decimal("0.000001")
SPARE = Decimal("0.5")
"""What is noted beyond the calls under way, as a share of them: most of the next ones then need no note of their own."""


class Budget:
    """The money of one run, shared by all its calls.

    `spent` is known cost. `uncertain` is the worst case of calls that failed in a way that may have been charged, or whose
    answer came without any cost: it counts against the limit and is reported apart. `unpriced` counts answers whose cost
    nobody knows and for which there is no bound either (only possible without a limit). The limit is kept as long as no
    call costs more than its worst case; a provider that charges more than its own price list is believed and counted.

    `unkept` is the part of `spent` for replies that nobody stores. With what is uncertain and what is set aside it is in
    doubt: no stored answer will ever tell of it, so `note` is told, no later than a call is made, that it may come to that.
    """

    def __init__(
        self,
        limit_usd: Decimal | None = None,
        spent: Decimal = ZERO,
        uncertain: Decimal = ZERO,
        note: Callable[[Decimal], None] | None = None,
    ) -> None:
        if limit_usd is not None and not (limit_usd.is_finite() and limit_usd >= 0):
            raise UserError(f"--max-cost-usd must be an amount, not {limit_usd}", "for example --max-cost-usd 2.50")
        self.limit_usd = limit_usd
        self.spent = spent
        self.uncertain = uncertain
        self.unkept = ZERO
        self.unpriced = 0
        self._note = note
        self._noted = uncertain
        self._reserved = ZERO
        self._open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def reserved(self) -> Decimal:
        """Set aside for calls that are under way."""
        return self._reserved

    @property
    def under_way(self) -> int:
        """Calls for which something is set aside."""
        return self._open

    @exact
    def fits(self, worst: Decimal) -> bool:
        """Whether a call that can cost this much may be made now."""
        return self.limit_usd is None or self.spent + self.uncertain + self._reserved + worst <= self.limit_usd

    @exact
    def reserve(self, worst: Decimal) -> None:
        """Set the worst case of a call aside, or refuse the call."""
        if not self.fits(worst):
            raise BudgetExceeded(self._refusal(worst))
        self._write_down(worst)
        self._reserved += worst
        self._open += 1

    async def reserve_in_turn(self, worst: Decimal) -> None:
        """The same, but where only calls under way stand in between, wait for them: most cost far less than they might."""
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
    def settle(self, worst: Decimal, cost: Decimal, kept: bool = True) -> None:
        """A call that was set aside has cost this much. Not `kept`: its reply will not be stored."""
        self.spent += cost
        if not kept:
            self.unkept += cost
        self._release(worst)
        self._write_down(ZERO)

    @exact
    def keep(self, worst: Decimal) -> None:
        """Nobody will ever know what a call that was set aside has cost: assume the worst."""
        self.uncertain += worst
        self._release(worst)

    @exact
    def close(self) -> None:
        """The run has stopped in good order: note what is in doubt and not a cent more."""
        doubt = self._doubt()
        if self._note is not None and doubt != self._noted:
            with suppress(UserError):  # what was noted before is enough, if more than need be
                self._note(doubt)
                self._noted = doubt

    def _doubt(self) -> Decimal:
        return self.uncertain + self.unkept + self._reserved

    def _write_down(self, worst: Decimal) -> None:
        """Note what will be in doubt with one more call, unless enough has been noted already."""
        doubt = self._doubt() + worst
        if self._note is None or doubt <= self._noted:
            return
        total = doubt + (self._reserved + worst) * SPARE
        if self.limit_usd is not None:  # more than that is never spent
            total = max(doubt, min(total, self.limit_usd - self.spent + self.unkept))
        self._note(total)
        self._noted = total

    def _release(self, worst: Decimal) -> None:
        self._reserved -= worst
        self._open -= 1
        while self._waiting:  # each looks for itself: what did not fit a moment ago may now, and the next one too
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)

    @exact
    def _fits_alone(self, worst: Decimal) -> bool:
        return self.limit_usd is None or self.spent + self.uncertain + worst <= self.limit_usd

    def _refusal(self, worst: Decimal) -> str:
        gone = f"{usd(self.spent)} of {usd(self.limit_usd or ZERO)} spent"
        if self.uncertain:
            gone += f", up to {usd(self.uncertain)} more by calls that were cut off and may have been charged"
        if self._reserved:
            gone += f", up to {usd(self._reserved)} by calls under way"
        return f"{gone}; the next call could cost {usd(worst)}: resume with a higher --max-cost-usd"


def usd(amount: Decimal) -> str:
    """An amount for a person to read, never rounded down."""
    return f"${text(amount.quantize(CENT_PARTS, ROUND_CEILING))}"


class Budgeted:
    """Asks only what the budget can pay.

    A failure costs nothing only where that is certain (see `may_have_charged`). With `patient` off, a call that fits only
    once others have settled is refused at once: for guesses, which are not worth waiting for.
    """

    def __init__(
        self,
        inner: Model,
        budget: Budget,
        price: ModelPrice | None,
        *,
        max_tokens: int = MAX_TOKENS,
        patient: bool = True,
    ) -> None:
        if budget.limit_usd is not None and price is None:
            raise UserError(
                f"no price is known for {inner.name}, so --max-cost-usd cannot be kept",
                "give --price-in and --price-out (USD per million tokens)",
            )
        self.name = inner.name
        self.inner = inner
        self.budget = budget
        self.price = price
        self._max_tokens = max_tokens
        self._patient = patient

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask, if the worst case can be paid."""
        known = self.worst(request)
        worst = ZERO if known is None else known
        if self._patient:
            await self.budget.reserve_in_turn(worst)
        else:
            self.budget.reserve(worst)
        with self._settled_if_it_fails(worst):
            reply = await self.inner.complete(request)
        if reply.cost_usd is not None:
            self.budget.settle(worst, reply.cost_usd, kept(reply))
        else:
            self.budget.unpriced += known is None
            self.budget.keep(worst)
        return reply

    def worst(self, request: ModelRequest) -> Decimal | None:
        """The most that one try of this request can cost; None where nobody knows its price."""
        return worst_case(self.price, request, self._bound(request))

    def _bound(self, request: ModelRequest) -> int:
        asked = request.settings.get("max_tokens")
        return asked if isinstance(asked, int) and asked > 0 else self._max_tokens

    @contextmanager
    def _settled_if_it_fails(self, worst: Decimal) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # a cancelled call may have been charged like any other
            if may_have_charged(error):
                self.budget.keep(worst)
            else:
                self.budget.settle(worst, ZERO)
            raise


def may_have_charged(error: BaseException) -> bool:
    """Whether a failed call can have cost something. Certainly not where the provider refused it or was never reached.

    A client that knows says so: `error.charged = False`. Otherwise the chain of causes is looked at for a refused
    connection, an unknown host or a status of 4xx other than 408; whatever else is left may have been answered and paid.
    """
    seen: BaseException | None = error
    while seen is not None:
        charged = getattr(seen, "charged", None)
        if isinstance(charged, bool):
            return charged
        if isinstance(seen, UserError | BudgetExceeded | ConnectionRefusedError):
            return False
        if any(kind.__name__ in _UNREACHED for kind in type(seen).__mro__):
            return False
        status = getattr(seen, "status", None) or getattr(seen, "status_code", None)
        if isinstance(status, int) and 400 <= status < 500 and status != 408:
            return False
        seen = seen.__cause__
    return True


_UNREACHED = frozenset({"gaierror", "ClientConnectorError"})
"""By name, as the clients that raise them are imported only where they are used."""
