"""The budget is never passed, whatever the order of things; nothing that fits is refused."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.virtual import run
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.budgeted import Budget, Budgeted, may_have_charged
from pitboss.models.prices import FREE, flat, worst_case

ASK = ModelRequest("system", (Message("user", "hello"),), (), settings={"max_tokens": 100})
PRICE = flat(0, 10_000)  # a cent a token of the answer, so that a call's worst case is its max_tokens in cents
CENT = Decimal("0.01")


def ask(max_tokens: int) -> ModelRequest:
    return ModelRequest("", (), (), settings={"max_tokens": max_tokens})


class Provider:
    """Answers after a while at a cost, or fails."""

    name = "openai/some-model"

    def __init__(self, *plan: tuple[float, Decimal | BaseException | None]) -> None:
        self.plan = list(plan)
        self.asked = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        delay, outcome = self.plan[self.asked]
        self.asked += 1
        await asyncio.sleep(delay)
        if isinstance(outcome, BaseException):
            raise outcome
        return ModelReply(usage=Usage(1, 1), cost_usd=outcome)


def test_a_call_that_could_pass_the_limit_is_never_made() -> None:
    provider, budget = Provider((0, CENT)), Budget(CENT * 99)
    with pytest.raises(BudgetExceeded) as refused:
        run(Budgeted(provider, budget, PRICE).complete(ASK))
    assert provider.asked == 0
    assert str(refused.value) == ("$0 of $0.99 spent; the next call could cost $1: resume with a higher --max-cost-usd")


def test_a_call_that_just_fits_is_made_and_costs_what_it_cost() -> None:
    budget = Budget(Decimal(1))
    run(Budgeted(Provider((0, CENT)), budget, PRICE).complete(ASK))
    assert (budget.spent, budget.reserved, budget.uncertain) == (CENT, 0, 0)


def test_what_was_spent_before_a_resume_counts() -> None:
    with pytest.raises(BudgetExceeded, match=r"\$0.005 of \$1 spent"):
        run(Budgeted(Provider(), Budget(Decimal(1), Decimal("0.005")), PRICE).complete(ASK))


def test_a_bound_is_assumed_where_the_request_names_none() -> None:
    bare = ModelRequest("", (), ())
    with pytest.raises(BudgetExceeded, match=r"could cost \$40.96"):
        run(Budgeted(Provider(), Budget(ZERO), PRICE).complete(bare))


def test_a_limit_without_a_price_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(UserError, match="no price is known for openai/some-model") as refused:
        Budgeted(Provider(), Budget(Decimal(1)), None)
    assert "--price-in" in refused.value.hint


def test_without_a_limit_unknown_costs_are_counted_as_unknown() -> None:
    budget = Budget()
    run(Budgeted(Provider((0, None)), budget, None).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.unpriced) == (0, 0, 1)


def test_a_free_model_works_on_a_budget_of_nothing() -> None:
    budget = Budget(ZERO)
    run(Budgeted(Provider((0, ZERO)), budget, FREE).complete(ASK))
    assert budget.spent == 0


@pytest.mark.parametrize("bad", ["-1", "NaN", "Infinity"])
def test_a_limit_that_is_no_amount_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="--max-cost-usd must be an amount"):
        Budget(Decimal(bad))


def test_an_answer_without_a_cost_counts_at_its_worst() -> None:
    budget = Budget(Decimal(2))
    run(Budgeted(Provider((0, None)), budget, PRICE).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.reserved) == (0, 1, 0)


class Refused(Exception):
    status = 429


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def said(charged: bool) -> BaseException:
    error = TransientError("the client knows")
    error.charged = charged  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (TransientError("timed out"), True),
        (TimeoutError(), True),
        (asyncio.CancelledError(), True),
        (ConnectionResetError(), True),
        (caused(TransientError("down"), ConnectionRefusedError()), False),
        (caused(TransientError("busy"), Refused()), False),
        (UserError("bad key"), False),
        (BudgetExceeded("inner"), False),
        (said(False), False),
        (said(True), True),
    ],
)
def test_a_failure_costs_its_worst_unless_it_was_certainly_not_charged(error: BaseException, charged: bool) -> None:
    assert may_have_charged(error) is charged
    budget = Budget(Decimal(2))
    with pytest.raises(type(error)):
        run(Budgeted(Provider((0, error)), budget, PRICE).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.reserved) == (0, 1 if charged else 0, 0)


def test_a_call_waits_for_others_that_only_might_cost_too_much() -> None:
    async def both() -> None:
        model = Budgeted(Provider((5, CENT), (1, CENT)), Budget(Decimal("1.5")), PRICE)
        await asyncio.gather(model.complete(ASK), model.complete(ASK))
        assert model.budget.spent == 2 * CENT

    run(both())


def test_a_guess_does_not_wait() -> None:
    async def both() -> None:
        budget = Budget(Decimal("1.5"))
        provider = Provider((5, CENT))
        own = asyncio.create_task(Budgeted(provider, budget, PRICE).complete(ASK))
        await asyncio.sleep(0)
        with pytest.raises(BudgetExceeded, match="by calls under way"):
            await Budgeted(provider, budget, PRICE, patient=False).complete(ASK)
        await own

    run(both())


def test_a_waiting_call_can_be_cancelled_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        budget = Budget(Decimal("1.5"))
        model = Budgeted(Provider((5, CENT), (5, CENT)), budget, PRICE)
        first, second = asyncio.create_task(model.complete(ASK)), asyncio.create_task(model.complete(ASK))
        await asyncio.sleep(1)
        second.cancel()
        await asyncio.wait([first, second])
        assert second.cancelled()
        assert (budget.spent, budget.reserved, budget.uncertain) == (CENT, 0, 0)

    run(main())


calls_ = st.tuples(
    st.integers(0, 20),  # starts at
    st.integers(1, 60),  # worst case in cents
    st.integers(0, 100),  # real cost in percent of it
    st.integers(0, 20),  # takes
    st.sampled_from(["answer", "answer", "answer", "no cost", "timeout", "refused"]),
    st.one_of(st.none(), st.integers(0, 15)),  # is cancelled after
    st.booleans(),  # waits for others
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 200), st.lists(calls_, max_size=12))
def test_whatever_the_interleaving_the_limit_is_never_passed_and_what_fits_is_let_through(
    limit: int, plan: list[tuple[int, int, int, int, str, int | None, bool]]
) -> None:
    budget = Budget(CENT * limit)
    paid = ZERO

    class World:
        name = "openai/some-model"

        async def complete(self, request: ModelRequest) -> ModelReply:
            nonlocal paid
            number = request.settings["call"]
            _, worst, percent, takes, outcome, _, _ = plan[number]
            assert budget.spent + budget.uncertain + budget.reserved <= CENT * limit
            cost = CENT * worst * percent / 100
            await asyncio.sleep(takes)
            if outcome == "refused":
                raise UserError("no")
            paid += cost  # the provider charges, whether we hear of it or not
            if outcome == "timeout":
                raise TransientError("lost")
            return ModelReply(cost_usd=None if outcome == "no cost" else cost)

    async def one(number: int) -> None:
        start, worst, _, _, _, _, patient = plan[number]
        await asyncio.sleep(start)
        request = ModelRequest("", (), (), settings={"max_tokens": worst, "call": number})
        fitted = budget.fits(CENT * worst)
        known = budget.spent + budget.uncertain
        try:
            await Budgeted(World(), budget, PRICE, patient=patient).complete(request)
        except BudgetExceeded:
            assert not fitted
            if patient:  # even with nobody else under way it would not have fitted
                assert budget.spent + budget.uncertain + CENT * worst > CENT * limit
            else:
                assert known <= budget.spent + budget.uncertain
        except (UserError, TransientError):
            pass

    async def everybody() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(len(plan))]
        for task, (start, _, _, _, _, cancelled, _) in zip(tasks, plan, strict=True):
            if cancelled is not None:
                asyncio.get_running_loop().call_later(start + cancelled, task.cancel)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [error for error in done if isinstance(error, Exception)] == []

    run(everybody())
    assert paid <= budget.spent + budget.uncertain <= CENT * limit
    assert budget.reserved == 0
    assert worst_case(PRICE, ask(7), 7) == CENT * 7
