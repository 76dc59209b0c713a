"""Tool `compute_var`: value at risk of the open positions, with or without a further one; price moves only."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.analysis.risk import (
    FEWEST_RETURNS,
    FEWEST_STRETCHES,
    Joint,
    Loss,
    enough,
    exposure_of,
    historical,
    joint,
    parametric,
)
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.tool_symbols import SYMBOL, listed

MOST_BARS = 2_000

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["horizon", "confidence"],
    "properties": {
        "horizon": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many bars ahead."},
        "confidence": {"type": "number", "minimum": 90, "maximum": 99.9, "description": "In percent: 95."},
        "method": {
            "type": "string",
            "enum": ["historical", "parametric", "both"],
            "description": "From past returns as they were, from a normal distribution, or both (if left out).",
        },
        "symbol": SYMBOL | {"description": "A position to add in thought: its symbol. With side and size_usd."},
        "side": {"type": "string", "enum": ["long", "short"], "description": "Side of the position to add in thought."},
        "size_usd": {
            "type": "number",
            "minimum": 1,
            "maximum": 1_000_000_000,
            "description": "Notional of the position to add in thought, in USD.",
        },
    },
}

_ADDED = ("symbol", "side", "size_usd")


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return a line for the account, one for each position, and one with the hypothetical position added."""
    observation = context.observation
    account = observation.portfolio()
    exposures = {
        position.symbol: float(position.notional_usd) * (1 if position.side == "long" else -1)
        for position in account.positions
    }
    added = _added(observation, arguments)
    horizon, confidence = arguments["horizon"], Decimal(arguments["confidence"])
    interval = observation.skill.context.bars_interval
    title = (
        f"value at risk over {horizon} {'bar' if horizon == 1 else 'bars'} of {interval}"
        f" at {render.percent(confidence)}, by {iso(observation.at)}"
    )
    if not exposures and not added:
        return f"{title}: 0, there is no open position"
    returns = _joint(observation, sorted({*exposures, *added}), interval)
    if returns is None or not enough(returns, horizon):
        have = 0 if returns is None else int(returns.unbroken.sum())
        return (
            f"{title}: too little history, {have} joint returns; needed are {FEWEST_RETURNS}"
            f" and {FEWEST_STRETCHES} times the horizon"
        )
    calculator = _VarCalculator(
        returns, horizon, confidence, arguments.get("method", "both"), float(account.equity_usd)
    )
    lines = [f"{title}, from {int(returns.unbroken.sum())} joint returns"]
    lines.append(f"account: {calculator.text(exposures)}" if exposures else "account: 0, there is no open position")
    if len(exposures) > 1:
        lines += [
            f"- {_position_text(symbol, usd)} alone: {calculator.text({symbol: usd})}"
            for symbol, usd in sorted(exposures.items())
        ]
    for symbol, usd in added.items():
        after = exposures | {symbol: exposures.get(symbol, 0.0) + usd}
        lines.append(f"with {_position_text(symbol, usd)} added: {calculator.text(after)}")
    lines.append("(price moves only: no funding, fees, stops or liquidation; a normal distribution has thin tails)")
    return "\n".join(lines)


def _added(observation: Observation, arguments: Mapping[str, Any]) -> dict[str, float]:
    present = [name for name in _ADDED if name in arguments]
    if not present:
        return {}
    if len(present) < len(_ADDED):
        raise ToolFailed(f"a position to add needs symbol, side and size_usd; only {', '.join(present)} given")
    symbol = listed(observation, arguments["symbol"])
    return {symbol: float(arguments["size_usd"]) * (1 if arguments["side"] == "long" else -1)}


def _joint(observation: Observation, symbols: list[str], interval: str) -> Joint | None:
    view = observation.view
    if not all(view.has_bars(symbol, interval) for symbol in symbols):
        return None
    bars = {symbol: view.bars(symbol, interval, MOST_BARS) for symbol in symbols}
    return joint(bars) if all(len(each) for each in bars.values()) else None


def _position_text(symbol: str, usd: float) -> str:
    return f"{symbol} {'long' if usd > 0 else 'short'} {render.amount(abs(usd))} USD"


class _VarCalculator:
    """The parameters of one question, applied to several exposures."""

    def __init__(self, returns: Joint, horizon: int, confidence: Decimal, method: str, equity: float) -> None:
        self.symbols = returns.symbols
        self.single = returns.returns(1)
        self.stretches = returns.returns(horizon) if method != "parametric" else self.single
        self.horizon, self.confidence, self.method, self.equity = horizon, confidence, method, equity

    def text(self, signed_usd: Mapping[str, float]) -> str:
        exposure = exposure_of(self.symbols, signed_usd)
        parts: list[str] = []
        if self.method != "parametric":
            loss = historical(self.stretches, exposure, self.confidence)
            parts.append(f"historical {self._loss(loss) if loss else self._thin()}")
        if self.method != "historical":
            parts.append(f"parametric {self._loss(parametric(self.single, exposure, self.confidence, self.horizon))}")
        return "; ".join(parts)

    def _loss(self, loss: Loss) -> str:
        share = f" ({render.percent(100 * loss.at_risk / self.equity)} of equity)" if self.equity > 0 else ""
        return f"{render.amount(loss.at_risk)} USD{share}, shortfall beyond it {render.amount(loss.shortfall)} USD"

    def _thin(self) -> str:
        return f"unknown: {len(self.stretches)} stretches are too few for a tail at {render.percent(self.confidence)}"


TOOL = define_tool(
    name="compute_var",
    category="portfolio",
    description=(
        "Compute value at risk and expected shortfall of your open positions together, over bars of your interval, and "
        "with one more position if symbol, side and size_usd are given."
    ),
    ui_hint="To size by what the whole account could lose; the engine's caps hold anyway.",
    schema=SCHEMA,
    example={"horizon": 12, "confidence": 95, "symbol": "BTC", "side": "long", "size_usd": 1000},
    look=look,
)
