"""`PredictionServices`: a local stand-in of a prediction protocol's indexer and of the Pyth price feed, on one port.

For tests and experiments; nothing in it is a real market. All data is a function of the clock: a price for every
second, pushes of it to every market, a volatility surface that shrinks with the time left, trades, settlements. Paths
and fields are those that the services document, so that a client cannot tell the difference.

    python -m pitboss.testing.prediction_services --port 8600      prints its address; ends with its standard input
"""

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import erfc, log, sqrt
from typing import Any, Self

from aiohttp import web

from pitboss.bootstrap.machine import SystemClock
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Instant

BTC = "e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43"
USD, ONE = 10**9, 10**6
PREDICT = f"0x{'c8' * 32}"
QUOTE_ASSET = f"0x{'e9' * 32}::dusdc::DUSDC"
SURFACE = (171_736, 7_449_196, -243_059_022, 1_133_202, 15_731_214)
"""A recorded surface (a, b, rho, m, sigma in billionths), here that of `SURFACE_MS` before expiry."""
SURFACE_MS = 10 * HOUR_MS
SURFACE_EVERY_MS = 15 * SECOND_MS
TRADE_EVERY_MS = 20 * SECOND_MS
SETTLES_AFTER_MS = 1_000
"""How long after an expiry the settling price is pushed."""
REMEMBERED_MS = 2 * HOUR_MS
STEPS: dict[str, tuple[int, int]] = {
    "15m": (15 * MINUTE_MS, 0),
    "1h": (HOUR_MS, 0),
    "1d": (DAY_MS, 8 * HOUR_MS),
    "1w": (7 * DAY_MS, DAY_MS + 8 * HOUR_MS),
}
"""Time between two expiries of a tier, and the first one after 1970."""
Row = dict[str, Any]


