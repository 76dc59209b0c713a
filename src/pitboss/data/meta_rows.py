"""Hyperliquid's `meta` reply → rows of the lake. Also takes `metaAndAssetCtxs` and lists of several replies.

Only the properties of assets are read: size decimals and leverage tiers. Prices in the reply are ignored.
"""

from decimal import Decimal
from typing import Any

import polars as pl

from pitboss.core import codec
from pitboss.core.asset import Asset, make_asset
from pitboss.core.errors import UserError
from pitboss.core.money import text
from pitboss.data.excerpt import excerpt
from pitboss.data.series import SERIES, require_symbol

MOST_DECIMALS, MOST_LEVERAGE = 18, 1_000
_SINGLE_TIER_BELOW = 50
"""Margin tables with a lower id are not listed: the id is the maximum leverage of their only tier."""


def is_meta(value: Any) -> bool:
    """Whether a plain JSON value is, or holds, a perp `meta` reply."""
    return bool(_replies(value))


def meta_rows(value: Any, origin: str) -> tuple[pl.DataFrame, list[str]]:
    """One row for each listed asset, and notes on what was assumed."""
    rows: dict[str, tuple[str, int, str]] = {}
    notes: list[str] = []
    replies = _replies(value)
    if not replies:
        raise UserError(
            f"{origin}: not a `meta` reply", "it needs a `universe` of perps with name, szDecimals, maxLeverage"
        )
    for reply in replies:
        tables = _tables(reply, origin)
        for number, asset in enumerate(reply["universe"], 1):
            try:
                symbol, decimals, cap = asset["name"], int(asset["szDecimals"]), int(asset["maxLeverage"])
                if not symbol or not isinstance(symbol, str):
                    raise ValueError("a name is needed")
                table_id = None if asset.get("marginTableId") is None else int(asset["marginTableId"])
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
                raise UserError(
                    f"{origin}: asset {number} of the universe lacks a usable name, szDecimals, maxLeverage or marginTableId"
                ) from None
            require_symbol(symbol, origin)
            if symbol in rows:
                raise UserError(f"{origin}: {excerpt(symbol)} is listed twice")
            tiers, note = _tiers(table_id, cap, tables)
            if not 0 <= decimals <= MOST_DECIMALS or any(not 1 <= leverage <= MOST_LEVERAGE for _, leverage in tiers):
                raise UserError(f"{origin}: {excerpt(symbol)} has an impossible size precision or leverage")
            notes += [f"{symbol}: {note}"] if note else []
            stored_tiers = [[text(lower_bound), leverage] for lower_bound, leverage in tiers]
            rows[symbol] = (symbol, decimals, codec.dumps(stored_tiers).decode())
    if not rows:
        raise UserError(f"{origin}: the universe is empty")
    return pl.DataFrame(sorted(rows.values()), schema=dict(SERIES["meta"].columns), orient="row"), notes


def meta_assets(frame: pl.DataFrame) -> dict[str, Asset]:
    """The assets of rows of `meta`, by symbol."""
    return {
        symbol: make_asset(symbol, decimals, [(Decimal(lower_bound), cap) for lower_bound, cap in codec.loads(tiers)])
        for symbol, decimals, tiers in frame.sort("symbol").iter_rows()
    }


def _replies(value: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [
        reply
        for reply in values
        if isinstance(reply, dict) and isinstance(reply.get("universe"), list) and "tokens" not in reply
    ]


def _tables(reply: dict[str, Any], origin: str) -> dict[int, list[tuple[Decimal, int]]]:
    tables: dict[int, list[tuple[Decimal, int]]] = {}
    try:
        for number, table in reply.get("marginTables") or []:
            tiers = [(Decimal(str(tier["lowerBound"])), int(tier["maxLeverage"])) for tier in table["marginTiers"]]
            if not all(lower_bound.is_finite() for lower_bound, _ in tiers) or (tiers and min(tiers)[0] != 0):
                raise ValueError("a ladder begins at zero")
            tables[int(number)] = sorted(tiers)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise UserError(f"{origin}: marginTables cannot be read", "expected [[id, {marginTiers: […]}], …]") from None
    return tables


def _tiers(
    table_id: int | None, cap: int, tables: dict[int, list[tuple[Decimal, int]]]
) -> tuple[list[tuple[Decimal, int]], str]:
    if table_id is None:
        return [(Decimal(0), cap)], ""
    if tables.get(table_id):
        return tables[table_id], ""
    if table_id < _SINGLE_TIER_BELOW:
        return [(Decimal(0), table_id)], ""
    return [(Decimal(0), cap)], f"margin table {table_id} is not in the reply; taken as one tier of {cap}×"
