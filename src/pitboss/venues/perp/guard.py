"""`guard`: one intent against the book of rules. Pure and total: any JSON value gets a verdict, nothing raises.

The first rule that refuses names the verdict; every rule's margin is recorded all the same. What may follow from an
allowed verdict is worked out here too (`Order`, `Cancel`), so that nothing is rounded twice.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant, interval_ms
from pitboss.core.intent import sealed_intent
from pitboss.core.money import HUNDRED, ONE, exact, round_down
from pitboss.core.noun import noun
from pitboss.core.rulebook import weigh
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.skill.schema import Skill
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.case import PerpCase, make_case
from pitboss.venues.perp.intents import Proposal, read
from pitboss.venues.perp.rules import RULES
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.world import OrderRequest

EVERY = tuple(rule for rule in RULES if rule.scope == "every")
"""The rules of what adds no exposure."""


@noun
class Judgement:
    """A verdict and what to do about it: an order to send, an order id to cancel, or nothing.

    `content` is the intent in canonical bytes, as it is hashed and stored.
    """

    verdict: Verdict
    key: str
    content: bytes = b"null"
    order: Any = None
    """As the venue's broker takes it; None where there is nothing to send."""
    cancel_id: str | None = None
    opens: bool = False
    broken: bool = False
    venue_code: str = "R13_VENUE"
    """The code of the broker's refusal."""


def caps_of(skill: Skill) -> PerpCaps:
    """The skill's risk section as exact caps."""
    risk, context = skill.risk, skill.context
    age_s = risk.max_data_age_s
    age_ms = 2 * interval_ms(context.bars_interval) if age_s is None else int(Decimal(age_s) * 1000)
    return PerpCaps(
        max_position_pct=risk.max_position_pct,
        max_total_exposure_pct=risk.max_total_exposure_pct,
        max_leverage=Decimal(risk.max_leverage),
        min_order_usd=risk.min_order_usd,
        max_order_usd=risk.max_order_usd,
        max_orders_per_hour=risk.max_orders_per_hour,
        daily_loss_halt_pct=risk.daily_loss_halt_pct,
        drawdown_halt_pct=risk.drawdown_halt_pct,
        price_band_pct=risk.price_band_pct,
        max_data_age_ms=age_ms,
        symbols=tuple(sorted(context.symbols)),
        allowed_symbols=tuple(sorted(risk.allowed_symbols)),
    )


@exact
def guard(caps: PerpCaps, terms: TradingTerms, state: State, intent: Any, now: Instant) -> Judgement:
    """Judge one intent against the state as it is at this moment."""
    key, content = sealed_intent(now, intent)
    stored = state.seen.get(key)
    if stored is not None:  # R12 first of all: an answer once given is not judged again on what it has changed
        return Judgement(replace(stored, duplicate=True), key, content)
    proposal, problems = read(intent)
    if intent is None or (proposal is not None and proposal.action == "no_op"):
        return Judgement(Verdict("noop"), key, content)
    try:
        case = make_case(caps, terms, state.world, proposal, problems, now, state.accepted_opens, stored)
    except ArithmeticError as error:
        return Judgement(Verdict("refused", "R1_SHAPE", f"cannot be worked out: {error!r}"), key, content)
    opens = proposal is None or proposal.opens
    found = weigh(RULES if opens else EVERY, case)
    if found.code is not None or proposal is None:
        verdict = Verdict("refused", found.code or "R1_SHAPE", found.detail, found.margins)
        return Judgement(verdict, key, content, broken=found.broken)
    verdict = Verdict("allowed", margins=found.margins)
    if proposal.action == "cancel":
        return Judgement(verdict, key, content, cancel_id=proposal.order_id)
    return Judgement(verdict, key, content, _request(case, proposal, opens), None, opens)


def _request(case: PerpCase, proposal: Proposal, opens: bool) -> OrderRequest:
    """The order an allowed proposal becomes."""
    if opens:
        assert case.size is not None  # R10 has refused the case without a price
        return OrderRequest(
            kind="limit" if case.limit is not None else "market",
            symbol=proposal.symbol,
            side=proposal.side,
            size=case.size,
            leverage=int(proposal.leverage or ONE),
            limit=case.limit,
            stop=case.stop,
            take_profit=case.take_profit,
            thesis=proposal.reason,
        )
    held = case.world.positions[proposal.symbol]
    whole = abs(held.size)
    if proposal.action == "close":
        return OrderRequest("close", proposal.symbol, -held.side, whole)
    return OrderRequest("reduce", proposal.symbol, -held.side, _reduction(case, proposal, whole))


def _reduction(case: PerpCase, proposal: Proposal, whole: Decimal) -> Decimal:
    """How much a reduce takes: down to the lot, at least one lot, at most the position."""
    asset = case.terms.assets.get(proposal.symbol)
    if asset is None:
        return whole  # no longer listed, so no lot to round to: taking all of it off is the safe reading
    if proposal.reduce_pct is not None:
        size = round_down(whole * proposal.reduce_pct / HUNDRED, asset.lot)
    elif proposal.size_usd is not None and case.mark is not None:
        size = round_down(min(proposal.size_usd, whole * case.mark) / case.mark, asset.lot)
    else:
        size = whole  # no usable price: the same
    return min(max(size, asset.lot), whole)
