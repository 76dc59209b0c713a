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


def time_left(expiry_at: Instant, at: Instant) -> str:
    """Format the time left until an expiry."""
    return render.age(expiry_at - at) if expiry_at > at else "expired"


def fill_line(fill: Fill) -> str:
    """Format the result of an order."""
    contract = f"{fill.side} {render.size(fill.strike)} in {name(fill.market_id)}"
    if fill.kind == "refused":
        return f"{render.time(fill.at)} refused at execution by {fill.code}: {contract}, {render.fence(fill.detail)}"
    amount = f"{render.size(fill.quantity)} contracts at {price(fill.price)}, {render.size(fill.amount)} DUSDC"
    verb = {"mint": "minted", "redeem": "redeemed", "payout": "settled and paid"}[fill.kind]
    return f"{render.time(fill.at)} {verb}: {contract}, {amount}"
