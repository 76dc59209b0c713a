"""A server on loopback with the documented API of the predict protocol's indexer, over rows in memory."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from source_servers import faulty_reply

from pitboss.core.instant import parse_instant

NOW = parse_instant("2026-04-20T12:00:00Z")
PREDICT = f"0x{'c8' * 32}"
MANAGER = f"0x{'ab' * 32}"
HOUR = 3_600_000
USD = 1_000_000_000


def oracle_id(number: int) -> str:
    """An oracle's id."""
    return f"0x{number:064x}"


def envelope(number: int, at: int = NOW) -> dict[str, Any]:
    """The fields of every event row."""
    return {
        "event_digest": f"digest{number}",
        "digest": f"tx{number}",
        "sender": f"0x{'1' * 64}",
        "checkpoint": 1_000 + number,
        "checkpoint_timestamp_ms": at,
        "tx_index": 0,
        "event_index": 0,
        "package": f"0x{'f5' * 32}",
    }


def oracle_row(number: int, expiry: int = NOW + HOUR, status: str = "active", **more: Any) -> dict[str, Any]:
    """A row of the list of oracles."""
    return {
        "predict_id": PREDICT,
        "oracle_id": oracle_id(number),
        "oracle_cap_id": oracle_id(900 + number),
        "underlying_asset": "BTC",
        "expiry": expiry,
        "min_strike": 50_000 * USD,
        "tick_size": USD,
        "status": status,
        "activated_at": NOW - HOUR if status != "created" else None,
        "settlement_price": 68_000 * USD if status == "settled" else None,
        "settled_at": expiry + 1 if status == "settled" else None,
        "created_checkpoint": number,
        **more,
    }


def price_row(number: int, oracle: int = 1, at: int = NOW - 1_000, **more: Any) -> dict[str, Any]:
    """A price update."""
    row = {"oracle_id": oracle_id(oracle), "spot": 68_000 * USD + number, "forward": 68_010 * USD + number}
    return {**envelope(number, at + 200), **row, "onchain_timestamp": at, **more}


def surface_row(number: int, oracle: int = 1, at: int = NOW - 5_000, **more: Any) -> dict[str, Any]:
    """A surface update: magnitudes with separate sign flags."""
    surface = {"a": 171_736, "b": 7_449_196, "rho": 243_059_022, "rho_negative": True}
    surface |= {"m": 1_133_202, "m_negative": False, "sigma": 15_731_214}
    return {**envelope(number, at + 200), "oracle_id": oracle_id(oracle), **surface, "onchain_timestamp": at, **more}


def mint_row(number: int, oracle: int = 1, at: int = NOW - 2_000, **more: Any) -> dict[str, Any]:
    """A mint."""
    row = {
        "type": "mint",
        "predict_id": PREDICT,
        "manager_id": MANAGER,
        "trader": f"0x{'2' * 64}",
        "quote_asset": "0xe9::dusdc::DUSDC",
        "oracle_id": oracle_id(oracle),
        "expiry": NOW + HOUR,
        "strike": 68_000 * USD,
        "is_up": True,
        "quantity": 2_000_000,
        "cost": 1_100_000,
        "ask_price": 550_000_000,
    }
    return {**envelope(number, at), **row, **more}


def redeem_row(number: int, **more: Any) -> dict[str, Any]:
    """A redeem."""
    row = mint_row(number)
    for name in ("cost", "ask_price", "trader"):
        del row[name]
    back = {"type": "redeem", "payout": 900_000, "bid_price": 450_000_000, "is_settled": False, "is_up": False}
    return {**row, **back, "owner": MANAGER, "executor": MANAGER, **more}


def position_row(number: int = 1, **more: Any) -> dict[str, Any]:
    """A row of a manager's positions."""
    return {
        "oracle_id": oracle_id(number),
        "underlying_asset": "BTC",
        "expiry": NOW + HOUR,
        "strike": 68_000 * USD,
        "is_up": True,
        "minted_quantity": 2_000_000,
        "redeemed_quantity": 0,
        "open_quantity": 2_000_000,
        "total_cost": 1_100_000,
        "total_payout": 0,
        "realized_pnl": -25,
        "unrealized_pnl": None,
        "open_cost_basis": 1_100_000,
        "average_entry_price": 550_000_000,
        "mark_price": 540_000_000,
        "mark_value": 1_080_000,
        "status": "active",
        **more,
    }


def protocol_state(**more: Any) -> dict[str, Any]:
    """The protocol's settings, unchanged."""
    fresh = {"pricing": None, "risk": None, "trading_paused": None}
    return {"predict_id": PREDICT, **fresh, "quote_assets": ["0xe9::dusdc::DUSDC"], **more}


def vault_summary(**more: Any) -> dict[str, Any]:
    """The totals of the vault."""
    return {
        "predict_id": PREDICT,
        "quote_assets": [],
        "vault_balance": 1_015_751_903_194,
        "vault_value": 1_014_987_638_938,
        "total_mtm": 764_264_256,
        "total_max_payout": 2_130_579_304,
        "available_liquidity": 1_013_621_323_890,
        "available_withdrawal": 1_013_621_323_890,
        "plp_total_supply": 1_013_114_841_700,
        "plp_share_price": 1.0018485537482182,
        "utilization": 0.0007524123298187235,
        "max_payout_utilization": 0.0020975390715985472,
        "net_deposits": 1_013_136_152_701,
        "total_supplied": 1_072_609_144_409,
        "total_withdrawn": 59_472_991_708,
        **more,
    }


def indexer_status(**more: Any) -> dict[str, Any]:
    """The status of the indexer."""
    return {
        "status": "OK",
        "latest_onchain_checkpoint": 123_456,
        "current_time_ms": NOW,
        "earliest_checkpoint": 1,
        "max_lag_pipeline": "oracle_prices_updated",
        "max_checkpoint_lag": 3,
        "max_time_lag_seconds": 1,
        "pipelines": [],
        **more,
    }


@dataclass
class IndexerServer:
    """The indexer. `replies` are fixed answers by path."""

    replies: dict[str, Any] = field(default_factory=dict)
    faults: Callable[[int], str | None] = lambda number: None
    content: bytes | None = None
    hang: bool = False
    paths: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.reply)
        return app

    async def reply(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path_qs)
        if self.hang:
            await asyncio.sleep(30)  # longer than any client waits
        if self.content is not None:
            return web.Response(body=self.content)
        if request.path not in self.replies:
            return web.Response(status=404, text="not found")
        number = len(self.paths)
        return await faulty_reply(request, self.replies[request.path], self.faults(number), random.Random(number))


def server_with_oracles(*rows: dict[str, Any], **states: Any) -> IndexerServer:
    """A server with these oracles; each has a price and a surface unless another state is given by its number."""
    replies: dict[str, Any] = {f"/predicts/{PREDICT}/oracles": list(rows)}
    for row in rows:
        number = int(row["oracle_id"], 16)
        result = {"oracle": row, "latest_price": price_row(number, number), "latest_svi": surface_row(number, number)}
        result |= {"ask_bounds": None} | states.get(f"o{number}", {})
        replies[f"/oracles/{row['oracle_id']}/state"] = result
    return IndexerServer(replies)
