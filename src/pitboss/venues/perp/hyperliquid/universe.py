"""The listed perpetuals, from the exchange's `meta`: their index on the wire, precision and margin tiers."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core.asset import Asset, make_asset
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.venues.perp.hyperliquid.strict_json import (
    UnreadableReply,
    amount_of,
    fields_of,
    flag_of,
    int_of,
    list_of,
    text_of,
)

_SINGLE_TIER_BELOW = 50
"""Margin tables with a lower id are not listed: the id is the maximum leverage of their only tier."""
_MOST_SIZE_DECIMALS = 6
_MOST_LEVERAGE = 1_000


@noun
class ListedAsset:
    """One perpetual as the exchange lists it; `index` identifies it on the wire."""

    index: int
    asset: Asset
    only_isolated: bool = False
    is_delisted: bool = False


def is_listed_here(coin: str) -> bool:
    """Return whether a coin is of the market of `meta`: not spot (`@107`, `PURR/USDC`), nor a market of builders (`dex:COIN`)."""
    return not coin.startswith("@") and "/" not in coin and ":" not in coin


def read_universe(reply: Any) -> Mapping[str, ListedAsset]:
    """Read a `meta` reply. Raises `UnreadableReply` unless every asset is complete: an index must never shift."""
    meta = fields_of(reply, "meta")
    tables = _tables(meta)
    listed: dict[str, ListedAsset] = {}
    for index, row in enumerate(list_of(meta.get("universe"), "universe")):
        fields = fields_of(row, "an asset")
        symbol, decimals, cap = text_of(fields, "name"), int_of(fields, "szDecimals"), int_of(fields, "maxLeverage")
        if symbol in listed or decimals > _MOST_SIZE_DECIMALS or not 1 <= cap <= _MOST_LEVERAGE:
            raise UnreadableReply("an asset is listed twice or has an impossible precision or leverage")
        table = fields.get("marginTableId")
        tiers = [(ZERO, cap)]
        if table is not None:
            number = int_of(fields, "marginTableId")
            tiers = tables.get(number) or ([(ZERO, number)] if 0 < number < _SINGLE_TIER_BELOW else tiers)
        listed[symbol] = ListedAsset(
            index, make_asset(symbol, decimals, tiers), flag_of(fields, "onlyIsolated"), flag_of(fields, "isDelisted")
        )
    if not listed:
        raise UnreadableReply("the universe is empty")
    return listed


def _tables(meta: Mapping[str, Any]) -> dict[int, list[tuple[Decimal, int]]]:
    tables: dict[int, list[tuple[Decimal, int]]] = {}
    for row in list_of(meta.get("marginTables") or [], "marginTables"):
        pair = list_of(row, "a margin table")
        if len(pair) != 2 or isinstance(pair[0], bool) or not isinstance(pair[0], int):
            raise UnreadableReply("a margin table is not an id and its tiers")
        tiers: list[tuple[Decimal, int]] = []
        for tier in list_of(fields_of(pair[1], "a margin table").get("marginTiers"), "marginTiers"):
            fields = fields_of(tier, "a margin tier")
            leverage = int_of(fields, "maxLeverage")
            if not 1 <= leverage <= _MOST_LEVERAGE:
                raise UnreadableReply("a margin tier has an impossible leverage")
            tiers.append((amount_of(fields, "lowerBound"), leverage))
        tiers.sort()
        if not tiers or tiers[0][0] != 0:
            raise UnreadableReply("margin tiers do not begin at zero")
        tables[pair[0]] = tiers
    return tables
