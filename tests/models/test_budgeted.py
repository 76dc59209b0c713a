"""The budget is never exceeded in any order of calls, and no call that fits is refused."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.virtual_time import run
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.budget import Budget
from pitboss.models.budgeted import Budgeted
from pitboss.models.call import CallContext, CallResult, DirectClient, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.prices import FREE, flat
from pitboss.models.retried import Retried
from pitboss.models.token_bounds import worst_case

ASK = ModelRequest("system", (Message("user", "hello"),), (), settings={"max_tokens": 100})
PRICE = flat(0, 10_000)  # a cent a token of the answer, so that a call's worst case is its max_tokens in cents
CENT = Decimal("0.01")


def ask(max_tokens: int) -> ModelRequest:
    return ModelRequest("", (), (), settings={"max_tokens": max_tokens})


class ScriptedProvider(ModelClient):
    """Answers after a while at a cost, or fails."""

    name = "openai/some-model"

    def __init__(self, *plan: tuple[float, Decimal | Failure | BaseException | None]) -> None:
        self.plan = list(plan)
        self.call_count = 0

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        delay, outcome = self.plan[self.call_count]
        self.call_count += 1
        with context.sending():
            await asyncio.sleep(delay)
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, Failure):
            return CallResult(failure=outcome, attempts=1)
        return CallResult(self.reply(outcome), attempts=1)

    def reply(self, cost_usd: Decimal | None) -> ModelReply:
        return ModelReply(usage=Usage(1, 1), cost_usd=cost_usd)


def test_a_call_that_could_pass_the_limit_is_never_made() -> None:
    provider, budget = ScriptedProvider((0, CENT)), Budget(CENT * 99)
    with pytest.raises(BudgetExceeded) as refused:
        run(Budgeted(provider, budget, PRICE).complete(ASK))
    assert provider.call_count == 0
    assert str(refused.value) == ("$0 of $0.99 spent; the next call could cost $1: resume with a higher --max-cost-usd")


def test_a_call_that_just_fits_is_made_and_costs_what_it_cost() -> None:
    budget = Budget(Decimal(1))
    run(Budgeted(ScriptedProvider((0, CENT)), budget, PRICE).complete(ASK))
    assert (budget.spent, budget.reserved, budget.uncertain) == (CENT, 0, 0)


def test_what_was_spent_before_a_resume_counts() -> None:
    with pytest.raises(BudgetExceeded, match=r"\$0.005 of \$1 spent"):
        run(Budgeted(ScriptedProvider(), Budget(Decimal(1), Decimal("0.005")), PRICE).complete(ASK))


def test_a_bound_is_assumed_where_the_request_names_none() -> None:
    bare = ModelRequest("", (), ())
    with pytest.raises(BudgetExceeded, match=r"could cost \$40.96"):
        run(Budgeted(ScriptedProvider(), Budget(ZERO), PRICE).complete(bare))


def test_a_limit_without_a_price_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(UserError, match="no price is known for openai/some-model") as refused:
        Budgeted(ScriptedProvider(), Budget(Decimal(1)), None)
    assert "--price-in" in refused.value.hint


def test_without_a_limit_unknown_costs_are_counted_as_unknown() -> None:
    budget = Budget()
    run(Budgeted(ScriptedProvider((0, None)), budget, None).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.unpriced) == (0, 0, 1)


def test_a_free_model_works_on_a_budget_of_nothing() -> None:
    budget = Budget(ZERO)
    run(Budgeted(ScriptedProvider((0, ZERO)), budget, FREE).complete(ASK))
    assert budget.spent == 0


@pytest.mark.parametrize("bad", ["-1", "NaN", "Infinity"])
def test_a_limit_that_is_no_amount_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="--max-cost-usd must be an amount"):
        Budget(Decimal(bad))


def test_an_answer_without_a_cost_counts_at_its_worst() -> None:
    budget = Budget(Decimal(2))
    run(Budgeted(ScriptedProvider((0, None)), budget, PRICE).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.reserved) == (0, 1, 0)


LATE = Failure("retry", "timeout", "no answer")
REFUSED = Failure("retry", "busy", "too busy", status=429)


@pytest.mark.parametrize(
    ("failure", "is_charged"),
    [
        (LATE, True),
        (Failure("retry", "timeout", "gateway", status=408), True),
        (Failure("retry", "server", "down", status=500), True),
        (Failure("retry", "malformed", "half a reply"), True),
        (Failure("retry", "unreachable", "nobody there"), False),
        (REFUSED, False),
        (Failure("user", "bad_key", "bad key", status=401), False),
        (Failure("give_up", "paused", "turned away by the limiter"), False),
    ],
)
def test_a_failure_costs_its_worst_unless_it_was_certainly_not_charged(failure: Failure, is_charged: bool) -> None:
    budget = Budget(Decimal(2))
    result = run(Budgeted(ScriptedProvider((0, failure)), budget, PRICE).call(ASK, CallContext()))
    assert (result.failure, result.uncertain_usd) == (failure, 1 if is_charged else 0)
    assert (budget.spent, budget.uncertain, budget.reserved) == (0, 1 if is_charged else 0, 0)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), ConnectionResetError(), TimeoutError()])
def test_an_exception_costs_the_worst_of_a_request_that_was_sent(error: BaseException) -> None:
    budget = Budget(Decimal(2))
    with pytest.raises(type(error)):
        run(Budgeted(ScriptedProvider((0, error)), budget, PRICE).complete(ASK))
    assert (budget.uncertain, budget.reserved) == (1, 0)


def test_an_exception_before_anything_was_sent_costs_nothing() -> None:
    class CancelledProvider(ScriptedProvider):
        async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
            raise asyncio.CancelledError

    budget = Budget(Decimal(2))
    with pytest.raises(asyncio.CancelledError):
        run(Budgeted(CancelledProvider(), budget, PRICE).complete(ASK))
    assert (budget.uncertain, budget.reserved) == (0, 0)


@pytest.mark.parametrize(("failures", "uncertain"), [([LATE, LATE], 2), ([LATE, REFUSED], 1), ([LATE], 1)])
def test_a_budget_around_retries_counts_every_attempt_that_may_have_been_charged(
    failures: list[Failure], uncertain: int
) -> None:
    """As for the money of a day, which stands around the whole stack."""
    inner, day = Budget(), Budget(Decimal(9))
    provider = ScriptedProvider(*((0, failure) for failure in failures), (0, CENT))
    retried = Retried(Budgeted(provider, inner, PRICE), random=lambda: 0.0)
    run(Budgeted(retried, day, PRICE).complete(ASK))
    assert (day.spent, day.uncertain, day.reserved) == (CENT, uncertain, 0)


def test_a_call_waits_for_others_that_only_might_cost_too_much() -> None:
    async def both() -> None:
        model = Budgeted(ScriptedProvider((5, CENT), (1, CENT)), Budget(Decimal("1.5")), PRICE)
        await asyncio.gather(model.complete(ASK), model.complete(ASK))
        assert model.budget.spent == 2 * CENT

    run(both())


def test_a_guess_does_not_wait() -> None:
    async def both() -> None:
        budget = Budget(Decimal("1.5"))
        provider = ScriptedProvider((5, CENT))
        own = asyncio.create_task(Budgeted(provider, budget, PRICE).complete(ASK))
        await asyncio.sleep(0)
        with pytest.raises(BudgetExceeded, match="by calls under way"):
            await Budgeted(provider, budget, PRICE, patient=False).complete(ASK)
        await own

    run(both())


def test_a_waiting_call_can_be_cancelled_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        budget = Budget(Decimal("1.5"))
        model = Budgeted(ScriptedProvider((5, CENT), (5, CENT)), budget, PRICE)
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.lists(calls_, max_size=12))
def test_whatever_the_interleaving_the_limit_is_never_passed_and_what_fits_is_let_through(
    limit: int, plan: list[tuple[int, int, int, int, str, int | None, bool]]
) -> None:
    budget = Budget(CENT * limit)
    charged_usd = ZERO

    class PlanCheckingModel:
        name = "openai/some-model"

        async def complete(self, request: ModelRequest) -> ModelReply:
            nonlocal charged_usd
            number = request.settings["call"]
            _, worst, percent, takes, outcome, _, _ = plan[number]
            assert budget.spent + budget.uncertain + budget.reserved <= CENT * limit
            cost = CENT * worst * percent / 100
            await asyncio.sleep(takes)
            if outcome == "refused":
                raise UserError("no")
            charged_usd += cost  # the provider charges, whether we hear of it or not
            if outcome == "timeout":
                raise TransientError("lost")
            return ModelReply(cost_usd=None if outcome == "no cost" else cost)

    async def call_once(number: int) -> None:
        start, worst, _, _, _, _, patient = plan[number]
        await asyncio.sleep(start)
        request = ModelRequest("", (), (), settings={"max_tokens": worst, "call": number})
        fitted = budget.fits(CENT * worst)
        counted = budget.spent + budget.uncertain
        try:
            await Budgeted(DirectClient(PlanCheckingModel()), budget, PRICE, patient=patient).complete(request)
        except BudgetExceeded:
            assert not fitted
            if patient:  # it would not have fitted even without other calls under way
                assert budget.spent + budget.uncertain + CENT * worst > CENT * limit
            else:
                assert counted <= budget.spent + budget.uncertain
        except (UserError, TransientError):
            pass

    async def everybody() -> None:
        tasks = [asyncio.create_task(call_once(number)) for number in range(len(plan))]
        for task, (start, _, _, _, _, cancelled, _) in zip(tasks, plan, strict=True):
            if cancelled is not None:
                asyncio.get_running_loop().call_later(start + cancelled, task.cancel)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [error for error in outcomes if isinstance(error, Exception)] == []

    run(everybody())
    assert charged_usd <= budget.spent + budget.uncertain <= CENT * limit
    assert budget.reserved == 0
    assert worst_case(PRICE, ask(7)) == CENT * 7


# What is written down, so that a resumed run knows of it


class RecordedAmounts:
    """The amounts that were written; after a kill only the last one counts."""

    def __init__(self) -> None:
        self.lines: list[Decimal] = []

    def __call__(self, usd: Decimal) -> None:
        self.lines.append(usd)


def test_what_was_uncertain_before_a_resume_counts() -> None:
    with pytest.raises(BudgetExceeded, match=r"up to \$0.005 more by calls"):
        run(Budgeted(ScriptedProvider(), Budget(Decimal(1), uncertain=Decimal("0.005")), PRICE).complete(ASK))


def test_a_call_is_written_down_before_it_is_made() -> None:
    notebook = RecordedAmounts()
    notes: list[list[Decimal]] = []

    class NotesReadingProvider(ScriptedProvider):
        async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
            notes.append(list(notebook.lines))
            return await super().call(request, context)

    run(Budgeted(NotesReadingProvider((0, CENT)), Budget(store_note=notebook), PRICE).complete(ASK))
    assert len(notes[0]) == 1
    assert notes[0][0] >= 1


def test_a_call_that_cannot_be_written_down_is_not_made() -> None:
    def full(usd: Decimal) -> None:
        raise UserError("the disk is full")

    provider, budget = ScriptedProvider((0, CENT)), Budget(store_note=full)
    with pytest.raises(UserError, match="disk"):
        run(Budgeted(provider, budget, PRICE).complete(ASK))
    assert (provider.call_count, budget.reserved) == (0, 0)
    budget.close()  # what is written already is no less than what is true


def test_calls_of_about_the_same_size_are_not_written_down_one_by_one() -> None:
    async def main() -> None:
        notebook, count = RecordedAmounts(), 200
        budget = Budget(store_note=notebook)
        model = Budgeted(ScriptedProvider(*[(0, CENT)] * count), budget, PRICE)
        for number in range(count):
            await model.complete(ask(100 + number // 5))
        assert len(notebook.lines) == 1
        budget.close()
        assert notebook.lines[-1] == 0
        assert len(notebook.lines) == 2

    run(main())


def test_a_free_model_writes_nothing_down() -> None:
    notebook = RecordedAmounts()
    budget = Budget(store_note=notebook)
    run(Budgeted(ScriptedProvider((0, ZERO)), budget, FREE).complete(ASK))
    budget.close()
    assert notebook.lines == []


def test_an_end_in_good_order_leaves_what_is_uncertain_and_no_more() -> None:
    notebook = RecordedAmounts()
    budget = Budget(Decimal(9), store_note=notebook)
    model = Budgeted(ScriptedProvider((0, LATE), (0, CENT)), budget, PRICE)
    with pytest.raises(TransientError):
        run(model.complete(ASK))
    run(model.complete(ASK))
    budget.close()
    assert notebook.lines[-1] == budget.uncertain == 1


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 150), st.sampled_from(["ok", "late", "refused", "unkept", "unknown"]), st.integers(0, 5)
        ),
        max_size=12,
    ),
    st.integers(0, 8),
    st.integers(0, 60),
)
def test_wherever_a_run_is_killed_what_was_paid_and_written_down_covers_all_that_was_charged(
    calls: list[tuple[int, str, int]], dollars: int, kill_s: int
) -> None:
    """`kept` stands for the answers in the database, `charged` for what a merciless provider has charged by then."""
    limit, notebook = Decimal(dollars), RecordedAmounts()
    stored = charged = ZERO

    async def main() -> None:
        class AdverseClient(ModelClient):
            name = "m"

            async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
                nonlocal charged, stored
                tokens, kind, takes_s = request.settings["call"]
                charged += 0 if kind == "refused" else CENT * tokens
                with context.sending():
                    await asyncio.sleep(takes_s)
                if kind in ("late", "refused"):
                    return CallResult(failure=LATE if kind == "late" else REFUSED, attempts=1)
                stored += CENT * tokens if kind in ("ok", "unkept") else 0
                finish = "error" if kind == "unkept" else "stop"
                cost_usd = None if kind == "unknown" else CENT * tokens
                return CallResult(ModelReply(finish_reason=finish, cost_usd=cost_usd), attempts=1)

        model = Budgeted(AdverseClient(), Budget(limit, store_note=notebook), PRICE)

        async def call_once(start: int, call: tuple[int, str, int]) -> None:
            await asyncio.sleep(start)
            await model.complete(ModelRequest("", (), (), settings={"max_tokens": call[0], "call": call}))

        tasks = [asyncio.create_task(call_once(number * 2, call)) for number, call in enumerate(calls)]
        await asyncio.sleep(kill_s)
        accounted = stored + (notebook.lines[-1] if notebook.lines else ZERO)
        assert charged <= accounted
        assert charged <= limit
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
