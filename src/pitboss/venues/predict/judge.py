"""`judge`: one decision against the book of rules. Pure and total: any JSON value gets a verdict, nothing raises.

The first rule that refuses names the verdict; every rule's margin is recorded all the same. A verdict `reduced` carries
the code of the rule that cut. What may follow is worked out here too (`ContractOrder`), so that nothing is sized twice.
"""

from dataclasses import replace
from typing import Any, Literal

from pitboss.core.instant import Instant
from pitboss.core.intent import sealed_intent
from pitboss.core.money import exact
from pitboss.core.noun import noun
from pitboss.core.rulebook import weigh
from pitboss.core.verdict import Verdict
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.case import PredictCase, make_case
from pitboss.venues.predict.intents import read
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.state import ACCOUNT, Contract, PredictWorld
from pitboss.venues.predict.trade import ContractTrade, WorldStep, carry_out, mint_spend, redeem

EVERY = tuple(rule for rule in RULES if rule.scope == "every")
"""The rules of what spends nothing."""


@noun
class ContractOrder:
    """What to execute: a mint of at most `spend` (so many contracts at this ask, as things stand), or a redeem of all."""

    action: Literal["mint", "redeem"]
    contract: Contract
    quantity: int
    price: int
    spend: int = 0


@noun
class Judgement:
    """A verdict and what to do about it. `content` is the intent in canonical bytes, as it is hashed and stored."""

    verdict: Verdict
    key: str
    content: bytes = b"null"
    order: ContractOrder | None = None
    broken: bool = False
    trade: ContractTrade | None = None
    """The order as the world it was judged on would carry it out."""


@exact
def judge(
    caps: PredictCaps,
    world: PredictWorld,
    spent: Spent,
    intent: Any,
    now: Instant,
    tick_at: Instant | None = None,
    account_id: str = ACCOUNT,
) -> Judgement:
    """Judge one decision as things stand at `now`, the instant of execution; it was made at `tick_at`, by default now."""
    tick_at = now if tick_at is None else tick_at
    key, content = sealed_intent(tick_at, intent)
    stored = spent.seen.get(key)
    if stored is not None:  # B14 first of all: an answer once given is not judged again on what it has changed
        return Judgement(replace(stored, duplicate=True), key, content)
    decision, problems = read(intent)
    if intent is None or (decision is not None and decision.action == "hold"):
        return Judgement(Verdict("noop"), key, content)
    try:
        case = make_case(caps, world, account_id, spent, decision, problems, now, tick_at, stored is not None)
    except ArithmeticError as error:
        return Judgement(Verdict("refused", "B1_SHAPE", f"cannot be worked out: {error!r}"), key, content)
    found = weigh(EVERY if decision is not None and decision.action == "redeem" else RULES, case)
    order = None if found.code is not None else _order(case)
    if order is None:
        code, detail = found.code or "B15_VENUE", found.detail or "there is nothing to trade"
        return Judgement(Verdict("refused", code, detail, found.margins), key, content, broken=found.broken)
    outcome = "allowed" if found.cut is None else "reduced"
    verdict = Verdict(outcome, found.cut, found.cut_detail, found.margins)
    return Judgement(verdict, key, content, order, trade=_admitted(case))


def _order(case: PredictCase) -> ContractOrder | None:
    """The trade an allowed decision becomes."""
    trade = _admitted(case)
    if case.decision is None or trade is None:
        return None
    if case.decision.action == "redeem":
        return ContractOrder("redeem", trade.contract, trade.quantity, trade.price)
    return ContractOrder("mint", trade.contract, trade.quantity, trade.price, case.spend or 0)


def _admitted(case: PredictCase) -> ContractTrade | None:
    return case.admitted if isinstance(case.admitted, ContractTrade) else None


def perform(
    world: PredictWorld,
    order: ContractOrder,
    at: Instant,
    account_id: str = ACCOUNT,
    weighed: ContractTrade | None = None,
) -> WorldStep:
    """Carry an order out on the paper venue. A mint is sized anew, so it costs no more than it was allowed to.

    `weighed` is the judgement's trade, where world and instant are those of the judgement: then nothing is sized twice.
    """
    if weighed is not None:
        return carry_out(world, account_id, order.action, weighed, at)
    if order.action == "redeem":
        return redeem(world, account_id, order.contract, order.quantity, at)
    return mint_spend(world, account_id, order.contract, order.spend, at)
