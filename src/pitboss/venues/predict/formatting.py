"""Formats this venue's values for models: contract prices, market names, fills. Used by sections and tools."""

import re
from decimal import Decimal
from functools import lru_cache

from pitboss.core.instant import Instant
from pitboss.prompt import render
from pitboss.venues.predict.case import cents
from pitboss.venues.predict.desk import Fill
from pitboss.venues.predict.state import usd

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]{0,95}")


@lru_cache(maxsize=1024)
def name(market_id: str) -> str:
    """Format a market id: unchanged if it is a plain word, otherwise quoted as untrusted text."""
    return market_id if _PLAIN.fullmatch(market_id) else render.fence(market_id, 96)


chance = cents
"""Formats a contract price, in billionths, with four decimals, so that it reads as a probability."""


def price(value: Decimal) -> str:
    """Format a contract price given as a plain amount."""
    return f"{value:.4f}"


@lru_cache(maxsize=4096)
def strike(units: int) -> str:
    """Format a strike or a price of the underlying. Cached: the same few recur for every market of a tick."""
    return render.size(usd(units))


def left(expiry_at: Instant, at: Instant) -> str:
    """Format the time left until an expiry."""
    return render.age(expiry_at - at) if expiry_at > at else "expired"


def fill(one: Fill) -> str:
    """Format the result of an order."""
    what = f"{one.side} {render.size(one.strike)} in {name(one.market_id)}"
    if one.kind == "refused":
        return f"{render.time(one.at)} refused at execution by {one.code}: {what}, {render.fence(one.detail)}"
    amount = f"{render.size(one.quantity)} contracts at {price(one.price)}, {render.size(one.amount)} DUSDC"
    verb = {"mint": "minted", "redeem": "redeemed", "payout": "settled and paid"}[one.kind]
    return f"{render.time(one.at)} {verb}: {what}, {amount}"
