"""Tool `get_pnl_summary`: profit and loss now, today, from the peak, and over windows of closed trades and costs."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, iso
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.core.receipt import Receipt
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import NO_ARGUMENTS
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.state import day_reference_at
from pitboss.venues.perp.trades import Trade, amount, round_trips

WINDOWS = (("24h", 24 * HOUR_MS), ("7d", 7 * DAY_MS))


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one JSON object with rounded amounts."""
    del arguments
    observation = context.observation
    receipts = list(reversed(context.past.receipts(observation.at)))
    return codec.dumps(_summary(observation, receipts)).decode()


@exact
def _summary(observation: Observation, receipts: Sequence[Receipt]) -> dict[str, Any]:
    account, world, at = observation.portfolio(), observation.world, observation.at
    equity, started = account.equity_usd, world.initial
    day_start = day_reference_at(world, at)
    trades, since = round_trips(receipts), observation.started_at
    windows = {name: _window(receipts, trades, at - length, since) for name, length in WINDOWS}
    windows["all"] = _window(receipts, trades, since, since)
    return {
        "at": iso(at),
        "equity_usd": render.amount(equity),
        "since_start": _change(started, equity),
        "since_midnight": _change(day_start, equity),
        "from_peak": _change(account.peak_usd, equity),
        "unrealised_usd": render.amount(sum((position.unrealised_usd for position in account.positions), ZERO)),
        "windows": windows,
    }


def _change(reference: Decimal, value: Decimal) -> str:
    share = f" ({render.percent((value - reference) * HUNDRED / reference)})" if reference > 0 else ""
    return f"{render.amount(value - reference)} USD{share}"


def _window(receipts: Sequence[Receipt], trades: Sequence[Trade], from_at: Instant, since: Instant) -> dict[str, Any]:
    begin = max(from_at, since)
    fills = [receipt for receipt in receipts if receipt.kind == "filled" and receipt.at >= begin]
    funded = [receipt for receipt in receipts if receipt.kind == "funded" and receipt.at >= begin]
    closed = [trade for trade in trades if trade.closed_at >= begin]
    results = [trade.pnl_usd for trade in closed]
    summary: dict[str, Any] = {
        "since": iso(begin),
        "fills": len(fills),
        "fees_usd": render.amount(sum((amount(receipt.facts["fee_usd"]) for receipt in fills), ZERO)),
        "funding_paid_usd": render.amount(sum((amount(receipt.facts["amount_usd"]) for receipt in funded), ZERO)),
        "closed_trades": len(closed),
        "realised_usd": render.amount(sum(results, ZERO)),
    }
    penalties = sum((amount(receipt.facts["penalty_usd"]) for receipt in fills), ZERO)
    if penalties:
        summary["penalties_usd"] = render.amount(penalties)
    if closed:
        wins = sum(1 for result in results if result > 0)
        summary["win_rate"] = render.percent(Decimal(100 * wins) / len(closed))
        summary["best_usd"], summary["worst_usd"] = render.amount(max(results)), render.amount(min(results))
    return summary


TOOL = define_tool(
    name="get_pnl_summary",
    category="introspection",
    description=(
        "Get profit and loss: equity against start, midnight and peak, unrealised result, and for the last day, week "
        "and all: realised result of closed trades net of costs, win rate, fees, funding."
    ),
    ui_hint="Lets an agent see how it has done lately, and a person how a run stands.",
    schema=NO_ARGUMENTS,
    example={},
    look=look,
)
