"""An independent implementation of the perp venue: `run` plays a file of decisions over bars and returns the expected results.

Top of the reference package. It follows PERP.md §1, §4, §5 and §6 sentence by sentence in exact arithmetic and makes no
attempt to be fast. It is not a simulator to build on: it has no model, no store, no snapshots.

Where the page is silent:
- The instants processed are the union of the symbols' bar open times in [T0, to). Where no symbol has a bar at t, nothing
  happens: no funding, no equity point.
- The equity point at exactly 00:00 is the reference of the day that begins: no daily-loss halt can be on there.
- `no_op` may omit `symbol`; all other actions need `symbol`, and all need `reason`, as strings. Null is no value.
- Ids of orders are "o1", "o2", … counting accepted orders (open, close, reduce) in the order of submission.
- An accepted open sets the symbol's leverage to what it asks, default 1. A cancel acts at its tick, whatever the latency.
- A close or reduce that finds no position when it would act is cancelled with reason `no_position`.
- With equity ≤ 0 and neither a position nor a working order nobody is asked (§4): such a tick is a no-op, unless
  `ask_when_ruined`.
- Closing at the end adds fills after the last equity point and leaves that point as it is.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from itertools import pairwise
from typing import Any

from reference.account import (
    HOUR,
    Account,
    Order,
    Side,
    cancel,
    decimal,
    direction,
    equity,
    evaluate_halts,
    fill,
    risk_of,
)
from reference.assets import SHIPPED, Asset
from reference.guard import Plan, judge
from reference.world import Bar, advance

# §1 "Decimal arithmetic with context precision 60, ROUND_HALF_EVEN"; exponents without bound, so that nothing overflows
CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
TEN_THOUSAND = Decimal(10_000)

RawBars = dict[str, list[tuple[float, ...]]]  # open time, open, high, low, close, and the volume where it matters
RawRows = dict[str, list[tuple[int, float]]]


@dataclass
class Result:
    verdicts: list[tuple[int, str, str | None]]  # (tick, allowed|refused|noop, code) of ticks that had a decision
    fills: list[dict[str, Any]]
    equity: list[tuple[int, Decimal]]
    funding_paid: Decimal
    deficit: Decimal
    cancels: list[tuple[int, int, str]]  # (instant, order number, reason)
    halts: list[tuple[int, str]]  # (instant it was raised, daily_loss|drawdown)
    # beyond what was asked for, for metrics and for reading a difference
    funding_rows: list[dict[str, Any]]
    held: list[bool]  # for each equity point: a position is open there
    liquidations: int
    final_equity: Decimal  # after closing at the end, where that was asked for
    account: Account


class HoleInBars(Exception):
    """§6 "a hole of more than `max_gap` bars inside the range stops the run before it starts"."""


def ticks(from_ms: int, to_ms: int, tick_ms: int) -> list[int]:
    """§1 "the multiples of the schedule's period in [from, to), aligned to the Unix epoch"."""
    first = -(-from_ms // tick_ms) * tick_ms
    return list(range(first, to_ms, tick_ms))


def refuse_holes(bars: RawBars, symbols: list[str], base_ms: int, from_ms: int, to_ms: int, max_gap: int) -> None:
    """A hole lies between two bars that are both inside the range."""
    for symbol in symbols:
        times = [row[0] for row in bars.get(symbol, []) if from_ms <= row[0] < to_ms]
        for before, after in pairwise(times):
            if (after - before) // base_ms - 1 > max_gap:
                raise HoleInBars(f"{symbol}: no bars between {before} and {after}")


def exact_bars(bars: RawBars, symbols: list[str]) -> dict[int, dict[str, Bar]]:
    """Bars by open time, then symbol."""
    result: dict[int, dict[str, Bar]] = {}
    for symbol in symbols:
        for t, open_, high, low, close, *volume in bars.get(symbol, []):
            values = [decimal(float(x)) for x in (open_, high, low, close, *volume)]
            result.setdefault(t, {})[symbol] = Bar(*values)
    return result


def exact_funding(funding: RawRows, symbols: list[str]) -> dict[int, list[tuple[int, str, Decimal]]]:
    """Funding rows by their time floored to the hour."""
    result: dict[int, list[tuple[int, str, Decimal]]] = {}
    for symbol in symbols:
        for at, rate in funding.get(symbol, []):
            result.setdefault(at - at % HOUR, []).append((at, symbol, decimal(float(rate))))
    return result


def first_marks(account: Account, history: dict[int, dict[str, Bar]], base_ms: int, start: int) -> None:
    """§6 "Before T0 the world has consumed nothing; marks are the closes of the last bars available at T0"."""
    for t in sorted(history):
        if t + base_ms <= start:
            for symbol, bar in history[t].items():
                account.marks[symbol] = bar.close
                account.newest_bar_opened_at[symbol] = t
                account.newest_bar_closed_at[symbol] = t + base_ms


def submit(account: Account, plan: Plan, now: int, latency_ms: int) -> None:
    """What an allowed proposal does at its tick."""
    if plan.action == "cancel":
        for order in list(account.orders):
            if f"o{order.number}" == plan.order_id:
                cancel(account, order, now, "cancel")
        return
    if plan.action == "open":
        # §6 "changed the moment an open is accepted"
        account.leverage[plan.symbol] = plan.leverage
        account.opens_accepted_at.append(now)
    account.orders_accepted += 1
    account.orders.append(
        Order(
            number=account.orders_accepted,
            action=plan.action,
            symbol=plan.symbol,
            side=plan.side,
            size=plan.size,
            limit=plan.limit,
            stop=plan.stop,
            take_profit=plan.take_profit,
            active_at=now + latency_ms,
        )
    )


def close_everything(account: Account) -> None:
    """§7 "closed at the last close, taker fee, no slippage, reason `end`"; at = the open time of that close's bar."""
    for symbol in sorted(account.positions):
        position = account.positions[symbol]
        at = account.newest_bar_opened_at[symbol]
        size = abs(position.size)
        fill(account, at, symbol, -direction(position.size), size, account.marks[symbol], "taker", "end")


