"""`judge`: the guard over the predict rules, with order and trade as fields of its result."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.verdict import Verdict
from pitboss.engine.guard import guard
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.orders import ContractOrder
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, PredictWorld
from pitboss.venues.predict.trade import ContractTrade


@noun
class GuardResult:
    """A judgement with the order and the trade of its desk order."""

    verdict: Verdict
    key: str
    content: bytes
    order: ContractOrder | None
    trade: ContractTrade | None
    broken: bool


def judge(
    caps: PredictCaps,
    world: PredictWorld,
    spent: Spent,
    intent: Any,
    now: Instant,
    tick_at: Instant | None = None,
    account_id: str = ACCOUNT,
    seen: Mapping[str, Verdict] | None = None,
) -> GuardResult:
    """Judge one intent at `now` that was decided at `tick_at`, by default now."""
    tick_at = now if tick_at is None else tick_at
    judgement = guard(PredictRuleBook(caps, world, spent, now, tick_at, account_id), seen or {}, intent, tick_at)
    sent = judgement.order
    order, trade = (None, None) if sent is None else (sent.order, sent.trade)
    return GuardResult(judgement.verdict, judgement.key, judgement.content, order, trade, judgement.broken)
