"""Blind runs in memory: a market with all kinds of data, a model that calls every tool, and the requests it received."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from blind_leaks import BlindLeakScanner, texts
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import HOUR_MS, interval_ms, parse_instant
from pitboss.core.market import CalendarEvent, NewsItem, Points
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.scripted import ScriptedModel, calls, together
from pitboss.runs.tool_loop import tool_loop
from pitboss.sim.connections import Connections
from pitboss.sim.outcome import Ledger
from pitboss.sim.past import RunPast
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.intents import DECISION, TERMINAL
from pitboss.venues.perp.outcome import read_ledger
from pitboss.venues.perp.portfolio import portfolio
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, plain_skill
from pitboss.venues.perp.venue import VENUE

FROM, TO = parse_instant("2024-05-06"), parse_instant("2024-05-09")
SYMBOLS = ("BTC", "ETH", "LINK")
LEVELS = {"BTC": 63_000.0, "ETH": 3_100.0, "LINK": 14.0, "SOL": 150.0, "HYPE": 30.0}
LOOKS = tuple(name for name, tool in VENUE.tools().items() if "write" in tool.modes and name != "propose_order")

HEADLINES = (
    "Bitcoin slides below $62,500 as BTC miners sell 1,200 coins ahead of the halving",
    "Vitalik Buterin: Ethereum gas fees fell 43% in May 2024, ETH burns on",
    "Chainlink (LINK) joins a pilot with Swift on 2024-05-07; $LINK up 12%",
    "BTCUSDT open interest tops 310,000 BTC on Binance, says CoinGlass",
    "Fed's Powell speaks on May 8th; bitcoin and ether hold at $63,120.50 and 3,104",
    "SOLANA outage? Solana's validators deny it, SOL drops to 148.75",
    "Markets quiet before the weekend",
)
THESIS = (
    "Buy BTC breakouts after the 2024 halving; Bitcoin leads and ETH follows within hours. LINK is traded with ETH. "
    "Risk at most 150 USD."
)


def market_of(symbols: Sequence[str] = SYMBOLS, seed: int = 5, days: int = 12) -> Market:
    """Bars of three intervals, funding, open interest, marks, news and events, from before the run to its end."""
    rng = np.random.default_rng(seed)
    start = FROM - (days - 3) * 24 * HOUR_MS
    bars, points = {}, {}
    for symbol in symbols:
        base = _walk(rng, LEVELS[symbol], days * 24 * 4)
        for interval, every in (("15m", 1), ("1h", 4), ("4h", 16)):
            bars[symbol, interval] = _bars(symbol, interval, start, base, every, rng)
        hours = start + HOUR_MS * np.arange(days * 24, dtype=np.int64)
        points["funding", symbol] = Points(symbol, "funding", hours, np.round(rng.normal(1e-5, 4e-5, len(hours)), 9))
        interest = np.round(1e6 / LEVELS[symbol] * np.exp(np.cumsum(rng.normal(0, 0.01, len(hours)))), 3)
        points["open_interest", symbol] = Points(symbol, "open_interest", hours, interest)
    news = [
        NewsItem(at - 60_000, at, "coindesk bitcoin desk", HEADLINES[place % len(HEADLINES)], 0.2, ("BTC",))
        for place, at in enumerate(range(start, TO, 2 * HOUR_MS))
    ]
    events = [
        CalendarEvent(FROM + 20 * HOUR_MS, start, "FOMC", "FOMC rate decision, May 2024", 0.9),
        CalendarEvent(
            FROM + 44 * HOUR_MS,
            start,
            "unlock",
            "BTC options expiry of $9.5 billion on 2024-05-08",
            0.7,
            ("BTC", "DOGE"),
        ),
    ]
    return Market(bars, points, news, events)


def _walk(rng: np.random.Generator, level: float, count: int) -> Any:
    digits = 1 if level > 10_000 else 2 if level > 1_000 else 4
    return np.round(level * np.exp(np.cumsum(rng.normal(0, 0.004, count + 1))), digits)


def _bars(symbol: str, interval: str, start: int, path: Any, every: int, rng: np.random.Generator) -> Any:
    from pitboss.core.market import Bars

    close, first = path[every::every], path[:-every:every]
    high, low = np.maximum(first, close) * 1.0011, np.minimum(first, close) * 0.9989
    step = interval_ms(interval)
    at = start + step * np.arange(len(close), dtype=np.int64)
    volume = np.round(rng.uniform(10, 5_000, len(close)), 3)
    return Bars(symbol, interval, step, at, first, np.round(high, 4), np.round(low, 4), close, volume)


def skill_of(symbols: Sequence[str] = SYMBOLS, **more: Any) -> dict[str, Any]:
    """A skill that is shown everything there is."""
    return plain_skill(
        symbols,
        "15m",
        **{
            "model": "standin/analyst",
            "strategy": {"mode": "thesis", "thesis": THESIS, "avoid": "Solana, and bitcoin on FOMC days."},
            "context": {
                "symbols": list(symbols),
                "bars_interval": "15m",
                "bars_lookback": 60,
                "news_lookback_hours": 24,
                "memory": {"reflection_every": 2},
            },
            "tools": {"built_in": list(LOOKS)},
            "risk": {
                "max_position_pct": 250,
                "max_total_exposure_pct": 400,
                "max_leverage": 5,
                "max_orders_per_hour": 100,
                "daily_loss_halt_pct": 50,
                "drawdown_halt_pct": 50,
            },
            "max_steps": 4,
            "retry_refused": 1,
            **more,
        },
    )


@dataclass
class BlindRun:
    """A finished run with the requests to its model and the account after every tick."""

    script: PerpCourse
    requests: list[ModelRequest]
    state: State
    records: list[Record]
    ledger: Ledger
    worlds: list[Any] = field(default_factory=list)

    def leaks(self) -> list[str]:
        """What the requests reveal of the market and of the account."""
        scanner = BlindLeakScanner(self.script.market, self.script.ports.skill.context.symbols)
        for world in self.worlds:
            for held in portfolio(world, self.script.ports.terms).positions:
                prices = (held.entry, held.mark, held.liquidation, held.stop, held.take_profit)
                scanner.add([price for price in prices if price is not None])
            for order in world.orders:
                scanner.add([price for price in (order.limit, order.stop, order.take_profit) if price is not None])
        for receipt in self.ledger.receipts:
            scanner.add([Decimal(receipt.facts[name]) for name in ("price", "limit") if name in receipt.facts])
        sent = dict.fromkeys(text for request in self.requests for text in texts(codec.plain(request)))
        return scanner.request(list(sent))  # each text once: schemas and earlier messages are repeated


class _Journal(MemoryJournal):
    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[Any] = []

    async def commit(self, batch: Any, state: State, progress: float) -> None:
        await super().commit(batch, state, progress)
        self.worlds.append(state.world)


def run_blind(
    answer: Callable[[ModelRequest], ModelReply],
    market: Market,
    request: PerpRequest,
    bind: Callable[[PerpCourse], None] = lambda script: None,
) -> BlindRun:
    """Run a request over a market with a model that answers by a function."""
    skill = read_skill(request.skill)
    model = ScriptedModel(answer)
    decider = tool_loop(
        request.source,
        skill,
        DECISION,
        PerpPrompts(skill),
        VENUE.tools(),
        Connections(model=model),
        past=RunPast(TERMINAL),
        retry_refused=skill.retry_refused,
    )
    script = build(request, market, "15m", decider, commit_records=1)
    bind(script)
    journal = _Journal()
    state = asyncio.run(replay(script, journal, first_state(script), Watch()))
    records = list(journal.records())
    return BlindRun(script, model.requests, state, records, read_ledger(records), journal.worlds)


def request_of(blind: bool = True, hours: int = 24, seed: int = 3, **more: Any) -> PerpRequest:
    """A day of the market, blind."""
    return PerpRequest(skill_of(**more), FROM, FROM + hours * HOUR_MS, seed=seed, blind=blind)


class InquisitiveModel:
    """Calls every tool, then proposes opens with stops, limit orders, cancels, reductions and invalid orders.

    It reads nothing but the requests.
    """

    def __init__(self) -> None:
        self.ticks = -1
        self.user = ""

    def __call__(self, request: ModelRequest) -> ModelReply:
        tool = request.tools[0].name if len(request.tools) == 1 else ""
        if tool == "write_lessons":
            slots = request.tools[0].schema["properties"]
            return calls(tool, **dict.fromkeys(slots, f"ASSET-K paid at {self.ticks}."))
        user = request.messages[0].text
        if user != self.user:
            self.ticks, self.user = self.ticks + 1, user
        charts = dict(_charts(user))
        if len(request.messages) == 1 and not request.must_call:
            return self._look(request, charts)
        return calls("propose_order", **self._proposal(user, charts))

    def _look(self, request: ModelRequest, charts: dict[str, float]) -> ModelReply:
        offered = {tool.name for tool in request.tools}
        symbol = sorted(charts)[self.ticks % len(charts)]
        mark = Decimal(repr(charts[symbol]))
        asked: dict[str, dict[str, Any]] = {
            "analyze_chart_pattern": {"symbol": symbol, "interval": "1h", "lookback": 60},
            "compute_indicators": {"symbol": symbol, "interval": "15m", "indicators": "ema20, atr14, obv, vwap, macd"},
            "compute_var": {"horizon": 4, "confidence": 95, "symbol": symbol, "side": "long", "size_usd": 900},
            "fetch_news_sentiment": {"symbol": symbol, "hours": 48},
            "fetch_recent_bars": {"symbol": symbol, "interval": "4h", "lookback": 20},
            "get_current_position": {"symbol": symbol},
            "get_funding_rate": {"symbol": symbol, "hours": 12},
            "get_open_interest": {"symbol": symbol, "hours": 12} if self.ticks % 2 else {},
            "get_pnl_summary": {},
            "get_portfolio": {},
            "get_position_risk": {},
            "read_my_prior_decisions": {"count": 20},
            "simulate_action": {
                "action": "open_long",
                "symbol": symbol,
                "size_usd": 500,
                "stop_loss": mark * 2,
                "reason": "?",
            },
        }
        assert offered - {"propose_order", "get_top_traders"} == set(asked)
        return together(*(calls(name, **arguments) for name, arguments in asked.items()))

    def _proposal(self, user: str, charts: dict[str, float]) -> dict[str, Any]:
        names = sorted(charts)
        symbol = names[self.ticks // 9 % len(names)]
        mark = Decimal(repr(charts[symbol]))
        stop, take, low = mark * Decimal("0.97"), mark * Decimal("1.01"), mark * Decimal("0.998")
        why = f"{symbol} at {mark} looks right"
        opens = {"action": "open_long", "symbol": symbol, "size_usd": 9_000, "leverage": 5, "reason": why}
        working = re.findall(r"^- (o\d+): limit", user, re.MULTILINE)
        match self.ticks % 9:
            case 0:
                return opens | {"stop_loss": stop, "take_profit": take}
            case 1:
                return opens | {"stop_loss": mark * 2}
            case 2:
                return opens | {"order_type": "limit", "limit_price": low, "stop_loss": stop}
            case 3:
                return opens | {"order_type": "limit", "limit_price": mark * Decimal("1.2")}
            case 4 if working:
                return {"action": "cancel", "symbol": symbol, "order_id": working[-1], "reason": "Not any more."}
            case 5:
                return opens | {"size_usd": 90_000}
            case 6:
                return {"action": "reduce", "symbol": symbol, "reduce_pct": 40, "reason": "Less."}
            case 7:
                return opens | {"symbol": "ASSET-ZZ", "action": "open_short"}
            case 8:
                return {"action": "close", "symbol": symbol, "reason": "Done."}
            case _:
                return {"action": "no_op", "symbol": symbol, "reason": "Nothing."}


def _charts(user: str) -> list[tuple[str, float]]:
    """Every symbol of a user message and the close of its newest bar."""
    found: list[tuple[str, float]] = []
    for block in user.split("\n### ")[1:]:
        name, rows = block.split("\n", 1)[0], re.findall(r"^\d\d-\d\d \d\d:\d\d (.+)$", block, re.MULTILINE)
        first = re.search(r"15m bars, last (\d+)", block)
        if first and rows:
            found.append((name, float(rows[int(first[1]) - 1].split()[3])))
    return found
