"""One proposal before the rules: what was asked, rounded to the venue, beside the account it would meet.

Every number a rule needs is worked out here once, and is None where it cannot be (no mark, no such asset).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pitboss.core.instant import Instant
from pitboss.core.money import round_down
from pitboss.core.verdict import Margin, Verdict
from pitboss.venues.perp.caps import Caps
from pitboss.venues.perp.intents import Proposal, read
from pitboss.venues.perp.state import Terms, World, equity


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says: `refusal` is empty when it has no objection; `margin` is how far from its limit it is."""

    refusal: str = ""
    margin: Margin | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """An intent in front of the engine."""

    caps: Caps
    terms: Terms
    world: World
    now: Instant
    accepted_opens: Sequence[Instant]
    stored: Verdict | None
    proposal: Proposal | None
    problems: Sequence[str]
    finite: bool
    mark: Decimal | None
    equity: Decimal
    size: Decimal | None
    limit: Decimal | None
    stop: Decimal | None
    take_profit: Decimal | None

    @property
    def notional(self) -> Decimal | None:
        """Rounded size at mark."""
        return None if self.size is None or self.mark is None else self.size * self.mark


def make_case(
    caps: Caps,
    terms: Terms,
    world: World,
    intent: Any,
    now: Instant,
    accepted_opens: Sequence[Instant],
    stored: Verdict | None,
) -> Case:
    """Read an intent and work out what the rules need."""
    proposal, problems = read(intent)
    finite = all_finite(world)
    value = equity(world) if finite else Decimal(0)
    mark = size = limit = stop = take_profit = None
    if proposal is not None and finite:
        mark = world.marks.get(proposal.symbol)
        if mark is not None and mark <= 0:
            mark = None
        asset = terms.assets.get(proposal.symbol)
        if proposal.opens and mark is not None and asset is not None:
            assert proposal.size_usd is not None  # `read` has made sure of it
            size = round_down(proposal.size_usd / mark, asset.lot)
            side = proposal.side
            if proposal.order_type == "limit" and proposal.limit_price is not None:
                limit = asset.round_price(proposal.limit_price, up=side < 0)
            if proposal.stop_loss is not None:
                stop = asset.round_price(proposal.stop_loss, up=proposal.stop_loss < mark)
            if proposal.take_profit is not None:
                take_profit = asset.round_price(proposal.take_profit, up=proposal.take_profit < mark)
    return Case(
        caps, terms, world, now, accepted_opens, stored, proposal, problems,
        finite, mark, value, size, limit, stop, take_profit,
    )  # fmt: skip


def all_finite(world: World) -> bool:
    """Whether every number of the account is a number."""
    return (
        world.cash.is_finite()
        and world.peak.is_finite()
        and world.day_reference.is_finite()
        and all(mark.is_finite() for mark in world.marks.values())
        and all(held.size.is_finite() and held.cost.is_finite() for held in world.positions.values())
        and all(order.size.is_finite() for order in world.orders)
    )


Scope = Literal["every", "opens"]
