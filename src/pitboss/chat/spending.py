"""The money of the chat: a budget of its own for each person and day, reserved before each call and recorded after it.

The budget is that of `store/budgets.py` under a key of its own, so it holds over all processes and never touches the budget of
runs. What was spent is listed with all other spending, under the name `(chat)` in place of a skill.
"""

from decimal import Decimal

from pitboss.bootstrap.machine import random_hex
from pitboss.core.errors import BudgetExceeded
from pitboss.core.money import ZERO, exact
from pitboss.core.ports import ModelRequest
from pitboss.models.budget import usd
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.prices import ModelPrice
from pitboss.models.token_bounds import worst_case
from pitboss.store.budgets import OWN, Budgets
from pitboss.store.chat_spend import record_chat_cost
from pitboss.store.database import Database

NO_LIMIT = Decimal(10) ** 12
KEY = "chat/"
"""Before the name of a person in the table of budgets."""


class ChatBudget:
    """What one person may spend on the chat today. It writes what was spent, and nothing else."""

    def __init__(self, database: Database, owner: str, person: str, daily_usd: Decimal) -> None:
        """`owner` is whose spending it is listed with, `person` whose budget it is; `daily_usd` 0 stands for no limit."""
        self._database = database
        self._budgets = Budgets(database)
        self._owner = owner
        self._key = f"{KEY}{person}"[:64]
        self._daily_usd = daily_usd

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return bool(self._daily_usd)

    def require(self) -> None:
        """Raise `BudgetExceeded` if nothing is left."""
        today = self._budgets.get(self._key)
        if self._daily_usd and today.spent_usd + today.reserved_usd >= self._daily_usd:
            raise BudgetExceeded(self._refusal(ZERO))

    def reserve(self, worst_usd: Decimal) -> str:
        """Reserve what a call may cost and return the name of the reservation. Raises `BudgetExceeded`."""
        name = f"{KEY}{random_hex(16)}"
        try:
            self._budgets.reserve(self._key, name, OWN, worst_usd, self._daily_usd or NO_LIMIT)
        except BudgetExceeded:
            raise BudgetExceeded(self._refusal(worst_usd)) from None
        return name

    def settle(self, reservation: str, spent_usd: Decimal) -> None:
        """Replace a reservation by what the call came to."""
        self._budgets.settle(reservation, OWN, spent_usd)

    def record(self, model: str, cost_usd: Decimal | None) -> None:
        """Record the cost of a reply, None if it is unknown."""
        unpriced = cost_usd is None
        record_chat_cost(self._database, self._owner, model, unpriced, cost_usd or ZERO)

    @exact
    def _refusal(self, worst_usd: Decimal) -> str:
        today = self._budgets.get(self._key)
        cost = f", and the next call could cost {usd(worst_usd)}" if worst_usd else ""
        return (
            f"the chat may spend {usd(self._daily_usd)} a day (setting chat_daily_usd): "
            f"{usd(today.spent_usd + today.reserved_usd)} is used today{cost}"
        )


class ChatBudgeted(ModelClient):
    """Makes a call only if the day's budget covers the most that it can cost. One call here is one attempt."""

    def __init__(self, inner: ModelClient, budget: ChatBudget, price: ModelPrice | None) -> None:
        self.name = inner.name
        self.inner = inner
        self.budget = budget
        self.price = price

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Reserve, call, settle, record."""
        worst = worst_case(self.price, request) or ZERO
        try:
            reservation = self.budget.reserve(worst)
        except BudgetExceeded as error:
            return CallResult(failure=Failure("budget", "budget", str(error)))
        sent_before, spent = context.attempts, worst
        try:
            result = await self.inner.call(request, context)
            spent = worst if result.cost_usd is None else result.cost_usd
        except BaseException:
            if context.attempts == sent_before:  # nothing was sent, so nothing can have been charged
                spent = ZERO
            raise
        finally:
            self.budget.settle(reservation, spent)
        if result.reply is not None:
            self.budget.record(self.name, result.cost_usd)
        return result
