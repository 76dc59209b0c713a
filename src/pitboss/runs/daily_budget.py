"""The daily budget of a user, as runs use it: what is reserved for a run before it begins, and the error of a refusal.

Every run that may cost money and has a limit on its cost reserves that limit before its first call, wherever it is started.
The reservations themselves are in `store/budgets.py`; the limit of a run without one is estimated by its command.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.core.money import ZERO, exact, text
from pitboss.sim.request import BacktestRequest
from pitboss.store.budgets import Budgets, RunLimit

HINT = "raise the setting daily_usd (0: no limit), or use --max-cost-usd"


def limit_of(workspace: Workspace, request: BacktestRequest) -> RunLimit | None:
    """What is reserved for a run; None without a daily budget or without a limit of the run."""
    daily_usd, most_usd = workspace.settings.daily_usd, request.max_cost_usd
    if not daily_usd or most_usd is None or not may_cost(request):
        return None
    return RunLimit(most_usd, daily_usd)


def require_room(workspace: Workspace, requests: Sequence[BacktestRequest]) -> None:
    """Raise `BudgetExceeded` if the limits of these runs together exceed what is left of the daily budget."""
    limits = [limit for request in requests if (limit := limit_of(workspace, request)) is not None]
    if limits:
        total_usd = sum((limit.most_usd for limit in limits), ZERO)
        Budgets(workspace.database).require(workspace.owner, total_usd, limits[0].daily_usd)


@contextmanager
def refused_by_budget() -> Iterator[None]:
    """Turn a refusal of the daily budget, before anything is spent, into a `UserError`."""
    try:
        yield
    except BudgetExceeded as error:
        raise UserError(str(error), HINT) from None


@exact
def daily_budget_line(workspace: Workspace, owner: str = "") -> str:
    """Today's budget of a user in one line; by default of the owner of the workspace."""
    owner = owner or workspace.owner
    limit_usd = workspace.settings.daily_usd
    if not limit_usd:
        return "there is no daily budget (setting daily_usd)"
    today = Budgets(workspace.database).get(owner)
    left_usd = max(ZERO, limit_usd - today.spent_usd - today.reserved_usd)
    return (
        f"{owner} may spend ${text(limit_usd)} a day (setting daily_usd): today ${text(today.spent_usd)} is spent, "
        f"${text(today.reserved_usd)} is reserved, ${text(left_usd)} is left"
    )
