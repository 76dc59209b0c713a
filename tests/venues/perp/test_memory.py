"""The memory of a run: the same trades as the metrics', facts of their time only, and bounded."""

import re
from dataclasses import replace
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS
from pitboss.core.money import CONTEXT, ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.venues.perp import regime
from pitboss.venues.perp.memory import (
    LATEST_REFUSALS,
    MOST_REFLECTED,
    MOST_REFUSALS,
    THESIS_CHARS,
    MemorySettings,
    excursions,
    memory_settings,
    remember,
    risk,
)
from pitboss.venues.perp.sections import Memo, lessons, risk_state, trade_history
from pitboss.venues.perp.state import PerpWorld, Position, WorkingOrder, open_world
from pitboss.venues.perp.trade_memory import NO_MEMORY, ClosedTrade, LessonNotes, PerpMemory, RefusedProposal
from pitboss.venues.perp.trades import Fold, Trade, book
from venues.perp.prompt_scene import NOW, START, Scene, bars_of, market_of, skill_of, wave

D = Decimal
M15 = 15 * MINUTE_MS
SETTINGS = MemorySettings(10, "15m", 50, "15m")
MARKET = market_of()
AT = START + 100 * M15


def fill(at, side, size, price, order="o1", symbol="BTC", reason="market", fee="0"):
    facts = {
        "side": side,
        "size": D(size),
        "price": D(price),
        "fee_usd": D(fee),
        "slippage_usd": ZERO,
        "penalty_usd": ZERO,
        "liquidity": "taker",
        "reason": reason,
    }
    return Receipt("filled", at, symbol, order, facts)


def funding_receipt(at, usd, symbol="BTC"):
    return Receipt("funded", at, symbol, "", {"amount_usd": D(usd)})


