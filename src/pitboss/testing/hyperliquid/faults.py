"""Faults: their names, and when a rule of a plan applies.

`RequestFault`s break single requests (`gateway.py`), stream faults break WebSockets (`streams.py`), condition faults hold for a time and change
the exchange itself (`conditions.py`). `TABLE` groups all of them by the rows of the table of faults that clients are tested with.
"""

from collections import Counter
from decimal import Decimal

from pitboss.core.errors import UserError
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid.seeded import SeededNumbers

ORDERS = ("order",)
ACTIONS = ("exchange",)
EVERYTHING = ("exchange", "info")

REQUEST_FAULTS: dict[str, tuple[str, ...]] = {
    "never_received": EVERYTHING,
    "executed_no_answer": EVERYTHING,
    "lands_late": ACTIONS,
    "slow_answer": EVERYTHING,
    "connection_refused": EVERYTHING,
    "connection_reset": EVERYTHING,
    "dns_failure": EVERYTHING,
    "tls_failure": EVERYTHING,
    "captive_portal": EVERYTHING,
    "http_500": EVERYTHING,
    "http_502_html": EVERYTHING,
    "empty_body": EVERYTHING,
    "truncated_json": EVERYTHING,
    "status_err": ACTIONS,
    "order_error": ORDERS,
    "missing_status": ("order", "cancel", "cancelByCloid"),
    "rate_limited": EVERYTHING,
    "address_budget_gone": ACTIONS,
    "nonce_refused": ACTIONS,
    "agent_refused": ACTIONS,
    "stop_refused": ("trigger",),
    "reduce_only_auto_cancel": ("reduce_only",),
    "leverage_refused": ("updateLeverage",),
    "leverage_answer_lost": ("updateLeverage",),
    "overfill": ORDERS,
    "fill_after_cancel": ("cancel", "cancelByCloid"),
    "open_orders_fail": ("openOrders", "frontendOpenOrders"),
    "open_orders_empty": ("openOrders", "frontendOpenOrders"),
    "account_empty": ("clearinghouseState",),
    "unknown_oid": ("orderStatus",),
    "doubled_fills": ("userFills", "userFillsByTime"),
    "fills_out_of_order": ("userFills", "userFillsByTime"),
    "late_fills": ("userFills", "userFillsByTime"),
}
"""Faults of requests, and which requests they break unless a rule says otherwise.

A request is named by its path (`exchange`, `info`), its type, and `trigger` or `reduce_only` where an order of it is one."""

STREAM_FAULTS = (
    "ws_drop",
    "ws_half_open",
    "ws_duplicate_snapshot",
    "ws_gap",
    "ws_wrong_user",
    "ws_silent_close",
    "ws_doubled_fill",
    "ws_fills_out_of_order",
    "ws_late_fill",
)
CONDITIONS = (
    "outage",
    "flapping",
    "price_10x",
    "price_zero",
    "price_negative",
    "price_frozen",
    "mark_far_from_oracle",
    "crossed_book",
    "trading_halt",
    "post_only_phase",
    "delisting",
    "funding_spike",
    "liquidation",
    "deleveraging",
    "agent_revoked",
    "agent_expired",
)
TABLE: dict[str, tuple[str, ...]] = {
    "timeouts": ("never_received", "executed_no_answer", "lands_late", "slow_answer"),
    "broken answers": ("http_500", "http_502_html", "empty_body", "truncated_json", "status_err", "order_error"),
    "partial batch": ("missing_status",),
    "limits": ("rate_limited", "address_budget_gone"),
    "fills": (
        "ws_doubled_fill",
        "ws_fills_out_of_order",
        "ws_late_fill",
        "doubled_fills",
        "fills_out_of_order",
        "late_fills",
        "fill_after_cancel",
        "overfill",
    ),
    "streams": ("ws_drop", "ws_half_open", "ws_duplicate_snapshot", "ws_gap", "ws_wrong_user", "ws_silent_close"),
    "open orders": ("open_orders_fail", "open_orders_empty", "account_empty"),
    "order status": ("unknown_oid",),
    "stops": ("stop_refused", "reduce_only_auto_cancel"),
    "leverage": ("leverage_refused", "leverage_answer_lost"),
    "venue events": (
        "funding_spike",
        "liquidation",
        "deleveraging",
        "delisting",
        "trading_halt",
        "post_only_phase",
    ),
    "nonces and agents": ("nonce_refused", "agent_refused", "agent_revoked", "agent_expired"),
    "prices": (
        "price_10x",
        "price_zero",
        "price_negative",
        "price_frozen",
        "mark_far_from_oracle",
        "crossed_book",
    ),
    "network": (
        "outage",
        "flapping",
        "connection_refused",
        "connection_reset",
        "dns_failure",
        "tls_failure",
        "captive_portal",
    ),
}
"""Every fault, by the row of the table. Fills before the answer of their order need no fault: streams are always told at once."""


