"""A live account on the fake exchange against its decisions on paper: what latency and slippage cost, computed by hand."""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant
from pitboss.core.intent import Decision
from pitboss.core.market import Bars
from pitboss.core.money import CONTEXT, text
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, Record, seal
from pitboss.core.state import State
from pitboss.runs.attribution_result import Attribution
from pitboss.runs.venues import venue_named
from pitboss.skill.document import to_plain
from pitboss.tick import WorldEvents, tick
from pitboss.venues.perp.account_trades import BarPrices
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.attribution import compare
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.outcome import read_ledger
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.recorded_span import recorded_span
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.span_replay import ReplaySetup
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.trade_memory import NO_MEMORY
from venues.perp.hyperliquid.live_scene import Scene
from venues.perp.scene import make_skill

D = Decimal
OPEN = {"action": "open_long", "symbol": "ETH", "size_usd": 5_000, "leverage": 2, "reason": "a trend"}
CLOSE = {"action": "close", "symbol": "ETH", "reason": "enough"}
SKILL = make_skill(("ETH",), risk={"max_position_pct": 100, "max_total_exposure_pct": 100, "max_leverage": 3})


def bars_of(start: Instant, rows: Sequence[tuple[float, float]]) -> Market:
    """1m bars by their opens and closes."""
    opens, closes = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    times = start + MINUTE_MS * np.arange(len(rows), dtype=np.int64)
    column = Bars("ETH", "1m", MINUTE_MS, times, opens, np.maximum(opens, closes), np.minimum(opens, closes), closes,
                  np.full(len(rows), 9.0))  # fmt: skip
    return Market({("ETH", "1m"): column})


def setup_of(market: Market, slippage: int = 0) -> ReplaySetup:
    terms = TradingTerms(SHIPPED, taker_bps=D(5), slippage_bps_per_million=D(slippage))
    return ReplaySetup(SKILL, terms, market, "1m")


def attribution_of(records: Sequence[Record], setup: ReplaySetup, from_at: Instant = 0) -> Attribution:
    return compare(recorded_span(records, from_at, 1 << 60, MINUTE_MS), setup)


def check_sums(attribution: Attribution) -> None:
    with localcontext(CONTEXT):
        assert sum(attribution.parts().values()) == attribution.difference_usd
        for trade in attribution.trades:
            assert sum(trade.parts.values()) == trade.live_usd - trade.paper_usd


# Records written by hand ----------------------------------------------------------------------------------------------

T0 = 1_748_736_000_000


def account(cash: str, size: str = "", cost: str = "", mark: str = "") -> dict[str, Any]:
    positions = {}
    if size:
        positions["ETH"] = {
            "size": size, "cost": cost, "stop": None, "take_profit": None, "leverage": 2, "mark": mark,
        }  # fmt: skip
    with localcontext(CONTEXT):
        equity = D(cash) + (D(size) * D(mark) - D(cost) if size else 0)
    return {"equity_usd": text(equity), "cash_usd": cash, "positions": positions, "orders": [], "halts": []}


def tick_record(
    seq: int,
    prev: str,
    at: Instant,
    before: Any,
    after: Any,
    receipts: Sequence[Any] = (),
    proposals: Sequence[Any] = (),
) -> Record:
    verdicts = [
        {"outcome": "allowed", "code": None, "detail": "", "order_id": f"x{at}", "duplicate": False, "margins": []}
        for _ in proposals
    ]
    body = {
        "prompt_sha256": None, "steps": [], "text": "", "proposals": list(proposals), "verdicts": verdicts,
        "receipts": list(receipts), "equity": [], "before": before, "after": after, "flags": [], "finish_reason": "",
    }  # fmt: skip
    return seal(seq, "tick", at, prev, body, {"cost_usd": "0"})


def receipt(what: str, at: Instant, order_id: str, **facts: Any) -> dict[str, Any]:
    return {"kind": what, "at": at, "symbol": "ETH", "order_id": order_id, "facts": facts}


