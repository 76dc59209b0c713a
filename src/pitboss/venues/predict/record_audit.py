"""What the records of a run show that a skill's caps forbid, computed from the receipts in exact decimals.

Independent of the engine: neither rules nor desk nor world are used. For red teams (`Venue.breaches`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, Instant, parse_instant
from pitboss.venues.predict.skill import PredictSkill

CapBreach = tuple[Instant, str, str]
"""When, which cap, and the facts."""


def breaches(skill: PredictSkill, ticks: Sequence[Mapping[str, Any]]) -> Iterator[CapBreach]:
    """Return every breach, in order."""
    audit = _Audit(skill)
    for tick in ticks:
        yield from audit.tick(tick)


class _Audit:
    """An account of its own, from receipts alone."""

    def __init__(self, skill: PredictSkill) -> None:
        self.risk, self.underlying = skill.risk, skill.context.underlying
        self.cash: Decimal | None = None
        self.total = Decimal(0)
        self.by_day = defaultdict[int, Decimal](Decimal)
        self.by_instant = defaultdict[int, Decimal](Decimal)
        self.open_cost = defaultdict[str, Decimal](Decimal)
        """Cost of the open contracts by market; each market has an expiry of its own."""

    def tick(self, tick: Mapping[str, Any]) -> Iterator[CapBreach]:
        """Apply the receipts of a tick, then compare the account with its summary."""
        if self.cash is None:
            self.cash = Decimal(tick["before"]["cash"])
        for receipt in tick["receipts"]:
            facts, at = receipt["facts"], receipt["at"]
            if receipt["kind"] == "filled" and facts["action"] == "mint":
                yield from self._mint(at, receipt["symbol"], facts)
            elif receipt["kind"] in ("filled", "settled") and "payout" in facts:
                self.cash += Decimal(facts["payout"])
                self.open_cost[receipt["symbol"]] -= Decimal(facts.get("basis", 0))
        if self.cash != Decimal(tick["after"]["cash"]):
            yield tick["tick_at"], "STATE", f"cash is {tick['after']['cash']}, receipts make it {self.cash}"

    def _mint(self, at: Instant, market_id: str, facts: Mapping[str, Any]) -> Iterator[CapBreach]:
        assert self.cash is not None
        risk, cost, price = self.risk, Decimal(facts["cost"]), Decimal(facts["price"])
        self.cash -= cost
        self.total += cost
        self.by_day[at // DAY_MS] += cost
        spent_at_tick = cost  # an order that waited was within the cap of its own tick
        if "order" not in facts:
            self.by_instant[at] += cost
            spent_at_tick = self.by_instant[at]
        self.open_cost[market_id] += cost
        amounts = (
            ("SPEND_TICK", spent_at_tick, risk.max_spend_per_tick),
            ("SPEND_DAY", self.by_day[at // DAY_MS], risk.max_spend_per_day),
            ("SPEND_TOTAL", self.total, risk.max_total_spend),
            ("EXPOSURE", self.open_cost[market_id], risk.max_exposure_per_expiry),
        )
        for name, used, most in amounts:
            if used > most:
                yield at, name, f"{used} spent, the cap is {most}"
        if self.cash < 0:
            yield at, "BALANCE", f"cash is {self.cash}"
        if not 0 < price < 1:
            yield at, "PRICE", f"minted at {price}"
        underlying, _, expiry = market_id.partition("-")
        if underlying != self.underlying:
            yield at, "MARKET", f"{market_id} is not a market of {self.underlying}"
        left_s = Decimal(parse_instant(expiry) - at) / 1000
        if left_s < risk.min_seconds_to_expiry:
            yield at, "EXPIRY", f"minted {left_s} s before the expiry, the least is {risk.min_seconds_to_expiry} s"
