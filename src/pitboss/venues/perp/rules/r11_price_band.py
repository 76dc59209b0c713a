"""Limit, stop and take-profit prices are consistent with the mark.

A limit may not reach further than `price_band_pct` percent beyond mark on the side where it would trade at once. After
rounding, a stop must be strictly on the losing side and a take-profit strictly on the winning side of mark (of a limit
order: of the lower of mark and limit for a long, the higher for a short).
"""

from decimal import Decimal

from pitboss.core.money import HUNDRED
from pitboss.core.rule_message import ExactNumber, Price, rule_message
from pitboss.core.rulebook import PASS, Finding
from pitboss.core.verdict import Margin
from pitboss.venues.perp.case import PerpCase, Scope

CODE = "R11_PRICE_BAND"
SCOPE: Scope = "opens"


def check(case: PerpCase) -> Finding | Margin:
    """Refuse prices outside these bounds."""
    if case.proposal is None or case.mark is None:
        return PASS
    side, mark, limit = case.proposal.side, case.mark, case.limit
    margin = None
    anchor = mark
    if limit is not None:
        edge = mark * (HUNDRED + side * case.caps.price_band_pct) / HUNDRED
        margin = Margin(CODE, edge, limit, side * (edge - limit), "price")
        if side * (limit - edge) > 0:
            message = rule_message(
                "limit {limit} is more than {band} % beyond mark {mark}",
                limit=Price(limit),
                band=ExactNumber(case.caps.price_band_pct),
                mark=Price(mark),
            )
            return Finding(message, margin)
        anchor = min(mark, limit) if side > 0 else max(mark, limit)
    for name, price, sign in (("stop_loss", case.stop, side), ("take_profit", case.take_profit, -side)):
        if price is None:
            continue
        remaining: Decimal = sign * (anchor - price)
        if margin is None or margin.left is None or remaining < margin.left:
            margin = Margin(CODE, anchor, price, remaining, "price")
        if remaining <= 0:
            side_name = "losing" if name == "stop_loss" else "winning"
            message = rule_message(
                "{name} {price} is not on the {side} side of {anchor}",
                name=name,
                price=Price(price),
                side=side_name,
                anchor=Price(anchor),
            )
            return Finding(message, margin)
    return margin or PASS
