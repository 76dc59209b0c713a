"""`ExchangeState`: everything the fake exchange knows, the rules it is set to, and the events it tells its listeners.

The modules around it change it: `matching`, `triggers`, `liquidation`, `agenda` (time), `actions` (requests). It does nothing by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid.account import FakeAccount, FundingPayment, VenueFill
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.orders import PlacedOrder
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.seeded import SeededNumbers


@noun
class OrderChanged:
    """An order has a new status, or was filled in part."""

    account: str
    order: PlacedOrder
    status: str
    remaining: Decimal
    at: Instant


@noun
class FillMade:
    """An account has traded."""

    account: str
    fill: VenueFill


@noun
class FundingMade:
    """An account paid or received funding."""

    account: str
    payment: FundingPayment


@noun
class LiquidationStarted:
    """An account fell below its maintenance margin."""

    account: str
    notional: Decimal
    account_value: Decimal
    lid: int


@noun
class PricesMoved:
    """Prices have taken a step."""

    at: Instant


VenueEvent = OrderChanged | FillMade | FundingMade | LiquidationStarted | PricesMoved


@noun
class ActionReceived:
    """One signed action that reached the exchange: for `Truth`."""

    at: Instant
    signer: str
    action: str
    nonce: int
    expires_after: Instant | None
    outcome: str


@dataclass
class ExchangeState:
    """The state. `markets` is in the order of the universe, so that the place of a coin is its asset id."""

    now: Instant
    rules: VenueRules
    markets: dict[str, CoinMarket]
    numbers: SeededNumbers
    accounts: dict[str, FakeAccount] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    """Agent address to account address, expired agents included."""
    resting: dict[str, dict[int, PlacedOrder]] = field(default_factory=dict)
    triggers: dict[str, dict[int, PlacedOrder]] = field(default_factory=dict)
    listeners: list[Callable[[VenueEvent], None]] = field(default_factory=list)
    received: list[ActionReceived] = field(default_factory=list)
    next_oid: int = 10_000_000_001
    next_tid: int = 700_000_000_000_001
    is_post_only: bool = False
    overfill: bool = False
    """Whether the next fill of an order exceeds its size: a fault."""
    coins: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.coins = list(self.markets)
        self.resting = {coin: {} for coin in self.coins}
        self.triggers = {coin: {} for coin in self.coins}

    def tell(self, event: VenueEvent) -> None:
        """Give an event to every listener."""
        for listener in self.listeners:
            listener(event)

    def new_oid(self) -> int:
        """The next order id."""
        self.next_oid += 1
        return self.next_oid

    def new_tid(self) -> int:
        """The next trade id."""
        self.next_tid += 1 + self.numbers.below(1_000)
        return self.next_tid

    def set_status(self, order: PlacedOrder, status: str) -> None:
        """Give an order a new status, and take it out of the books unless it is open."""
        order.status, order.status_at = status, self.now
        if status != "open":
            self.resting[order.coin].pop(order.oid, None)
            self.triggers[order.coin].pop(order.oid, None)
            self.accounts[order.account].open_orders.pop(order.oid, None)
        if self.listeners:
            self.tell(OrderChanged(order.account, order, status, order.remaining, self.now))
