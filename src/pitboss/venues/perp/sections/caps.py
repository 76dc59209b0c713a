"""`## Risk caps (engine-enforced)`: the order sizes that fit now, every cap with what is left of it, and active halts.

It is worded so that a first proposal can already fit. The numbers come from `venues.perp.caps.room`, which the rules
use as well; here they are only rounded, always in the direction that keeps a size taken from the text inside the cap.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from pitboss.core.money import ONE, ZERO, decimal, exact, round_up
from pitboss.core.verdict import Margin
from pitboss.prompt.render import age, cents, percent, size
from pitboss.venues.perp.caps import PerpCaps, min_order
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import PerpPortfolio
from pitboss.venues.perp.sections import Memo
from pitboss.venues.perp.state import PerpWorld, TradingTerms, halts_at, leverage_of

PLACE = 60

_CENT = Decimal("0.01")
_NO_BOUND = Decimal("Infinity")
_ENDS = {"daily_loss": "ends at 00:00 UTC"}
_INTRO = (
    "## Risk caps (engine-enforced)\n"
    "The engine refuses an open that breaks any of these. Amounts are USD; caps count notional, whatever the leverage; a limit_price above mark counts at that price.\n"
    "Opens that fit now:"
)
_EXITS = "close, reduce and cancel are never held back by caps or halts"


@dataclass(frozen=True, slots=True)
class _FixedTexts:
    """The parts of the text that change only with the caps or the terms."""

    limits: PerpCaps
    terms: TradingTerms
    opens: frozenset[str]
    least: Decimal
    most: tuple[Decimal, str]
    taker: Decimal
    position: str
    exposure: str
    order_size: str
    daily_loss: str
    drawdown: str
    margin: str
    data_age: str
    tail: str


@exact
def render(observation: Observation, memo: Memo) -> str:
    """Return the section; it is always present."""
    texts = _fixed_texts(observation, memo)
    world, account, at = observation.world, memo.account(observation), observation.at
    room = {line.code: line for line in observation.room()}
    fits, positions, leverages, ages = [], [], [], []
    for symbol in memo.symbols:
        top = int(decimal(room[f"R5_LEVERAGE_CAP {symbol}"].limit))
        fits.append(f"- {symbol}: {_fit(symbol, top, observation, account, room, texts)}")
        positions.append(f"{symbol} {cents(_floor(_number(room[f'R3_POSITION_CAP {symbol}'])))}")
        leverages.append(f"{symbol} 1 to {top} (now {leverage_of(world, symbol)})")
        marked_at = world.marked_at.get(symbol)
        ages.append(f"{symbol} none" if marked_at is None else f"{symbol} {age(at - marked_at)}")
    a_position, rate = room[f"R3_POSITION_CAP {memo.symbols[0]}"], room["R7_ORDER_RATE"]
    halts = ", ".join(f"{halt} ({_ENDS.get(halt, 'until a person lifts it')})" for halt in halts_at(world, at))
    return "\n".join(
        (
            _INTRO,
            *fits,
            "Caps:",
            f"{texts.position}{cents(decimal(a_position.limit))}; left {', '.join(positions)}",
            f"{texts.exposure}{_limit_left(room['R4_EXPOSURE_CAP'])}",
            f"- R5_LEVERAGE_CAP: whole numbers, {'; '.join(leverages)}",
            texts.order_size,
            f"- R7_ORDER_RATE: {size(max(ZERO, _number(rate)))} accepted opens left of {rate.limit} in any hour",
            f"{texts.daily_loss}{_limit_left(room['R8_HALTED daily_loss'])}",
            f"{texts.drawdown}{_limit_left(room['R8_HALTED drawdown'])}",
            f"- R9_MARGIN: free margin {cents(_floor(account.free_margin_usd))}{texts.margin}",
            f"{texts.data_age}{', '.join(ages)}",
            texts.tail,
            f"Halts on: {halts or 'none'}; {_EXITS}.",
        )
    )


def _fixed_texts(observation: Observation, memo: Memo) -> _FixedTexts:
    limits, terms = observation.limits, observation.terms
    cached: _FixedTexts | None = memo.cache.get("caps")
    if cached is not None and cached.limits is limits and cached.terms is terms:
        return cached
    least, most = min_order(limits), limits.max_order_usd
    upper = "no upper bound" if most is None else f"at most {cents(most)}"
    opens = [symbol for symbol in memo.symbols if limits.opens_allowed(symbol) and symbol in terms.assets]
    cached = memo.cache["caps"] = _FixedTexts(
        limits=limits,
        terms=terms,
        opens=frozenset(opens),
        least=least,
        most=(_NO_BOUND if most is None else most, "R6_ORDER_SIZE"),
        taker=terms.taker,
        position=f"- R3_POSITION_CAP: {percent(limits.max_position_pct)} of equity a symbol = ",
        exposure=f"- R4_EXPOSURE_CAP: {percent(limits.max_total_exposure_pct)} of equity over all symbols = ",
        order_size=f"- R6_ORDER_SIZE: size_usd at least {cents(least)} after rounding down to the lot, {upper}",
        daily_loss=f"- R8_HALTED daily_loss: opens stop at a loss of {percent(limits.daily_loss_halt_pct)} since 00:00 UTC = ",
        drawdown=f"- R8_HALTED drawdown: opens stop at a fall of {percent(limits.drawdown_halt_pct)} from peak equity = ",
        margin=(
            f" must cover size_usd / leverage plus a fee of {size(terms.taker_bps)} bps, also at the next bar's open, "
            "where a market order fills"
        ),
        data_age=f"- R10_STALE_DATA: newest bar at most {age(limits.max_data_age_ms)} old; now ",
        tail=(
            f"- R11_PRICE_BAND: limit_price at most {percent(limits.price_band_pct)} beyond mark where it would fill at "
            "once; long: stop_loss below and take_profit above mark (and limit_price); short: the other way round\n"
            f"- R2_SCOPE: opens in {', '.join(opens) or 'no symbol'} only, never against a position or working open "
            "of the same symbol (close or cancel it first)"
        ),
    )
    return cached


# What fits ----------------------------------------------------------------------------------------------------------


def _fit(
    symbol: str,
    top: int,
    observation: Observation,
    account: PerpPortfolio,
    room: Mapping[str, Margin],
    texts: _FixedTexts,
) -> str:
    """Return the sizes of an open that every rule would accept now."""
    world, limits = observation.world, observation.limits
    if symbol in limits.unlisted:
        return "none (R2_SCOPE: not listed at this time)"
    if symbol not in texts.opens:
        return "none (R2_SCOPE: not an allowed symbol)"
    if _number(room["R7_ORDER_RATE"]) < 1:
        return "none (R7_ORDER_RATE: wait)"
    halts = halts_at(world, observation.at)
    if halts or account.equity_usd <= 0:
        return f"none (R8_HALTED: {', '.join(halts) or 'equity is not above zero'})"
    for halt in ("daily_loss", "drawdown"):
        if _number(room[f"R8_HALTED {halt}"]) <= 0:
            return f"none (R8_HALTED: {halt})"
    mark, marked_at = world.marks.get(symbol), world.marked_at.get(symbol)
    if mark is None or mark <= 0 or marked_at is None or observation.at - marked_at > limits.max_data_age_ms:
        return "none (R10_STALE_DATA: no fresh bar)"
    lot = observation.terms.assets[symbol].lot
    least = (round_up(texts.least / mark, lot) * mark).quantize(_CENT, rounding=ROUND_CEILING)
    cap = min(
        (_number(room[f"R3_POSITION_CAP {symbol}"]), "R3_POSITION_CAP"),
        (_number(room["R4_EXPOSURE_CAP"]), "R4_EXPOSURE_CAP"),
        texts.most,
    )
    at_one = min(cap, (_margin(symbol, 1, world, account, texts), "R9_MARGIN"))
    # Higher leverage only frees margin, so it matters only where margin is the binding limit.
    at_top = min(cap, (_margin(symbol, top, world, account, texts), "R9_MARGIN")) if at_one is not cap else cap
    most, code = _floor(at_top[0]), at_top[1]
    if most < least:
        return f"none ({code} leaves {cents(max(most, ZERO))}, the smallest order is {cents(least)})"
    sides = _sides(world, symbol)
    if at_one[0] == at_top[0]:
        leverages = f"leverage 1 to {top}" if top > 1 else "leverage 1"
        return f"{sides}, size_usd {cents(least)} to {cents(most)} at {leverages} (bound by {code})"
    most_at_one = _floor(at_one[0])
    first = (
        f"{cents(least)} to {cents(most_at_one)} at leverage 1, up"
        if most_at_one >= least
        else f"none at leverage 1, {cents(least)}"
    )
    return f"{sides}, size_usd {first} to {cents(most)} at leverage {top} (bound by {code})"


def _margin(symbol: str, leverage: int, world: PerpWorld, account: PerpPortfolio, texts: _FixedTexts) -> Decimal:
    """Return the notional that free margin can carry at a leverage, fee included."""
    free_margin, current = account.free_margin_usd, leverage_of(world, symbol)
    if leverage < current:
        # The new leverage applies at once to the symbol's position and working opens, which then need more margin.
        position = world.positions.get(symbol)
        exposed_size = abs(position.size) if position else ZERO
        exposed_size += sum((order.size for order in world.orders if order.opens and order.symbol == symbol), ZERO)
        free_margin -= exposed_size * world.marks[symbol] * (ONE / leverage - ONE / current)
    return free_margin / (ONE / leverage + texts.taker)


def _sides(world: PerpWorld, symbol: str) -> str:
    position = world.positions.get(symbol)
    sides = (
        {position.side}
        if position
        else {order.side for order in world.orders if order.opens and order.symbol == symbol}
    )
    if len(sides) != 1:
        return "open_long or open_short"
    return "open_long only" if 1 in sides else "open_short only"


# Amounts ------------------------------------------------------------------------------------------------------------


def _limit_left(line: Margin) -> str:
    return f"{cents(decimal(line.limit))}; left {cents(_floor(_number(line)))}"


def _number(line: Margin) -> Decimal:
    return ZERO if line.left is None else line.left


def _floor(value: Decimal) -> Decimal:
    return value.quantize(_CENT, rounding=ROUND_FLOOR)
