"""What a run says about its cost: while it is executed, and in its result."""

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from decimal import Decimal

import pytest

from pitboss.bootstrap.model_stack import ModelConnection, open_connection
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.ports import ModelReply
from pitboss.core.trace import SILENT
from pitboss.models.budget import Budget
from pitboss.models.cached import Cached
from pitboss.models.call import DirectClient
from pitboss.models.scripted import ScriptedModel
from pitboss.runs.result_table import cost_rows
from pitboss.runs.spend_progress import SpendProgress
from pitboss.runs.stored import request_of
from pitboss.sim.speculation import Speculation, Tally
from pitboss.sim.watch import Watch
from pitboss.skill.load import read_skill
from pitboss.store.runs import Run
from pitboss.venues.perp.skill import PerpSkill


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([(0.1, "0")], ""),
        ([(0.1, "0.5")], "$0.50 spent"),
        ([(0.1, "0.5"), (0.2, "1.5")], "$1.50 spent, about $9.50 in all"),  # a dollar for a tenth, eight tenths to go
        ([(0.5, "2"), (0.75, "3"), (1.0, "4")], "$4.00 spent, about $4.00 in all"),
    ],
)
def test_the_bar_shows_dollars_spent_and_projected(steps: list[tuple[float, str]], text: str) -> None:
    budget, texts, shares = Budget(), list[str](), list[float]()
    report = SpendProgress(Watch(progress=shares.append, cost=texts.append), budget)
    for share, spent in steps:
        budget.spent = Decimal(spent)
        report.progress(share)
    assert texts[-1] == text
    assert shares == [share for share, _ in steps]


def test_after_a_resume_the_unused_requests_are_among_those_that_were_made() -> None:
    """The waste of earlier executions is in the tally of a resumed run, and their requests are not."""
    model = ScriptedModel([])
    cached = Cached(DirectClient(model), NoStore(), "run")
    tally = Tally(launched=28, used=21, wasted=33)
    text = ModelConnection(cached, cached=cached, speculation=Speculation(tally=tally)).summary()
    assert text.endswith("28 requested in advance, 7 of them unused")


class NoStore:
    """A store without replies."""

    def get(self, key: str) -> None:
        del key

    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> bool:
        raise NotImplementedError

    async def put_paid(self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply) -> None:
        raise NotImplementedError

    def paid_usd(self, run_id: str) -> Decimal:
        del run_id
        return Decimal(0)


def test_the_table_names_the_cost_of_unused_calls_as_the_page_does(run: Run) -> None:
    assert [name for name, _ in cost_rows(run)] == ["Cost of the model"]
    wasted = replace(run, cost_usd=Decimal("1.25"), wasted_usd=Decimal("0.25"))
    assert cost_rows(wasted) == [("Cost of the model", "$1.25"), ("of it unused speculative calls", "$0.25")]


def test_the_model_connection_of_a_run_leaves_no_file_open(
    workspace: Workspace, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "test-key-123456")
    request = replace(request_of(run), model="groq/m", any_price=True)
    skill = read_skill(request.skill, PerpSkill)

    async def ask_once() -> None:
        async with AsyncExitStack() as stack:
            connection = await open_connection(stack, workspace, request, skill, run.id, SILENT)
            assert connection.cached is not None
            assert connection.cached._replies.find("no such key") is None  # opens the connection for reading

    asyncio.run(ask_once())
    before = len(os.listdir("/dev/fd"))
    asyncio.run(ask_once())
    assert len(os.listdir("/dev/fd")) == before