def wandering(second: int) -> float:
    """A price for every second: it moves enough for a volatility, and never far."""
    return 68_000 + (second // 7 * 7_919) % 97 + (second * 31) % 11 / 8


@dataclass
class PredictionServices:
    """The services. `now` is their clock; `fault` says what goes wrong with a request: `down`, `hang` or `garbled`."""

    now: Callable[[], Instant] = field(default_factory=lambda: SystemClock().now)
    price: Callable[[int], float] = wandering
    underlying: str = "BTC"
    tiers: tuple[str, ...] = tuple(STEPS)
    min_strike_usd: int = 50_000
    paused: bool | None = None
    pricing: Row | None = None
    silent: frozenset[str] = frozenset()
    """Ids of oracles that no longer get prices."""
    twins: bool = False
    """Whether the nearest market has a twin that no longer gets prices."""
    positions: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])
    """Rows of `/managers/:id/positions/summary` by manager."""
    redemptions: list[Row] = field(default_factory=list[Row])
    """Rows of `/positions/redeemed`, newest first."""
    fault: Callable[[str], str] = lambda path: ""
    requests: list[str] = field(default_factory=list[str])
    url: str = ""
    _runner: web.AppRunner | None = field(default=None, init=False, repr=False)

    # Markets --------------------------------------------------------------------------------------------------------

    def expiries(self) -> list[Instant]:
        """The expiries that are listed: those of the schedule, and those of the last hours."""
        now, instants = self.now(), set[Instant]()
        for tier in self.tiers:
            step, offset = STEPS[tier]
            first = offset - (offset - now - HOUR_MS) // step * step
            instants.update(range(first - (first - now + REMEMBERED_MS) // step * step, first + 4 * step, step))
        return sorted(instants)

    def oracle_id(self, expiry_at: Instant, twin: bool = False) -> str:
        """The id of the oracle of an expiry."""
        return "0x" + hashlib.sha256(f"{self.underlying} {expiry_at} {twin}".encode()).hexdigest()

    def oracles(self) -> list[Row]:
        """Every oracle as the list shows it, newest first."""
        rows = [self._oracle(expiry_at) for expiry_at in self.expiries()]
        if self.twins:
            nearest = next(row["expiry"] for row in rows if row["expiry"] > self.now())
            rows.append(self._oracle(nearest, twin=True))
        return rows[::-1]

    def _oracle(self, expiry_at: Instant, twin: bool = False) -> Row:
        settled = self.now() >= expiry_at + SETTLES_AFTER_MS
        return {
            "predict_id": PREDICT,
            "oracle_id": self.oracle_id(expiry_at, twin),
            "oracle_cap_id": f"0x{'0c' * 32}",
            "underlying_asset": self.underlying,
            "expiry": expiry_at,
            "min_strike": self.min_strike_usd * USD,
            "tick_size": USD,
            "status": "settled" if settled else "active",
            "activated_at": expiry_at - 28 * DAY_MS,
            "settlement_price": self._spot(expiry_at // SECOND_MS) if settled else None,
            "settled_at": expiry_at + SETTLES_AFTER_MS if settled else None,
            "created_checkpoint": expiry_at // MINUTE_MS,
        }

    def _spot(self, second: int) -> int:
        return round(self.price(second) * USD)

    def prices(self, row: Row, start: Instant, end: Instant, limit: int) -> list[Row]:
        """Pushes of a price to an oracle, newest first: one a second, until five seconds before its expiry."""
        last = min(self.now() // SECOND_MS - 1, row["expiry"] // SECOND_MS - 5, end // SECOND_MS)
        if row["oracle_id"] in self.silent or row["oracle_id"] == self.oracle_id(row["expiry"], twin=True):
            last -= 600
        seconds = range(last, max(start // SECOND_MS, last - limit), -1)
        return [
            {
                **_envelope(f"price {row['oracle_id']} {second}", second * SECOND_MS + 200),
                "oracle_id": row["oracle_id"],
                "spot": self._spot(second),
                "forward": self._spot(second) + USD // 100,
                "onchain_timestamp": second * SECOND_MS,
            }
            for second in seconds
        ]

    def surfaces(self, row: Row, limit: int) -> list[Row]:
        """Pushes of a surface to an oracle, newest first."""
        last = min(self.now() - SECOND_MS, row["expiry"] - SURFACE_EVERY_MS) // SURFACE_EVERY_MS * SURFACE_EVERY_MS
        rows: list[Row] = []
        for at in range(last, last - limit * SURFACE_EVERY_MS, -SURFACE_EVERY_MS):
            a, b, rho, m, sigma = surface(row["expiry"] - at)
            rows.append(
                {
                    **_envelope(f"svi {row['oracle_id']} {at}", at + 200),
                    "oracle_id": row["oracle_id"],
                    "a": a,
                    "b": b,
                    "rho": abs(rho),
                    "rho_negative": rho < 0,
                    "m": abs(m),
                    "m_negative": m < 0,
                    "sigma": sigma,
                    "onchain_timestamp": at,
                }
            )
        return rows

    def trades(self, row: Row, limit: int) -> list[Row]:
        """Mints by others in a market, newest first, at the ask of their second."""
        last = min(self.now() - SECOND_MS, row["expiry"] - MINUTE_MS) // TRADE_EVERY_MS * TRADE_EVERY_MS
        rows: list[Row] = []
        for at in range(last, last - limit * TRADE_EVERY_MS, -TRADE_EVERY_MS):
            spot, is_up = self.price(at // SECOND_MS), at // TRADE_EVERY_MS % 2 == 0
            strike = round(spot / 50) * 50
            ask = round(ask_price(spot, strike, surface(row["expiry"] - at), is_up) * USD)
            quantity = (2 + at // TRADE_EVERY_MS % 5) * ONE
            rows.append(
                {
                    **_envelope(f"trade {row['oracle_id']} {at}", at),
                    "type": "mint",
                    "predict_id": PREDICT,
                    "manager_id": f"0x{'a1' * 32}",
                    "trader": f"0x{'b2' * 32}",
                    "quote_asset": QUOTE_ASSET,
                    "oracle_id": row["oracle_id"],
                    "expiry": row["expiry"],
                    "strike": strike * USD,
                    "is_up": is_up,
                    "quantity": quantity,
                    "cost": ask * quantity // USD,
                    "ask_price": ask,
                }
            )
        return rows

    # Replies --------------------------------------------------------------------------------------------------------

    def reply(self, path: str, query: dict[str, str]) -> Any:
        """The reply of the indexer to a path; None where it has nothing."""
        parts = path.strip("/").split("/")
        limit = min(1_000, int(query.get("limit", 100)))
        if parts in (["oracles"], ["predicts", PREDICT, "oracles"]):
            return self.oracles()
        if parts[:2] == ["predicts", PREDICT]:
            return self._protocol("/".join(parts[2:]))
        if parts in (["status"], ["health"]):
            return self._status()
        if parts[0] == "managers" and parts[2:] == ["positions", "summary"]:
            return self.positions.get(parts[1], [])
        if parts == ["positions", "redeemed"]:
            names = {name: query[name] for name in ("manager_id", "oracle_id") if name in query}
            return [row for row in self.redemptions if names.items() <= row.items()][:limit]
        row = next((row for row in self.oracles() if len(parts) > 1 and row["oracle_id"] == parts[1]), None)
        if row is None:
            return None
        if parts[0] == "trades":
            return self.trades(row, limit)
        newest_prices, newest_surfaces = self.prices(row, 0, self.now(), 1), self.surfaces(row, 1)
        replies: dict[str, Callable[[], Any]] = {
            "state": lambda: {
                "oracle": row,
                "latest_price": newest_prices[0],
                "latest_svi": newest_surfaces[0],
                "ask_bounds": None,
            },
            "prices": lambda: self.prices(
                row, int(query.get("start_time", 0)), int(query.get("end_time", self.now())), limit
            ),
            "prices/latest": lambda: newest_prices[0],
            "svi": lambda: self.surfaces(row, limit),
            "svi/latest": lambda: newest_surfaces[0],
        }
        answer = replies.get("/".join(parts[2:]))
        return None if parts[0] != "oracles" or answer is None else answer()

    def _protocol(self, name: str) -> Any:
        if name == "state":
            state = {"predict_id": PREDICT, "pricing": self.pricing, "risk": None, "trading_paused": self.paused}
            return {**state, "quote_assets": [QUOTE_ASSET]}
        if name == "quote-assets":
            return [QUOTE_ASSET]
        if name != "vault/summary":
            return None
        balance, mtm, payout = 1_015_751_903_194, 764_264_256, 2_130_579_304
        return {
            "predict_id": PREDICT,
            "quote_assets": [QUOTE_ASSET],
            "vault_balance": balance,
            "vault_value": balance - mtm,
            "total_mtm": mtm,
            "total_max_payout": payout,
            "available_liquidity": balance - payout,
            "available_withdrawal": balance - payout,
            "plp_total_supply": 1_013_114_841_700,
            "plp_share_price": (balance - mtm) / 1_013_114_841_700,
            "utilization": mtm / balance,
            "max_payout_utilization": payout / balance,
            "net_deposits": 1_013_136_152_701,
            "total_supplied": 1_072_609_144_409,
            "total_withdrawn": 59_472_991_708,
        }

    def _status(self) -> Row:
        return {
            "status": "OK",
            "latest_onchain_checkpoint": self.now() // 250,
            "current_time_ms": self.now(),
            "earliest_checkpoint": 1,
            "max_lag_pipeline": "oracle_prices_updated",
            "max_checkpoint_lag": 3,
            "max_time_lag_seconds": 1,
            "pipelines": [],
        }

    def hermes(self, when: str) -> Row | None:
        """The reply of Hermes: the newest price, or that of a second; None for a second that is still to come."""
        now = self.now() // SECOND_MS
        second = now - 1 if when == "latest" else int(when)
        if second > now:
            return None
        units = round(self.price(second) * 10**8)
        price = {"price": str(units), "conf": str(units // 20_000), "expo": -8, "publish_time": second}
        metadata = {"slot": second, "proof_available_time": second + 1, "prev_publish_time": second - 1}
        parsed = [{"id": BTC, "price": price, "ema_price": price, "metadata": metadata}]
        return {"binary": {"encoding": "hex", "data": ["504e4155"]}, "parsed": parsed}

    def candles(self, from_s: int, to_s: int) -> Row:
        """The reply of Benchmarks: closed one-minute candles."""
        times = list(range(-(-from_s // 60) * 60, min(to_s, self.now() // SECOND_MS - 60) + 1, 60))
        if not times:
            return {"s": "no_data", "t": []}
        opened, closed = [self.price(at) for at in times], [self.price(at + 59) for at in times]
        pairs = list(zip(opened, closed, strict=True))
        highs, lows = [max(pair) + 1 for pair in pairs], [min(pair) - 1 for pair in pairs]
        return {"s": "ok", "t": times, "o": opened, "h": highs, "l": lows, "c": closed, "v": [0] * len(times)}

    # The server -----------------------------------------------------------------------------------------------------

    def app(self) -> web.Application:
        """The services as a web application."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        fault = self.fault(request.path)
        if fault == "hang":
            await asyncio.get_running_loop().create_future()
        if fault == "down":
            return web.Response(status=503, text="null")
        if fault == "garbled":
            return web.Response(body=b'{"parsed": [', content_type="application/json")
        if request.path.startswith("/v2/updates/price/"):
            value: Any = self.hermes(request.path.rpartition("/")[2])
        elif request.path == "/v1/shims/tradingview/history":
            value = self.candles(int(request.query["from"]), int(request.query["to"]))
        else:
            value = self.reply(request.path, dict(request.query))
        return web.Response(status=404, text="not found") if value is None else web.json_response(value)

    async def start(self, port: int = 0) -> Self:
        """Listen on loopback; `url` is the address."""
        self._runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()


def surface(left_ms: int) -> tuple[int, ...]:
    """The surface in billionths for the time left: the shape of the recorded one, its variance in proportion to time."""
    share = max(left_ms, SECOND_MS) / SURFACE_MS
    a, b, rho, m, sigma = SURFACE
    root = sqrt(share)
    return max(1, round(a * share)), max(1, round(b * root)), rho, round(m * root), max(1, round(sigma * root))


def ask_price(forward: float, strike: float, units: tuple[int, ...], is_up: bool) -> float:
    """The ask of one contract by the protocol's formula, for an idle vault."""
    a, b, rho, m, sigma = (value / USD for value in units)
    k = log(strike / forward)
    w = a + b * (rho * (k - m) + sqrt((k - m) ** 2 + sigma**2))
    up = erfc((k + w / 2) / sqrt(2 * w)) / 2
    fair = up if is_up else 1 - up
    return min(1.0, fair + max(0.02 * sqrt(fair * (1 - fair)), 0.005))


def _envelope(name: str, at: Instant) -> Row:
    """The fields that every event row has."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "event_digest": digest[:44],
        "digest": digest[20:],
        "sender": f"0x{'51' * 32}",
        "checkpoint": at // 250,
        "checkpoint_timestamp_ms": at,
        "tx_index": 0,
        "event_index": 0,
        "package": f"0x{'f5' * 32}",
    }


async def _serve(port: int) -> None:
    services = await PredictionServices().start(port)
    print(services.url, flush=True)
    with suppress(EOFError):
        await asyncio.to_thread(sys.stdin.read)
    await services.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A stand-in of a prediction protocol's indexer and of Pyth.")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))