def world_of(*positions: Position, orders=(), day_start="10000") -> PerpWorld:
    fresh = open_world(D(10_000), AT // DAY_MS)
    return replace(
        fresh,
        day_reference=D(day_start),
        positions={position.symbol: position for position in positions},
        orders=tuple(orders),
    )


def make_position(size, opened_at, symbol="BTC", thesis=""):
    return Position(symbol, D(size), D(size) * 100, opened_at, thesis=thesis)


def remember_tick(memory, receipts=(), world=None, at=AT, verdicts=(), market=MARKET, settings=SETTINGS):
    return remember(memory, settings, at, receipts, verdicts, world or world_of(), market.view(at))


REFUSED = Verdict("refused", "R3_POSITION_CAP")


# The ledger -----------------------------------------------------------------------------------------------------------


def test_where_nothing_happened_the_memory_is_the_very_same_value():
    memory = remember_tick(NO_MEMORY, [fill(AT - M15, "buy", 1, 100)], world_of(make_position(1, AT - M15)))
    assert remember_tick(memory) is memory
    assert remember_tick(memory, verdicts=[Verdict("noop"), Verdict("allowed")]) is memory


def test_a_closed_trade_is_kept_with_everything_that_is_known_about_it():
    order = WorkingOrder("o1", "market", "BTC", 1, D(1), AT - M15, AT - M15, thesis="Breakout. " * 40)
    placed = remember_tick(NO_MEMORY, [Receipt("accepted", AT - M15, "BTC", "o1")], world_of(orders=[order]), AT - M15)
    assert placed.reasons[0].thesis == order.thesis[:THESIS_CHARS]
    opened = AT - M15
    bought = remember_tick(placed, [fill(opened, "buy", 1, 100_000, fee="45")], world_of(make_position(1, opened)))
    assert (bought.reasons, len(bought.going), bought.trades) == ((), 1, ())
    later = AT + 2 * HOUR_MS
    sold = remember_tick(
        bought,
        [funding_receipt(AT + 1, "5"), fill(later, "sell", 1, 101_000, order="", reason="take_profit", fee="15")],
        at=later + M15,
    )
    (trade,) = sold.trades
    assert (trade.symbol, trade.side, trade.opened_at, trade.closed_at) == ("BTC", "long", opened, later)
    assert (trade.entry_price, trade.exit_price, trade.notional_usd) == (100_000, 101_000, 100_000)
    assert (trade.pnl_usd, trade.reason) == (D(935), "take_profit")
    assert trade.thesis == order.thesis[:THESIS_CHARS]
    bars = MARKET.bars["BTC", "15m"]
    assert trade.regime == regime.tag(bars, 99, 50), "by the bars that had closed at the opening"
    assert (sold.closed, sold.losses, sold.going) == (1, 0, ())
    assert codec.parse(PerpMemory, codec.plain(sold)) == sold


def test_a_trade_that_opened_and_closed_between_two_ticks_has_its_thesis_too():
    order = WorkingOrder("o7", "limit", "BTC", -1, D(1), AT, AT, D(100), thesis="Fade it.")
    placed = remember_tick(NO_MEMORY, [Receipt("accepted", AT, "BTC", "o7")], world_of(orders=[order]))
    closed = remember_tick(
        placed,
        [fill(AT + M15, "sell", 1, 100, "o7"), fill(AT + M15, "buy", 1, 103, "", reason="stop")],
        at=AT + HOUR_MS,
    )
    assert [(trade.side, trade.thesis, trade.reason) for trade in closed.trades] == [("short", "Fade it.", "stop")]


def test_the_newest_trades_are_kept_and_the_state_stays_small():
    memory = NO_MEMORY
    for number in range(60):
        at = AT + number * M15
        memory = remember_tick(
            memory, [fill(at, "buy", "1.23456", "3"), fill(at, "sell", "1.23456", "3.1")], at=at + M15
        )
    assert (len(memory.trades), memory.closed) == (10, 60)
    assert memory.trades[-1].closed_at == AT + 59 * M15
    assert len(codec.dumps(State(None, memory=memory))) < 4_500


def test_a_position_from_before_the_memory_began_is_no_trade_and_stops_nothing():
    receipts = [
        funding_receipt(AT, "1"),
        fill(AT, "sell", 2, 100),
        fill(AT + 1, "buy", 5, 100),
        fill(AT + 2, "sell", 5, 101),
    ]
    memory = remember_tick(NO_MEMORY, receipts, at=AT + HOUR_MS)
    assert memory.going == ()
    later = remember_tick(
        memory, [fill(AT + HOUR_MS, "buy", 1, 100), fill(AT + HOUR_MS, "sell", 1, 99)], at=AT + 2 * HOUR_MS
    )
    assert later.trades[-1].pnl_usd == -1


amounts = st.integers(1, 10**6).map(lambda units: D(units).scaleb(-3))
moves = st.lists(
    st.tuples(
        st.sampled_from(["BTC", "ETH", "SOL"]),
        st.sampled_from(["add", "reduce", "close", "fund"]),
        amounts,
        amounts,
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=40,
)


def split_receipts(steps):
    """Receipts of one account, cut into ticks, each with the positions after it."""
    sizes, ticks, chunk = {}, [], []
    for place, (symbol, move, size, price, long, ends) in enumerate(steps):
        at, now = START + place * 1_000, sizes.get(symbol, ZERO)
        signed = ZERO
        if move == "add":
            signed = size if (now > 0 if now else long) else -size
        elif move == "fund" and now:
            chunk.append(funding_receipt(at, price - 500, symbol))
        elif now:
            taken = min(size, abs(now)) if move == "reduce" else abs(now)
            signed = -taken if now > 0 else taken
        if signed:
            sizes[symbol] = now + signed
            chunk.append(fill(at, "buy" if signed > 0 else "sell", abs(signed), price, f"o{place}", symbol, fee="0.01"))
        if not ends:
            ticks.append((chunk, {name: left for name, left in sizes.items() if left}))
            chunk = []
    ticks.append((chunk, {name: left for name, left in sizes.items() if left}))
    return ticks


@given(moves)
def test_folding_at_every_tick_gives_the_trades_of_the_whole_run(steps):
    """P: one definition of a trade, whether it is folded at once or tick by tick, through storage or not."""
    with localcontext(CONTEXT):
        ticks = split_receipts(steps)
        trades = book([receipt for chunk, _ in ticks for receipt in chunk])
        memory, closed = NO_MEMORY, []
        for chunk, sizes in ticks:
            fold = Fold(memory.going)
            for receipt in chunk:
                fold.take(receipt)
            closed += [trade for _, trade in fold.closed]
            positions = [Position(symbol, size, size, START) for symbol, size in sizes.items()]
            memory = remember_tick(memory, chunk, world_of(*positions), settings=replace(SETTINGS, max_trades=1_000))
            memory = codec.parse(PerpMemory, codec.plain(memory))
            assert [(trip.symbol, trip.left) for trip in memory.going] == [(s, abs(sizes[s])) for s in sorted(sizes)]
        assert tuple(closed) == trades.closed
        assert [(t.symbol, t.side, t.opened_at, t.closed_at, t.reason) for t in memory.trades] == [
            (t.symbol, t.side, t.opened_at, t.closed_at, t.exit_reason) for t in trades.closed
        ]
        for mine, theirs in zip(memory.trades, trades.closed, strict=True):
            assert mine.pnl_usd == pytest.approx(theirs.pnl_usd)
            assert mine.entry_price == pytest.approx(theirs.entry_price)


# Excursions -----------------------------------------------------------------------------------------------------------


def trade_of(side, opened_at, closed_at, entry=100, exit=100):
    return Trade("BTC", side, opened_at, closed_at, D(entry), D(exit), D(1), ZERO, ZERO, ZERO, ZERO, ZERO, 2, "stop")


def steep_market() -> Market:
    """Bars whose highs and lows are one beyond 100, 101, 102 …: every bar more has another extreme."""
    return Market({("BTC", "15m"): bars_of("BTC", "15m", [100.0 + step for step in range(200)])})


def test_excursions_are_those_of_the_bars_between_opening_and_end():
    market = steep_market()
    opened, closed = START + 10 * M15, START + 20 * M15
    bars = market.bars["BTC", "15m"]
    best, worst = excursions(market.view(closed + M15), "15m", trade_of("long", opened, closed, 100, 105))
    assert (best, worst) == (float(bars.high[19]) - 100, 0.0), "the tenth bar after the opening is the last whole one"
    best, worst = excursions(market.view(closed + M15), "15m", trade_of("short", opened, closed, 115, 118))
    assert best == pytest.approx(100 * (1 - float(bars.low[10]) / 115), abs=1e-4)
    assert worst == pytest.approx(100 * (float(bars.high[19]) / 115 - 1), abs=1e-4)


def test_a_trade_within_one_bar_went_as_far_as_its_end():
    at = START + 10 * M15
    assert excursions(steep_market().view(at + M15), "15m", trade_of("long", at, at, 100, 98)) == (0.0, 2.0)
    assert excursions(steep_market().view(at + M15), "15m", trade_of("short", at, at, 100, 98)) == (2.0, 0.0)


@given(st.integers(0, 150), st.integers(0, 40), st.integers(0, 40), st.sampled_from(["long", "short"]))
def test_excursions_never_see_a_bar_that_closes_after_the_view(first, length, later, side):
    opened, closed = START + first * M15, START + (first + length) * M15
    at = min(closed, START + later * M15)
    whole, cut = steep_market(), steep_market().bars["BTC", "15m"]
    known = int(cut.open_at.searchsorted(at - M15, side="right"))
    without = Market({("BTC", "15m"): cut.slice(0, known)})
    trade = trade_of(side, opened, closed, 150, 151)
    assert excursions(whole.view(at), "15m", trade) == excursions(without.view(at), "15m", trade)


def test_a_market_without_such_bars_leaves_the_fills():
    assert excursions(steep_market().view(AT), "5m", trade_of("long", START, AT, 100, 101)) == (1.0, 0.0)


# The risk slot --------------------------------------------------------------------------------------------------------


def test_refusals_slide_out_of_the_hour_and_are_named_for_a_day():
    memory = remember_tick(
        remember_tick(NO_MEMORY, verdicts=[REFUSED]), verdicts=[Verdict("allowed", "R3", duplicate=True)], at=AT + M15
    )
    recent = risk(memory, world_of(), AT + M15)
    assert recent.refused == (("R12_DUPLICATE", 1), ("R3_POSITION_CAP", 1))
    assert recent.latest == ("R12_DUPLICATE", "R3_POSITION_CAP")
    assert risk(memory, world_of(), AT + HOUR_MS).refused == (("R12_DUPLICATE", 1),)
    assert risk(memory, world_of(), AT + 2 * HOUR_MS).refused == ()
    assert risk(memory, world_of(), AT + 2 * HOUR_MS).latest == ("R12_DUPLICATE", "R3_POSITION_CAP")
    assert risk(memory, world_of(), AT + 2 * DAY_MS).silent


def test_the_day_counts_orders_and_results_and_begins_anew_at_midnight():
    noon = AT // DAY_MS * DAY_MS + 12 * HOUR_MS
    receipts = [fill(noon, "buy", 1, 100), fill(noon + 1, "sell", 1, 90, "o2"), fill(noon + 2, "sell", 1, 90, "o3")]
    memory = remember_tick(NO_MEMORY, receipts, world_of(make_position(-1, noon + 2)), noon + M15)
    recent = risk(memory, world_of(day_start="500"), noon + M15)
    assert (recent.executed, recent.realised_pct, recent.losses) == (3, D(-2), 1)
    midnight = noon + 12 * HOUR_MS
    recent = risk(memory, world_of(), midnight)
    assert (recent.executed, recent.realised_pct, recent.losses) == (0, 0, 1)
    over = remember_tick(
        memory,
        [fill(midnight - 1, "buy", 1, 80, "o4"), fill(midnight, "buy", 2, 80, "o5")],
        world_of(make_position(2, midnight)),
        midnight + M15,
    )
    recent = risk(over, world_of(), midnight + M15)
    assert (recent.executed, recent.realised_pct, recent.losses) == (1, 0, 0), "yesterday's result is not today's"


def test_an_order_that_fills_in_parts_is_one_executed_order():
    remaining = WorkingOrder("o1", "limit", "BTC", 1, D(1), AT, AT, D(100), rested=True)
    first = remember_tick(
        NO_MEMORY, [fill(AT, "buy", 1, 100)], world_of(make_position(1, AT), orders=[remaining]), AT + M15
    )
    assert (first.executed, first.part_filled) == (1, ("o1",))
    second = remember_tick(first, [fill(AT + M15, "buy", 1, 100)], world_of(make_position(2, AT)), AT + 2 * M15)
    assert (second.executed, second.part_filled) == (1, ())


def test_refusals_are_bounded():
    memory = NO_MEMORY
    for number in range(500):
        memory = remember_tick(memory, verdicts=[REFUSED], at=AT + number)
    assert len(memory.refusals) == MOST_REFUSALS
    memory = remember_tick(memory, verdicts=[REFUSED], at=AT + DAY_MS)
    assert len(memory.refusals) == LATEST_REFUSALS + 1


@pytest.mark.parametrize(
    ("memory", "kept"),
    [
        ({}, 10),
        ({"trades": 3, "reflection_every": 7}, 7),
        ({"trades": 100}, 100),
        ({"reflection_every": 1_000}, MOST_REFLECTED),
    ],
)
def test_as_many_trades_are_kept_as_are_shown_or_reflected_upon(memory, kept):
    settings = memory_settings(skill_of(context={"memory": memory}), "5m")
    assert settings is not None
    assert (settings.max_trades, settings.bars) == (kept, "5m")
    assert memory_settings(skill_of(context={"memory": {"enabled": False}}), "5m") is None


# Bounds ---------------------------------------------------------------------------------------------------------------

TOKEN_CHARS = 4
RISK_TOKENS, TRADE_TOKENS, LESSON_TOKENS = 150, 75, 600
"""What the three sections may take at most, and one trade of the middle one; 40 more for its title."""

texts = st.text(max_size=600)
huge = st.decimals(allow_nan=False, allow_infinity=False)
trades = st.builds(
    ClosedTrade,
    symbol=st.sampled_from(["BTC", "kPEPE", "X" * 32]),
    side=st.sampled_from(["long", "short"]),
    opened_at=st.integers(0, 2 * 10**12),
    closed_at=st.integers(0, 2 * 10**12),
    pnl_usd=huge,
    reason=texts,
    entry_price=huge,
    exit_price=huge,
    mfe_pct=st.floats(),
    mae_pct=st.floats(),
    regime=st.sampled_from(["high_vol", "trend_down", "unknown"]),
    thesis=texts,
)
memories = st.builds(
    PerpMemory,
    trades=st.lists(trades, min_size=1, max_size=6).map(tuple),
    notes=st.builds(LessonNotes, texts, texts, texts, texts, texts),
    refusals=st.lists(
        st.builds(
            RefusedProposal,
            st.integers(NOW - HOUR_MS, NOW),
            st.sampled_from([f"R{n}_SOME_LONG_RULE" for n in range(14)]),
        )
    ).map(tuple),
    day=st.just(NOW // DAY_MS),
    executed=st.integers(0, 10**6),
    realised_usd=st.decimals(-(10**12), 10**12, allow_nan=False, places=8),
    losses=st.integers(0, 10**6),
)


@settings(max_examples=20)
@given(memories)
def test_the_sections_stay_within_their_tokens_whatever_is_remembered(memory):
    scene = Scene(skill_of(context={"memory": {"trades": 4}}), memory=memory)
    observation, memo = scene.observe(), Memo(scene.skill)
    assert len(risk_state.render(observation, memo) or "") <= RISK_TOKENS * TOKEN_CHARS
    assert len(lessons.render(observation, memo) or "") <= LESSON_TOKENS * TOKEN_CHARS
    history = trade_history.render(observation, memo) or ""
    rows = history.split("\n")[2:]
    assert len(rows) <= 4
    assert len(history) <= (40 + 4 * TRADE_TOKENS) * TOKEN_CHARS
    for text in (history, lessons.render(observation, memo) or "", risk_state.render(observation, memo) or ""):
        assert len(text.splitlines()) == text.count("\n") + (1 if text else 0)
        assert not re.search(r"\n#", text)
        assert re.fullmatch(r"(?:[^<>]*<data>[^<>]*</data>)*[^<>]*", text)


def test_a_usual_trade_takes_about_thirty_tokens():
    market = market_of()
    memory = remember_tick(
        NO_MEMORY,
        [fill(AT, "buy", 1, 64_210), fill(AT + HOUR_MS, "sell", 1, 65_102)],
        at=AT + 2 * HOUR_MS,
        market=market,
    )
    (trade,) = memory.trades
    (line,) = trade_history.lines([replace(trade, thesis="Close above the 20-bar channel with funding reset")])
    assert len(line) <= 40 * TOKEN_CHARS


def test_an_unchanged_history_is_not_written_again():
    scene = Scene(memory=PerpMemory(trades=(ClosedTrade("BTC", "long", START, NOW, D(1), "stop"),)))
    memo = Memo(scene.skill)
    first = trade_history.render(scene.observe(), memo)
    assert trade_history.render(scene.observe(), memo) is first
    other = replace(scene, memory=PerpMemory(trades=(ClosedTrade("ETH", "long", START, NOW, D(1), "stop"),)))
    assert "ETH" in (trade_history.render(other.observe(), memo) or "")


def test_the_regime_is_unknown_without_bars_of_the_skills_interval():
    memory = remember_tick(
        NO_MEMORY,
        [fill(AT, "buy", 1, 100), fill(AT, "sell", 1, 100)],
        market=Market({("BTC", "1h"): bars_of("BTC", "1h", wave(100, 100.0, 1))}),
        at=AT + M15,
    )
    assert memory.trades[0].regime == "unknown"
