"""`HyperliquidPolicy`: the account, the assets and the caps of the scheme `hyperliquid_action`.

The signing process has no market data, so the policy bounds prices itself: an opening order outside the band of its asset is refused,
and an opening sell, which may trade at any price above its limit, is counted at the upper end of the band.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS
from pitboss.core.money import CONTEXT
from pitboss.signer.addresses import address_problem
from pitboss.signer.hyperliquid.action_hash import Network
from pitboss.signer.hyperliquid.actions import OrderWire
from pitboss.signer.scheme_definition import PolicyAnswers, PolicySection

SCHEME_NAME = "hyperliquid_action"
MOST_EXPIRY_MS = 15 * SECOND_MS
FIRST_SPOT_ASSET = 10_000
"""Indices from here on are spot markets and those of builders, where reduce-only is no promise."""

Dollars = Annotated[Decimal, Field(ge=0, le=10**12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]


class HyperliquidCaps(PolicySection):
    """Limits of opening orders. Reduce-only orders and cancels are bound by none of them."""

    order_notional_usd: Dollars
    opened_notional_per_day_usd: Dollars
    orders_per_minute: Count
    orders_per_day: Count
    expiry_ms: Annotated[int, Field(ge=1, le=MOST_EXPIRY_MS, strict=True)] = MOST_EXPIRY_MS


class AssetPolicy(PolicySection):
    """One perpetual, by its index in the exchange's universe: its most leverage, and the band of prices to open at."""

    index: Annotated[int, Field(ge=0, lt=FIRST_SPOT_ASSET, strict=True)]
    name: Annotated[str, Field(min_length=1, max_length=40)]
    leverage: Annotated[int, Field(ge=1, le=100, strict=True)]
    lowest_price: Annotated[Decimal, Field(gt=0, allow_inf_nan=False)]
    highest_price: Annotated[Decimal, Field(gt=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _band_is_one(self) -> "AssetPolicy":
        if self.lowest_price >= self.highest_price:
            raise ValueError("lowest_price is not below highest_price")
        return self

    def has_in_band(self, price: Decimal) -> bool:
        """Whether an order may open at a price."""
        return self.lowest_price <= price <= self.highest_price

    def notional(self, order: OrderWire) -> Decimal:
        """The most that an opening order can be worth: a sell may trade above its limit."""
        return CONTEXT.multiply(order.size, order.price if order.is_buy else self.highest_price)


class HyperliquidPolicy(PolicySection):
    """The policy file. `account` is the master account, whose own key must never be here."""

    version: Literal[1]
    scheme: Literal["hyperliquid_action"]
    network: Network
    account: str
    vault: str | None = None
    reduce_only: bool = False
    """Whether nothing is signed that opens: reduce-only orders and cancels alone, as the key of a watchdog needs."""
    caps: HyperliquidCaps
    assets: Annotated[tuple[AssetPolicy, ...], Field(min_length=1, max_length=1_000)]

    @field_validator("account", "vault")
    @classmethod
    def _is_account(cls, value: str | None) -> str | None:
        problem = address_problem(value) if value is not None else ""
        if problem:
            raise ValueError(problem)
        return None if value is None else value.lower()

    @model_validator(mode="after")
    def _assets_differ(self) -> "HyperliquidPolicy":
        if len({asset.index for asset in self.assets}) < len(self.assets):
            raise ValueError("an asset is listed twice")
        return self

    def table(self) -> Mapping[int, AssetPolicy]:
        """The assets by index."""
        return {asset.index: asset for asset in self.assets}


EXAMPLE_POLICY = """\
# What this signer may sign. It is read once, when the signer starts. Amounts are in dollars.
version = 1
scheme = "hyperliquid_action"
network = "{network}"                # mainnet or testnet
account = "{account}"
# vault = "0x…"                      # a vault or sub-account to trade for
reduce_only = {reduce_only}                  # true: nothing is signed that opens, whatever the caps say

[caps]                               # of opening orders; reduce-only orders and cancels are always signed
order_notional_usd = 200
opened_notional_per_day_usd = 1000   # of a UTC day, filled or not
orders_per_minute = 4
orders_per_day = 40
expiry_ms = 15_000                   # how far ahead an action may expire; 15,000 at most

[[assets]]                           # nothing else can be opened
index = 0                            # place in the exchange's universe: read it from `meta` of your network
name = "BTC"
leverage = 3
lowest_price = 20_000                # an opening order outside the band is refused
highest_price = 250_000              # and an opening sell is counted at this price
"""


def example_policy(answers: PolicyAnswers) -> str:
    """A policy with small caps and one asset, for an account."""
    problem = address_problem(answers.account) if answers.account else "there is none"
    if problem:
        raise UserError(
            f"the account to trade for cannot be read: {problem}",
            "add --account with the address of the master account; its key stays elsewhere",
        )
    values = {"network": answers.network, "account": answers.account, "reduce_only": str(answers.reduce_only).lower()}
    text = EXAMPLE_POLICY
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
