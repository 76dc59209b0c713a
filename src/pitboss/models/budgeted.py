"""`Budgeted`: makes a call only if its budget can pay the worst case. One call here is one attempt: retries are outside."""

from dataclasses import replace
from decimal import Decimal

from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.core.money import ZERO
from pitboss.core.ports import ModelRequest
from pitboss.models.budget import Budget
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.prices import ModelPrice
from pitboss.models.token_bounds import worst_case


class Budgeted(ModelClient):
    """Reserves the worst case of a call, then settles with what the call came to.

    With `patient` off, a call that fits only once others have settled is refused at once: for speculative calls, which
    are not worth waiting for.
    """

    def __init__(self, inner: ModelClient, budget: Budget, price: ModelPrice | None, *, patient: bool = True) -> None:
        if budget.limit_usd is not None and price is None:
            raise UserError(
                f"no price is known for {inner.name}, so --max-cost-usd cannot be kept",
                "give --price-in and --price-out (USD per million tokens)",
            )
        self.name = inner.name
        self.inner = inner
        self.budget = budget
        self.price = price
        self._patient = patient

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Make the call if its worst case can be paid."""
        worst_usd = self.worst(request)
        worst = ZERO if worst_usd is None else worst_usd
        try:
            if self._patient:
                await self.budget.reserve_in_turn(worst)
            else:
                self.budget.reserve(worst)
        except BudgetExceeded as error:
            return CallResult(failure=Failure("budget", "budget", str(error)))
        sent_before = context.attempts
        try:
            result = await self.inner.call(request, context)
        except BaseException:  # a cancelled call may have been charged if it was sent
            self.budget.settle(worst, ZERO, uncertain=worst if context.attempts > sent_before else ZERO)
            raise
        return self._settled(result, worst, has_price=worst_usd is not None)

    def worst(self, request: ModelRequest) -> Decimal | None:
        """The most that one attempt of this request can cost; None where the price is unknown."""
        return worst_case(self.price, request)

    def _settled(self, result: CallResult, worst: Decimal, has_price: bool) -> CallResult:
        """Settle with a result. Where its cost is unknown, its worst case is uncertain."""
        reply, cost_usd = result.reply, result.cost_usd
        uncertain = max(result.uncertain_usd, worst if cost_usd is None else ZERO)
        self.budget.unpriced += reply is not None and cost_usd is None and not has_price
        self.budget.settle(worst, cost_usd or ZERO, uncertain)
        return replace(result, uncertain_usd=uncertain)