def run(
    skill: dict[str, Any],
    bars: RawBars,
    base_ms: int,
    funding: RawRows,
    from_ms: int,
    to_ms: int,
    tick_ms: int,
    decisions: dict[int, Any],
    equity: str = "10000",
    maker_bps: str = "1.5",
    taker_bps: str = "4.5",
    slippage_bps_per_million: str = "10",
    penalty_bps: str = "50",
    latency_ms: int = 0,
    close_at_end: bool = False,
    marks: RawRows | None = None,
    guard: bool = True,
    assets: dict[str, Asset] | None = None,
    max_gap: int = 12,
    margin_check: bool = True,
    ask_when_ruined: bool = False,
    max_volume_pct: str | None = None,
    book_max_age_ms: int | None = None,
    books: dict[str, list[tuple[int, Side, Side]]] | None = None,
) -> Result:
    """Play `decisions` (tick → raw proposal) over `bars`. With `guard=False` caps and halts are off and a list is several
    proposals of one tick; `margin_check=False` also turns off the world's own margin rejection.
    """
    with localcontext(CONTEXT):
        all_ticks = ticks(from_ms, to_ms, tick_ms)
        known_ticks = set(all_ticks)
        for at in decisions:
            if at not in known_ticks:
                raise ValueError(f"{at} is not a tick")
        # §6 "symbols in code-point order"
        symbols = sorted(skill["context"]["symbols"])
        refuse_holes(bars, symbols, base_ms, from_ms, to_ms, max_gap)
        account = Account(
            assets={**SHIPPED, **(assets or {})},
            risk=risk_of(skill),
            initial_equity=decimal(equity),
            maker_rate=decimal(maker_bps) / TEN_THOUSAND,
            taker_rate=decimal(taker_bps) / TEN_THOUSAND,
            slippage_k=decimal(slippage_bps_per_million),
            penalty_rate=decimal(penalty_bps) / TEN_THOUSAND,
            halts_apply=guard,
            margin_applies=margin_check,
            max_volume_pct=None if max_volume_pct is None else decimal(max_volume_pct),
            book_max_age_ms=book_max_age_ms,
            books=books or {},
            cash=decimal(equity),
            peak=decimal(equity),
        )
        verdicts: list[tuple[int, str, str | None]] = []
        if all_ticks:
            play(
                skill,
                account,
                exact_bars(bars, symbols),
                base_ms,
                exact_funding(funding, symbols),
                {symbol: {at: decimal(float(value)) for at, value in rows} for symbol, rows in (marks or {}).items()},
                all_ticks,
                to_ms,
                decisions,
                latency_ms,
                guard,
                ask_when_ruined,
                verdicts,
            )
        if close_at_end:
            close_everything(account)
        return Result(
            verdicts=verdicts,
            fills=account.fills,
            equity=account.points,
            funding_paid=account.funding_paid,
            deficit=account.deficit,
            cancels=account.cancels,
            halts=account.halts,
            funding_rows=account.funding_rows,
            held=account.held,
            liquidations=account.liquidations,
            final_equity=equity_now(account),
            account=account,
        )


def equity_now(account: Account) -> Decimal:
    return equity(account, account.marks)


def play(
    skill: dict[str, Any],
    account: Account,
    history: dict[int, dict[str, Bar]],
    base_ms: int,
    funding: dict[int, list[tuple[int, str, Decimal]]],
    marks: dict[str, dict[int, Decimal]],
    all_ticks: list[int],
    to_ms: int,
    decisions: dict[int, Any],
    latency_ms: int,
    guarded: bool,
    ask_when_ruined: bool,
    verdicts: list[tuple[int, str, str | None]],
) -> None:
    """§6 "Between Tn and Tn+1 it consumes the base bars opening in [Tn, Tn+1) …; after the last tick those in
    [Tlast, to)". The decision of Tn comes before those bars.
    """
    first_marks(account, history, base_ms, all_ticks[0])
    times = sorted(t for t in history if all_ticks[0] <= t < to_ms)
    position = 0
    for number, tick in enumerate(all_ticks):
        if tick in decisions:
            verdicts.extend(decide(skill, account, decisions[tick], tick, latency_ms, guarded, ask_when_ruined))
        until = all_ticks[number + 1] if number + 1 < len(all_ticks) else to_ms
        while position < len(times) and times[position] < until:
            t = times[position]
            advance(account, t, base_ms, history[t], funding, marks)
            position += 1


def decide(
    skill: dict[str, Any],
    account: Account,
    raw: Any,
    now: int,
    latency_ms: int,
    guarded: bool,
    ask_when_ruined: bool,
) -> list[tuple[int, str, str | None]]:
    """The verdicts of one tick (one, unless the guard is off and several proposals are given)."""
    evaluate_halts(account, now)
    proposals = raw if isinstance(raw, list) and not guarded else [raw]
    result: list[tuple[int, str, str | None]] = []
    for proposal in proposals:
        # §4 "Equity ≤ 0 with nothing open: the model is no longer asked (flag `ruined`)"
        if not ask_when_ruined and not account.positions and not account.orders and equity_now(account) <= 0:
            result.append((now, "noop", None))
            continue
        outcome, code, plan = judge(skill, account, proposal, now, guarded)
        if plan is not None:
            submit(account, plan, now, latency_ms)
        result.append((now, outcome, code))
    return result
