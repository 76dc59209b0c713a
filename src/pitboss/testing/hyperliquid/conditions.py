"""Faults that hold for a time: outages, wrong prices, halts, and what the exchange does to an account by itself."""

from collections.abc import Callable
from decimal import Decimal

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.liquidation import deleverage, delist, force_liquidation

FLAP_MS = SECOND_MS
FAR = Decimal("0.2")
SPIKE = Decimal("0.005")
OUTAGE_MS = 37 * 60 * SECOND_MS
"""How long an outage lasts unless a rule says otherwise: as long as that of 29 July 2025."""


class Conditions:
    """The conditions of an exchange. Rules of the plan begin by themselves; `begin` begins one now."""

    def __init__(self, exchange: FakeExchange, plan: FaultPlan) -> None:
        self._exchange = exchange
        self._plan = plan
        self._start = exchange.now
        self._outage: FaultRule | None = None
        self._outage_from: Instant = 0
        for rule in plan.conditions():
            self.schedule(rule, self._start + rule.at_ms)

    def schedule(self, rule: FaultRule, at: Instant) -> None:
        """Begin a condition at an instant, and again after `every_ms` if it has that."""

        def begin() -> None:
            self.begin(rule)
            if rule.every_ms is not None:
                self.schedule(rule, at + rule.every_ms)

        self._exchange.agenda.at(at, begin)

    def outage(self) -> FaultRule | None:
        """The outage of this moment; flapping is down every other second."""
        rule = self._outage
        if rule is None or rule.kind == "outage":
            return rule
        return rule if (self._exchange.now - self._outage_from) // FLAP_MS % 2 == 0 else None

    def begin(self, rule: FaultRule) -> None:
        """Begin a condition now; it ends after its duration, if it has one."""
        self._plan.counts[rule.kind] += 1
        if rule.kind in ("outage", "flapping"):
            self._outage, self._outage_from = rule, self._exchange.now
            self._later(rule.duration_ms or OUTAGE_MS, self.end_outage)
            return
        change, undo = self._effects(rule)
        self._exchange.do_now(change)
        if undo is not None and rule.duration_ms is not None:
            self._later(rule.duration_ms, undo)

    def end_outage(self) -> None:
        """The exchange answers again."""
        self._outage = None

    def _later(self, delay: int, work: Callable[[], None]) -> None:
        self._exchange.agenda.at(self._exchange.now + delay, work)

    def _effects(self, rule: FaultRule) -> tuple[Callable[[], None], Callable[[], None] | None]:
        exchange, state = self._exchange, self._exchange.state
        coins = [rule.coin] if rule.coin else state.coins
        markets = [state.markets[coin] for coin in coins]
        owner, agent = exchange.ready.master_address, exchange.ready.agent_address

        def all_markets(name: str, value: object) -> Callable[[], None]:
            def change() -> None:
                for market in markets:
                    setattr(market, name, value)

            return change

        def all_positions(work: Callable[[str], None]) -> Callable[[], None]:
            def change() -> None:
                for coin in coins:
                    work(coin)

            return change

        account = exchange.account()
        factors = {"price_10x": Decimal(10), "price_zero": Decimal(0), "price_negative": Decimal(-1)}
        if rule.kind in factors:
            return all_markets("reported_factor", factors[rule.kind]), all_markets("reported_factor", Decimal(1))
        effects: dict[str, tuple[Callable[[], None], Callable[[], None] | None]] = {
            "price_frozen": (all_markets("is_frozen", True), all_markets("is_frozen", False)),
            "mark_far_from_oracle": (all_markets("oracle_offset", FAR), all_markets("oracle_offset", Decimal(0))),
            "crossed_book": (all_markets("is_crossed", True), all_markets("is_crossed", False)),
            "trading_halt": (all_markets("is_halted", True), all_markets("is_halted", False)),
            "funding_spike": (all_markets("forced_rate", SPIKE), all_markets("forced_rate", None)),
            "post_only_phase": (
                lambda: setattr(state, "is_post_only", True),
                lambda: setattr(state, "is_post_only", False),
            ),
            "delisting": (all_positions(lambda coin: delist(state, coin)), None),
            "liquidation": (all_positions(lambda coin: force_liquidation(state, account, coin)), None),
            "deleveraging": (all_positions(lambda coin: deleverage(state, account, coin, rule.share)), None),
            "agent_revoked": (lambda: exchange.revoke_agent(owner, agent), None),
            "agent_expired": (
                lambda: exchange.approve_agent(owner, agent, "pitboss", exchange.now - 1),
                None,
            ),
        }
        return effects[rule.kind]