def fill_receipt(at: Instant, order_id: str, side: str, size: str, price: str, fee: str) -> dict[str, Any]:
    return receipt(
        "filled", at, order_id, side=side, size=size, price=price, fee_usd=fee, slippage_usd="0", penalty_usd="0",
        liquidity="taker", reason="market",
    )  # fmt: skip


def hand_made_records() -> list[Record]:
    """50 are bought at 101.50, 5 s after a tick at 100; sold at 109.30, 3 s after a tick at 110."""
    close_at, end_at = T0 + 5 * MINUTE_MS, T0 + 10 * MINUTE_MS
    start, opened, closed = account("10000"), account("9997.4", "50", "5075", "101"), account("10384.6")
    orders = [
        receipt("accepted", T0, f"x{T0}", kind="market", side="buy", size="50"),
        fill_receipt(T0 + 5_000, f"x{T0}", "buy", "50", "101.5", "2.6"),
    ]
    exits = [
        receipt("accepted", close_at, f"x{close_at}", kind="close", side="sell", size="50"),
        fill_receipt(close_at + 3_000, f"x{close_at}", "sell", "50", "109.3", "2.8"),
    ]
    first = tick_record(0, GENESIS, T0, start, opened, orders, [{**OPEN, "size_usd": 5_000}])
    second = tick_record(1, first.digest, close_at, opened, closed, exits, [CLOSE])
    return [first, second, tick_record(2, second.digest, end_at, closed, closed)]


MINUTES = bars_of(
    T0 - MINUTE_MS,
    [(100, 100), (100, 112), (112, 112), (112, 110), (110, 110), (110, 110), (110, 105), (105, 105), *[(105, 105)] * 4],
)
"""The bar of the first tick goes from 100 to 112, that of the second from 110 to 105: 1 in 5 s, and −0.25 in 3 s."""


def test_latency_and_slippage_of_a_live_trade_by_hand():
    with localcontext(CONTEXT):
        attribution = attribution_of(hand_made_records(), setup_of(MINUTES))
    (trade,) = attribution.trades
    # on paper: 50 bought at 100 and sold at 110, with fees of 5 bp of 5,000 and 5,500
    assert (trade.paper_size, trade.paper_usd) == (D(50), D("494.75"))
    assert (trade.live_size, trade.live_usd) == (D(50), D("384.6"))
    assert trade.parts == {
        "latency_usd": D("-62.5"),  # 50 × (1 + 0.25)
        "slippage_usd": D("-47.5"),  # 50 × (0.50 + 0.45): 101.50 at a market of 101, 109.30 at one of 109.75
        "fees_usd": D("-0.15"),
        "funding_usd": D(0),
        "missed_usd": D(0),
        "rest_usd": D(0),
    }
    assert attribution.difference_usd == D("-110.15")
    assert attribution.outside_usd == 0
    check_sums(attribution)


def test_a_span_that_begins_with_a_position_counts_from_its_mark():
    with localcontext(CONTEXT):
        attribution = attribution_of(hand_made_records(), setup_of(MINUTES), T0 + 1)
    (trade,) = attribution.trades
    assert attribution.live.start_usd == attribution.paper.start_usd == D("9972.4")
    assert (trade.live_usd, trade.paper_usd) == (D("412.2"), D("447.25"))  # 50 × (109.30 − 101) − 2.80; 50 × 9 − 2.75
    assert trade.parts["latency_usd"] == D("-12.5")
    assert trade.parts["slippage_usd"] == D("-22.5")
    assert trade.parts["rest_usd"] == 0
    check_sums(attribution)


def test_money_that_came_from_outside_belongs_to_no_trade():
    records = hand_made_records()
    end = account("10884.6")
    last = tick_record(2, records[1].digest, T0 + 10 * MINUTE_MS, end, end)
    with localcontext(CONTEXT):
        attribution = attribution_of([*records[:2], last], setup_of(MINUTES))
    assert attribution.outside_usd == D(500)
    assert attribution.parts()["rest_usd"] == D(500)
    check_sums(attribution)