@noun
class FaultRule:
    """When a fault happens.

    Faults of requests and streams happen with `probability` at every request or message they apply to, from the `after`-th on,
    at most `times` times, and only between `at_ms` and `at_ms + duration_ms` since the start if these are given. Conditions begin at `at_ms`, last
    `duration_ms`, and come back every `every_ms`.
    """

    kind: str
    probability: float = 1.0
    on: tuple[str, ...] = ()
    after: int = 0
    times: int | None = None
    at_ms: int = 0
    duration_ms: int | None = None
    every_ms: int | None = None
    low_ms: int = 100
    high_ms: int = 60_000
    executed: float = 0.5
    coin: str = ""
    share: Decimal = Decimal("0.5")


class FaultPlan:
    """Which request gets which fault. It follows from the seed and the order of requests. `counts` has what was done."""

    def __init__(self, rules: tuple[FaultRule, ...] = (), seed: int = 0) -> None:
        self.rules = list(rules)
        self.numbers = SeededNumbers(seed, "faults")
        self.counts: Counter[str] = Counter()
        self._eligible: Counter[int] = Counter()
        self._fired: Counter[int] = Counter()
        self._applicable: dict[tuple[str, ...], list[tuple[int, FaultRule]]] = {}
        for rule in rules:
            check_kind(rule.kind)

    def pick(self, names: tuple[str, ...], elapsed: int) -> FaultRule | None:
        """The fault of a request that goes by these names, `elapsed` milliseconds after the start."""
        applicable = self._applicable.get(names)
        if applicable is None:
            applicable = self._applicable[names] = [
                (place, rule)
                for place, rule in enumerate(self.rules)
                if set(names) & set(rule.on or REQUEST_FAULTS.get(rule.kind, ())) and rule.kind in REQUEST_FAULTS
            ]
        return next((rule for place, rule in applicable if self._fires(place, rule, elapsed)), None)

    def stream_fault(self, kind: str, elapsed: int) -> FaultRule | None:
        """Whether a fault of streams happens now."""
        for place, rule in enumerate(self.rules):
            if rule.kind == kind and self._fires(place, rule, elapsed):
                return rule
        return None

    def conditions(self) -> list[FaultRule]:
        """The rules that hold for a time."""
        return [rule for rule in self.rules if rule.kind in CONDITIONS]

    def _fires(self, place: int, rule: FaultRule, elapsed: int) -> bool:
        if elapsed < rule.at_ms or (rule.duration_ms is not None and elapsed >= rule.at_ms + rule.duration_ms):
            return False
        self._eligible[place] += 1
        if self._eligible[place] <= rule.after or (rule.times is not None and self._fired[place] >= rule.times):
            return False
        if not self.numbers.chance(rule.probability):
            return False
        self._fired[place] += 1
        self.counts[rule.kind] += 1
        return True

    def add(self, rule: FaultRule) -> None:
        """One more rule from now on."""
        check_kind(rule.kind)
        self.rules.append(rule)
        self._applicable.clear()

    def clear(self) -> None:
        """No more faults of requests and streams."""
        self.rules.clear()
        self._applicable.clear()
        self._eligible.clear()
        self._fired.clear()


def check_kind(kind: str) -> None:
    """Refuse a fault that does not exist."""
    every = (*REQUEST_FAULTS, *STREAM_FAULTS, *CONDITIONS)
    if kind not in every:
        raise UserError(f"there is no fault {kind!r}", f"one of {', '.join(every)}")


def mixed_faults(share: float) -> tuple[FaultRule, ...]:
    """A plan for long tests of clients: every fault of single requests, together on about this share of orders."""
    kinds = [
        "never_received",
        "executed_no_answer",
        "lands_late",
        "connection_refused",
        "connection_reset",
        "http_500",
        "http_502_html",
        "empty_body",
        "truncated_json",
        "status_err",
        "order_error",
        "missing_status",
        "rate_limited",
        "captive_portal",
    ]
    each = share / len(kinds)
    reads = share / 10
    return (
        *(FaultRule(kind, each, on=("order", "cancel", "cancelByCloid")) for kind in kinds),
        *(
            FaultRule(kind, reads, on=("info",))
            for kind in ("never_received", "http_500", "http_502_html", "empty_body", "truncated_json", "rate_limited")
        ),
        FaultRule("open_orders_fail", reads),
        FaultRule("open_orders_empty", reads),
        FaultRule("account_empty", reads),
        FaultRule("unknown_oid", share / 4, high_ms=5_000),
        FaultRule("late_fills", reads, high_ms=5_000),
        FaultRule("doubled_fills", reads),
        FaultRule("fills_out_of_order", reads),
    )
