"""The input of the perp rules: one proposal, rounded to the venue's steps, with the account it would change.

Every number that a rule needs is computed here once; it is None where it cannot be computed (no mark, unknown asset).
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from pitboss.core.asset import Asset
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO, round_down
from pitboss.core.noun import noun
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.intents import Proposal
from pitboss.venues.perp.state import PerpWorld, TradingTerms, equity


@noun
class PerpCase:
    """One intent with the numbers that the rules judge."""

    caps: PerpCaps
    terms: TradingTerms
    world: PerpWorld
    now: Instant
    accepted_opens: Sequence[Instant]
    proposal: Proposal | None
    problems: Sequence[str]
    finite: bool
    asset: Asset | None
    mark: Decimal | None
    equity: Decimal
    size: Decimal | None
    notional: Decimal | None
    """The rounded size at mark."""
    added_exposure: Decimal | None
    """The exposure it would add: the rounded size at the worse of mark and limit."""
    limit: Decimal | None
    stop: Decimal | None
    take_profit: Decimal | None


def make_case(
    caps: PerpCaps,
    terms: TradingTerms,
    world: PerpWorld,
    proposal: Proposal | None,
    problems: Sequence[str],
    now: Instant,
    accepted_opens: Sequence[Instant],
) -> PerpCase:
    """Compute what the rules need about an intent that has been parsed."""
    finite = all_finite(world)
    value = equity(world) if finite else ZERO
    asset = mark = size = notional = added_exposure = limit = stop = take_profit = None
    if proposal is not None:
        mark = world.marks.get(proposal.symbol)
        if mark is not None and not (mark.is_finite() and mark > 0):
            mark = None
        asset = terms.assets.get(proposal.symbol)
        if finite and proposal.opens and mark is not None and asset is not None:
            assert proposal.size_usd is not None  # `intents.read_proposal` guarantees it
            size = round_down(proposal.size_usd / mark, asset.lot)
            if proposal.order_type == "limit" and proposal.limit_price is not None:
                limit = asset.round_price(proposal.limit_price, up=proposal.side < 0)
            added_exposure = notional = size * mark
            if limit is not None and limit > mark:
                added_exposure = size * limit
            if proposal.stop_loss is not None:
                stop = asset.round_price(proposal.stop_loss, up=proposal.stop_loss < mark)
            if proposal.take_profit is not None:
                take_profit = asset.round_price(proposal.take_profit, up=proposal.take_profit < mark)
    return PerpCase(
        caps, terms, world, now, accepted_opens, proposal, problems,
        finite, asset, mark, value, size, notional, added_exposure, limit, stop, take_profit,
    )  # fmt: skip


def all_finite(world: PerpWorld) -> bool:
    """Return whether the account can be valued: every number is finite and every position has a mark."""
    marks = world.marks
    if not _finite(world.cash, world.peak, world.day_reference, world.last_equity, *marks.values()):
        return False
    for symbol, position in world.positions.items():
        if symbol not in marks or not _finite(position.size, position.cost, position.stop, position.take_profit):
            return False
    for order in world.orders:  # noqa: SIM110 – the book is usually empty, and a generator has a cost
        if not _finite(order.size, order.limit, order.stop, order.take_profit):
            return False
    return True


def _finite(*numbers: Decimal | None) -> bool:
    for number in numbers:  # noqa: SIM110 – a third of the cost of all() over a generator
        if number is not None and not number.is_finite():
            return False
    return True


Scope = Literal["every", "opens"]