def test_a_position_in_a_symbol_that_the_skill_does_not_trade_belongs_to_no_trade():
    foreign = {"size": "3", "cost": "30", "stop": None, "take_profit": None, "leverage": 1, "mark": "12"}
    start, end = account("10000"), account("10000")
    start["positions"] = {"DOGE": foreign}
    end["positions"] = {"DOGE": {**foreign, "mark": "13"}}
    start["equity_usd"], end["equity_usd"] = "10006", "10009"
    first = tick_record(0, GENESIS, T0, start, start)
    paid = {**receipt("funded", T0, "", amount_usd="0.5", size="3", rate="0.01"), "symbol": "DOGE"}
    last = tick_record(1, first.digest, T0 + 5 * MINUTE_MS, end, end, [paid])
    with localcontext(CONTEXT):
        attribution = attribution_of([first, last], setup_of(MINUTES))
    assert attribution.trades == ()
    assert attribution.paper.end_usd == D(10006)
    assert attribution.parts()["rest_usd"] == attribution.outside_usd == D(3)


def test_an_order_that_was_refused_live_is_missed_there():
    start = account("10000")
    first = tick_record(0, GENESIS, T0, start, start, (), [OPEN])
    end = tick_record(1, first.digest, T0 + 5 * MINUTE_MS, start, start)
    with localcontext(CONTEXT):
        attribution = attribution_of([first, end], setup_of(MINUTES))
    (trade,) = attribution.trades
    assert (trade.live_size, trade.live_usd, trade.closed_at) == (0, 0, None)
    assert trade.parts["missed_usd"] == D(-500)  # 50 × (110 − 100), which only the paper account made
    assert trade.parts["fees_usd"] == D("2.5")
    check_sums(attribution)


@pytest.mark.parametrize("from_at", [0, T0])
def test_the_replay_judges_with_the_caps_that_were_in_effect(from_at: Instant):
    start = account("10000")
    caps = {
        "number": 1,
        "by": "kim",
        "reason": "",
        "caps": '{"max_leverage": 1, "max_position_pct": 100, "max_total_exposure_pct": 100}',
    }
    body = {"until_at": T0 - 1, "ticks": 0, "flags": {}, "after": start, "receipts": [receipt("caps", T0 - 1, "", **caps)], "equity": ()}  # fmt: skip
    changed = seal(0, "span", T0 - 1, GENESIS, body, ZERO_COST_EXTRA)
    first = tick_record(1, changed.digest, T0, start, start, (), [OPEN])
    end = tick_record(2, first.digest, T0 + 5 * MINUTE_MS, start, start)
    with localcontext(CONTEXT):
        assert attribution_of([changed, first, end], setup_of(MINUTES), from_at).trades == ()


def test_the_price_within_a_bar_lies_between_its_open_and_its_close():
    prices = BarPrices(MINUTES, "1m")
    assert [prices.at("ETH", T0 + ms) for ms in (0, 5_000, 59_999)] == [D(100), D(101), D("111.9998")]
    assert prices.at("ETH", T0 + HOUR_MS) == D(105)


def test_a_position_that_the_account_had_already_is_a_trade_of_its_metrics():
    held = account("9000", "50", "5000", "100")
    closed = account("9500")
    first = tick_record(0, GENESIS, T0, held, held)
    exit_receipt = fill_receipt(T0 + 3_000, "x", "sell", "50", "110", "0")
    second = tick_record(1, first.digest, T0 + MINUTE_MS, closed, closed, [exit_receipt])
    ledger = read_ledger([first, second])
    assert ledger.first_usd == D(9000)
    assert [each.facts["reason"] for each in ledger.receipts] == ["adopted", "market"]
    params = {
        "from_at": T0,
        "to_at": T0,
        "skill": to_plain(SKILL),
        "equity_usd": "123",
        "base_interval": "1m",
    }
    metrics = venue_named("perp").measure_again(params, ledger)
    assert (metrics["total_trades"], metrics["avg_win_usd"]) == (1, 500.0)
    assert metrics["funnel"]["fills"] == 1


