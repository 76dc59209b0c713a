"""`python -m pitboss.testing.hyperliquid --port P`: serve a fake exchange in wall time until the process is told to stop.

The first line of its output is JSON: the address, and an account that is ready to trade with the key of its agent.
"""

import argparse
import asyncio
import json
import signal
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pitboss.bootstrap.machine import SystemClock
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.fault_file import read_faults
from pitboss.testing.hyperliquid.faults import FaultPlan
from pitboss.testing.hyperliquid.price_path import PricePath, RecordedPrices, read_prices
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import serving
from pitboss.testing.hyperliquid.universe import LISTED, listed

HISTORY_DAYS = 14


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m pitboss.testing.hyperliquid", description="A seeded fake of the Hyperliquid exchange."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
    parser.add_argument("--seed", type=int, default=0, help="prices, books, keys and faults follow from it")
    parser.add_argument("--faults", type=Path, metavar="FILE", help="a plan of faults, TOML or JSON")
    parser.add_argument("--prices", type=Path, metavar="FILE", help='JSON {"BTC": [[ms, price], ...]} or bars')
    parser.add_argument("--symbols", default="", metavar="BTC,ETH", help="list these coins only")
    parser.add_argument("--deposit", default="10000", metavar="USDC", help="what the ready account begins with")
    parser.add_argument(
        "--history-days",
        type=int,
        metavar="N",
        help="candles and funding from before the start: 14 days, with --prices none; a file of prices begins there",
    )
    parser.add_argument("--mainnet", action="store_true", help="take signatures of mainnet instead of testnet")
    return parser.parse_args(arguments)


def build(options: argparse.Namespace) -> tuple[FakeExchange, FaultPlan]:
    """The exchange and the plan that the options describe."""
    start = SystemClock().now()
    perps = listed(options.symbols) if options.symbols else LISTED
    rows = read_prices(options.prices) if options.prices else {}
    days = (0 if options.prices else HISTORY_DAYS) if options.history_days is None else options.history_days
    history_ms = days * DAY_MS
    paths: dict[str, PricePath] = {coin: RecordedPrices(points, start - history_ms) for coin, points in rows.items()}
    if missing := set(paths) - {perp.name for perp in perps}:
        raise UserError(f"prices of coins that are not listed: {', '.join(sorted(missing))}", "see --symbols")
    try:
        deposit = Decimal(options.deposit)
    except InvalidOperation:
        raise UserError(f"cannot read {options.deposit!r} as an amount", "write --deposit 10000") from None
    rules = VenueRules(is_mainnet=options.mainnet, history_ms=history_ms)
    exchange = FakeExchange(options.seed, perps, start, rules, paths, deposit)
    return exchange, FaultPlan(read_faults(options.faults) if options.faults else (), options.seed)


async def serve(options: argparse.Namespace) -> None:
    """Serve until a signal arrives."""
    exchange, plan = build(options)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(exchange, plan, SystemClock().now, options.port) as server:
        ready = exchange.ready
        print(
            json.dumps(
                {
                    "url": server.url,
                    "ws": server.url.replace("http", "ws", 1) + "/ws",
                    "network": "mainnet" if options.mainnet else "testnet",
                    "seed": options.seed,
                    "account": {
                        "master_address": ready.master_address,
                        "agent_address": ready.agent_address,
                        "agent_private_key": ready.agent_private_key,
                    },
                }
            ),
            flush=True,
        )
        await stop.wait()


def main() -> None:
    """Run the program."""
    options = read_options()
    try:
        asyncio.run(serve(options))
    except UserError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    except (OSError, OverflowError) as error:
        print(f"cannot listen on port {options.port}: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
