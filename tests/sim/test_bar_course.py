"""The defaults that a venue on bars stands on: rule book, ports, broker and course, replayed with a small world."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from pitboss.agent.prompt import Prompts
from pitboss.core.asof import Market
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import InvariantError
from pitboss.core.instant import HOUR_MS
from pitboss.core.intent import Decision
from pitboss.core.market import Bar, Bars
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.rulebook import PASS, Finding, Rule, RuleBook, refuse_malformed
from pitboss.core.state import State, parse_state
from pitboss.core.vocabulary import Vocabulary
from pitboss.engine.execute import WorldBroker
from pitboss.sim.bar_course import BarCourse
from pitboss.sim.course import ticks_between
from pitboss.sim.outcome import Ledger
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tick.bar_ports import BarPorts

COUNT = 6
SCHEMA = {"properties": {"action": {"type": "string"}, "amount": {"type": "number"}}}
WORDS = Vocabulary.of_schema("a wish", SCHEMA)


@noun
class Wish:
    """Spend an amount, which the next bar returns, or wait."""

    action: str
    amount: Decimal = Decimal(0)


@noun
class Jar:
    """Money, and what is out until the next bar."""

    cash: Decimal
    out: Decimal = Decimal(0)


def read(raw: Any) -> tuple[Wish | None, list[str]]:
    texts, numbers, problems = WORDS.read(raw)
    fields: dict[str, Any] = {**texts, **numbers}
    return (None, problems) if problems else (Wish(**fields), [])


def within_cash(case: Any) -> Finding:
    return Finding("too much" if case.proposal.amount > case.book.jar.cash else "") if case.proposal else PASS


def broken(case: Any) -> Finding:
    raise ZeroDivisionError


def spend(jar: Jar, wish: Wish, at: int) -> tuple[Jar, tuple[Receipt, ...]]:
    return Jar(jar.cash - wish.amount, wish.amount), (Receipt("filled", at, "", "1", {}),)


def give_back(jar: Jar, bar: Bar) -> tuple[Jar, tuple[Receipt, ...]]:
    if not jar.out:
        return jar, ()
    return Jar(jar.cash + jar.out), (Receipt("settled", bar.closed_at, "", "1", {"close": str(bar.close)}),)


def course_of(intents: dict[int, Any], check: Callable[[Any], Finding] = within_cash, cash: int = 10) -> BarCourse:
    rules = (Rule("W1_SHAPE", "every", refuse_malformed, ""), Rule("W2_CASH", "every", check, ""))

    @noun
    class WishBook(RuleBook):
        jar: Jar

        decision = DecisionFormat("wish", "Wish.", SCHEMA, read, "wait")

    WishBook.rules = rules

    @noun
    class WishPorts(BarPorts):
        def rule_book(self, observation: Any, state: State, at: int) -> RuleBook:
            return WishBook(state.world)

        def equity(self, world: Jar) -> Decimal:
            return world.cash + world.out

    class Script:
        name = "script"

        async def decide(self, observation: Any, judge: Any) -> Decision:
            intent = intents.get(observation.at // HOUR_MS)
            return Decision() if intent is None else Decision((intent,))

    ones = np.ones(COUNT)
    bars = Bars("BTC", "1h", HOUR_MS, np.arange(COUNT, dtype=np.int64) * HOUR_MS, ones, ones, ones, ones * 2, ones)
    ports = WishPorts(
        None,
        Market({("BTC", "1h"): bars}),
        decider=Script(),
        broker=WorldBroker(spend),
        context=Prompts("", ()),
        build_prompts=False,
    )
    ticks = ticks_between(0, COUNT * HOUR_MS, HOUR_MS)
    world = Jar(Decimal(cash))
    return BarCourse(ports=ports, tick_at=ticks, to_at=COUNT * HOUR_MS, first_world=world, bars=bars, step=give_back)


def play(course: BarCourse) -> tuple[State, Ledger]:
    ledger = Ledger()
    state = State(course.first_world)
    return asyncio.run(replay(course, MemoryJournal(), state, Watch(), ledger)), ledger


def test_bars_settle_orders_and_give_one_equity_point_each() -> None:
    spend_four = {"action": "spend", "amount": 4}
    state, ledger = play(course_of({1: spend_four, 2: {"action": "wait"}, 3: {"action": "spend", "amount": 11}}))
    assert [receipt.kind for receipt in ledger.receipts] == ["filled", "settled"]
    assert [receipt.at // HOUR_MS for receipt in ledger.receipts] == [1, 2]
    assert ledger.receipts[1].facts == {"close": "2.0"}
    assert (ledger.ticks, ledger.accepted, dict(ledger.rejections)) == (COUNT, 1, {"W2_CASH": 1})
    assert [(piece[0] // HOUR_MS, piece[2]) for piece in ledger.equity] == [(hour, "10") for hour in range(1, 7)]
    assert parse_state({"world": {"cash": "10", "out": "0"}}, Jar).world == state.world


def test_a_malformed_intent_is_refused_by_the_first_rule() -> None:
    _, ledger = play(course_of({0: {"action": "spend", "amount": "4"}}))
    assert dict(ledger.rejections) == {"W1_SHAPE": 1}


def test_a_pause_ends_before_the_bar_that_changes_the_account() -> None:
    course = course_of({})
    assert list(course.tick_offsets()) == list(range(COUNT))
    leg = course.advance(Jar(Decimal(6), Decimal(4)), 2, COUNT, pause_before_change=True)
    assert (leg.index, leg.receipts, leg.equity) == (2, (), [])
    assert course.advance(course.first_world, 2, COUNT, pause_before_change=True).index == COUNT


def test_an_account_without_equity_is_not_asked() -> None:
    _, ledger = play(course_of({0: {"action": "spend", "amount": 1}}, cash=0))
    assert (ledger.asked, dict(ledger.noops)) == (0, {"ruined": COUNT})


def test_the_run_ends_when_a_rule_fails_on_a_venue_that_cannot_halt() -> None:
    with pytest.raises(InvariantError, match="cannot halt"):
        play(course_of({1: {"action": "spend", "amount": 1}}, check=broken))


def test_an_order_cannot_be_cancelled_by_default() -> None:
    placed = asyncio.run(WorldBroker(spend).cancel(Jar(Decimal(1)), "1", 0))
    assert (placed.world, placed.refusal) == (Jar(Decimal(1)), "orders of this venue cannot be cancelled")
