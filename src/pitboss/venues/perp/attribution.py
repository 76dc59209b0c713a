"""Simulation against live for perp deployments: bars from the lake, the replay, and the differences of the trades."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, Instant, interval_ms, iso
from pitboss.core.money import ZERO, exact
from pitboss.data.feed import DEFAULT_VENUE, base_intervals, load_market, with_listings
from pitboss.data.lake import Lake
from pitboss.runs.attribution_result import PARTS, AttributedTrade, Attribution, SpanResult
from pitboss.runs.stored import journal_of
from pitboss.skill.load import read_skill
from pitboss.store.runs import Run
from pitboss.venues.perp.account_trades import BarPrices, account_trades, open_sizes
from pitboss.venues.perp.assembly import assets_of, terms_of
from pitboss.venues.perp.recorded_span import RecordedSpan, of_symbols, recorded_span
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.span_replay import ReplaySetup, replay_span
from pitboss.venues.perp.trade_differences import AccountTrade, TradeDifference, explain
from pitboss.venues.perp.trades import amount

BASE_INTERVAL = "1m"


def attribution(workspace: Workspace, run: Run, from_at: Instant, to_at: Instant, data_venue: str = "") -> Attribution:
    """Explain the difference between a span of a deployment and the same decisions on paper."""
    request = codec.parse(PerpRequest, run.params)
    skill = read_skill(run.params["skill"], PerpSkill)
    lake = workspace.lake_of(run.params)
    venue = data_venue or request.data_venue or DEFAULT_VENUE
    records = journal_of(workspace, run).records()
    span = recorded_span(records, from_at, to_at, interval_ms(BASE_INTERVAL))
    market, base = _market(lake, venue, skill, span, request.max_gap)
    if base != BASE_INTERVAL:  # coarser bars: orders need longer to be filled on paper
        span = recorded_span(journal_of(workspace, run).records(), from_at, to_at, interval_ms(base))
    symbols = skill.context.sorted_symbols
    terms = terms_of(request, skill, assets_of(lake, venue, symbols))
    setup = ReplaySetup(skill, terms, market, base, request.decision_latency_ms)
    return replace(compare(span, setup), data_venue=venue)


@exact
def compare(span: RecordedSpan, setup: ReplaySetup) -> Attribution:
    """Replay a span on the bars of a market and explain the difference."""
    span = of_symbols(span, setup.skill.context.sorted_symbols)
    paper_steps = replay_span(span, setup)
    prices = BarPrices(setup.market, setup.base_interval)
    carried = open_sizes(span.start)
    live = account_trades(carried, span.started_at, span.steps, span.sent, prices)
    paper = account_trades(carried, span.started_at, paper_steps, span.sent, prices)
    start_usd = amount(span.start["equity_usd"])
    end = paper_steps[-1].account or span.start
    notes = (
        () if setup.base_interval == BASE_INTERVAL else (f"The bars are those of {setup.base_interval}, not of 1m.",)
    )
    return Attribution(
        started_at=span.started_at,
        ended_at=span.ended_at,
        data_venue="",
        interval=setup.base_interval,
        live=_result(start_usd, amount(span.end["equity_usd"]), live),
        paper=_result(start_usd, amount(end["equity_usd"]), paper),
        trades=tuple(map(_attributed, explain(live, paper))),
        notes=notes,
    )


def _result(start_usd: Decimal, end_usd: Decimal, trades: Sequence[AccountTrade]) -> SpanResult:
    fees = sum((trade.fees_usd for trade in trades), ZERO)
    return SpanResult(start_usd, end_usd, len(trades), fees, sum((trade.funding_usd for trade in trades), ZERO))


def _attributed(row: TradeDifference) -> AttributedTrade:
    return AttributedTrade(
        row.symbol,
        "long" if row.side > 0 else "short",
        row.opened_at,
        row.closed_at,
        row.live_size,
        row.paper_size,
        row.live_usd,
        row.paper_usd,
        {name: getattr(row, name) for name in PARTS},
    )


def _market(lake: Lake, venue: str, skill: PerpSkill, span: RecordedSpan, max_gap: int) -> tuple[Market, str]:
    """Return the bars of a span, the finest that the lake has."""
    symbols = skill.context.sorted_symbols
    # One bar before the span gives the marks that its first decision is judged with.
    first = span.started_at // MINUTE_MS * MINUTE_MS - MINUTE_MS
    end = span.ended_at // MINUTE_MS * MINUTE_MS
    try:
        base = next(iter(base_intervals(lake, venue, symbols, skill.every_ms, first, end, max_gap)))
        market = load_market(
            lake, venue, symbols, (base,), span.ended_at + interval_ms(base), from_at=first, with_news=False
        )
        return with_listings(market, lake, venue, base, first, end, max_gap), base
    except UserError as error:
        raise UserError(
            f"the replay needs the bars from {iso(first)} to {iso(end)}, and {error.message}",
            f"`pitboss data download {venue} --symbols {','.join(symbols)} --interval {BASE_INTERVAL}"
            f" --since {iso(first)}`",
        ) from None