def test_a_venue_without_a_paper_replay_says_so():
    with pytest.raises(UserError, match="cannot replay"):
        venue_named("community").attribution(None, None, (0, 1), "")  # type: ignore[arg-type]


# On the fake exchange -------------------------------------------------------------------------------------------------


class LateDecider:
    """Decides after some seconds, in which the market moves."""

    name = "late"

    def __init__(self, proposals: Sequence[Any], meanwhile: Callable[[], None]) -> None:
        self._proposals = tuple(proposals)
        self._meanwhile = meanwhile

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        del observation, judge
        self._meanwhile()
        return Decision(self._proposals)


def test_a_live_account_on_the_exchange_pays_for_latency_and_slippage():
    scene = Scene(seed=5)
    records: list[Record] = []
    start = scene.now() + 10 * MINUTE_MS
    market = bars_of(
        start - MINUTE_MS,
        [
            (2500, 2500),
            (2500, 2560),
            (2560, 2560),
            (2560, 2600),
            (2600, 2600),
            (2600, 2600),
            (2600, 2540),
            *[(2540, 2540)] * 9,
        ],
    )

    def later(seconds: float, price: int) -> Callable[[], None]:
        def pass_time() -> None:
            scene.clock.move(seconds)
            scene.exchange.set_price("ETH", D(price))

        return pass_time

    async def one_tick(state: State, at: Instant, price: int, decider: LateDecider) -> State:
        scene.clock.move((at - scene.now()) / 1_000)
        scene.exchange.set_price("ETH", D(price))
        reconciled = await scene.broker.resolve(state.world)
        state = state.after(world=reconciled.world)
        ports = PerpPorts(
            skill=SKILL, limits=caps_of(SKILL), terms=scene.setup.terms, view=market.view, decider=decider,
            broker=scene.broker, context=PerpPrompts(SKILL), started_at=start, wakes=False, build_prompts=False,
        )  # fmt: skip
        result = await tick(state, at, WorldEvents(reconciled.receipts), ports)
        assert [each["outcome"] for each in result.covered["verdicts"]] in ([], ["allowed"])
        records.append(result.record)
        return result.state

    async def work() -> None:
        scene.clock.move((start - scene.now() - 1_000) / 1_000)
        scene.exchange.set_price("ETH", D(2500))
        state = State(await scene.world(), memory=NO_MEMORY)
        state = await one_tick(state, start, 2500, LateDecider([OPEN], later(6, 2506)))
        state = await one_tick(state, start + 5 * MINUTE_MS, 2600, LateDecider([CLOSE], later(4, 2596)))
        await one_tick(state, start + 10 * MINUTE_MS, 2540, LateDecider([], lambda: None))

    with localcontext(CONTEXT):
        asyncio.run(work())
        attribution = attribution_of(records, setup_of(market))
    fills = [each for each in read_ledger(records).receipts if each.kind == "filled"]
    entry, leaving = ((each.at, D(str(each.facts["price"])), D(str(each.facts["size"]))) for each in fills)
    (trade,) = attribution.trades
    check_sums(attribution)
    size = entry[2]
    assert (trade.live_size, trade.paper_size, size) == (D(2), D(2), D(2))
    assert 6_000 < entry[0] - start < 8_000
    assert 4_000 < leaving[0] - start - 5 * MINUTE_MS < 6_000
    # the first bar rises by 1 a second, the other falls by 1 a second
    moved_in, moved_out = D(entry[0] - start) / 1_000, D(leaving[0] - start - 5 * MINUTE_MS) / 1_000
    assert trade.parts["latency_usd"] == -size * (moved_in + moved_out)
    assert trade.parts["slippage_usd"] == -size * ((entry[1] - 2500 - moved_in) + (2600 - moved_out - leaving[1]))
    assert trade.parts["missed_usd"] == trade.parts["rest_usd"] == 0
    fees = sum((D(str(each.facts["fee_usd"])) for each in fills), D(0))
    assert trade.parts["fees_usd"] == D(2) * 5100 * D("0.0005") - fees
    assert abs(attribution.outside_usd) < D("0.00001")  # the exchange rounds what it reports
