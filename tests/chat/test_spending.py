"""The money of the chat: its own budget for each person and day, and what is recorded."""

import asyncio
from decimal import Decimal

import pytest

from pitboss.bootstrap.workspace import Workspace
from pitboss.chat.spending import ChatBudget, ChatBudgeted
from pitboss.core.errors import BudgetExceeded
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.call import DirectClient
from pitboss.models.prices import flat
from pitboss.models.scripted import ScriptedModel
from pitboss.store.budgets import Budgets
from pitboss.store.spend import spend

PRICE = flat(Decimal(1), Decimal(10))
REQUEST = ModelRequest("system", (Message("user", "question"),), (), settings={"max_tokens": 1_000})
CENT = Decimal("0.01")


@pytest.fixture
def person_name(request: pytest.FixtureRequest) -> str:
    return f"person of {request.node.name}"[:40]


def client(workspace: Workspace, person_name: str, daily: str, *costs: Decimal | None) -> ChatBudgeted:
    budget = ChatBudget(workspace.database, "local", person_name, Decimal(daily))
    model = ScriptedModel([ModelReply("yes", cost_usd=cost) for cost in costs], "scripted/priced")
    return ChatBudgeted(DirectClient(model), budget, PRICE)


def test_every_reply_is_counted_for_the_day(workspace: Workspace, person_name: str) -> None:
    model = client(workspace, person_name, "1", CENT, CENT)
    for _ in range(2):
        assert asyncio.run(model.complete(REQUEST)).text == "yes"
    day = Budgets(workspace.database).get(f"chat/{person_name}")
    assert (day.spent_usd, day.reserved_usd) == (2 * CENT, 0)
    listed = [row for row in spend(workspace.database, owner="local") if row.skill == "(chat)"]
    assert listed[-1].calls >= 2
    assert listed[-1].model == "scripted/priced"
    assert Budgets(workspace.database).get("local").spent_usd == 0, "the budget of runs is another one"


def test_a_call_that_could_exceed_the_budget_is_not_made(workspace: Workspace, person_name: str) -> None:
    model = client(workspace, person_name, "0.02", CENT, CENT)
    asyncio.run(model.complete(REQUEST))
    with pytest.raises(
        BudgetExceeded, match=r"the chat may spend \$0.02 a day \(setting chat_daily_usd\): \$0.01 is used"
    ):
        asyncio.run(model.complete(REQUEST))
    assert Budgets(workspace.database).get(f"chat/{person_name}").spent_usd == CENT


def test_a_used_up_budget_is_refused_before_anything_is_opened(workspace: Workspace, person_name: str) -> None:
    model = client(workspace, person_name, "0.02", 2 * CENT)
    asyncio.run(model.complete(REQUEST))
    with pytest.raises(BudgetExceeded, match="is used today"):
        model.budget.require()
    ChatBudget(workspace.database, "local", f"{person_name} 2", Decimal("0.02")).require()


def test_a_reply_of_unknown_cost_counts_as_the_most_that_it_can_cost(workspace: Workspace, person_name: str) -> None:
    model = client(workspace, person_name, "1", None)
    asyncio.run(model.complete(REQUEST))
    spent = Budgets(workspace.database).get(f"chat/{person_name}").spent_usd
    assert spent >= 1_000 * Decimal(10) / 1_000_000


def test_without_a_limit_everything_is_counted_and_nothing_refused(workspace: Workspace, person_name: str) -> None:
    model = client(workspace, person_name, "0", Decimal(50))
    asyncio.run(model.complete(REQUEST))
    model.budget.require()
    assert not model.budget.is_limited
    assert Budgets(workspace.database).get(f"chat/{person_name}").spent_usd == 50
