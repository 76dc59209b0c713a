"""The parts of a difference between two accounts: they add up exactly, and each is what its name says."""

from decimal import Decimal, localcontext

from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.money import CONTEXT, ZERO
from pitboss.venues.perp.trade_differences import CARRIED, MARKED, AccountTrade, PricedFill, difference, explain

D = Decimal
NEAR = D("0.0000001")
amounts = st.decimals(min_value="0.01", max_value="100000", places=2)
sizes = st.decimals(min_value="0.001", max_value="50", places=3)
costs = st.decimals(min_value="-50", max_value="50", places=4)
causes = st.sampled_from(["tick 1", "tick 2", "stop", CARRIED, MARKED])


def fill(size, price, decided=None, market=None, cause="tick 1"):
    price = D(price)
    decided = price if decided is None else D(decided)
    return PricedFill(1, D(size), price, decided, decided if market is None else D(market), cause)


@st.composite
def trades(draw, symbol="BTC", side=None):
    side = draw(st.sampled_from([1, -1])) if side is None else side
    parts = draw(st.lists(sizes, min_size=1, max_size=3))

    def leg(each_size):
        return PricedFill(1, each_size, draw(amounts), draw(amounts), draw(amounts), draw(causes))

    entries = tuple(leg(part) for part in parts)
    exits = tuple(leg(part) for part in reversed(parts))
    opened_at = draw(st.integers(0, 100))
    closed_at = draw(st.none() | st.integers(opened_at, 200))
    return AccountTrade(symbol, side, opened_at, closed_at, entries, exits, *(draw(costs) for _ in range(3)))


def parts_of(row):
    return row.latency_usd, row.slippage_usd, row.fees_usd, row.funding_usd, row.missed_usd, row.rest_usd


@settings(max_examples=300)
@given(st.integers(0, 2), st.data())
def test_the_parts_of_a_trade_add_up_to_its_difference_exactly(which, data):
    side = data.draw(st.sampled_from([1, -1]))
    live = None if which == 1 else data.draw(trades(side=side))
    paper = None if which == 2 else data.draw(trades(side=side))
    row = difference(live, paper)
    with localcontext(CONTEXT):
        assert sum(parts_of(row)) == row.difference_usd
        results = [ZERO if each is None else each.result_usd for each in (live, paper)]
        assert row.difference_usd == results[0] - results[1]


@settings(max_examples=100)
@given(st.lists(trades() | trades("ETH"), max_size=5), st.lists(trades() | trades("ETH"), max_size=5))
def test_every_trade_of_both_accounts_is_in_exactly_one_row(live, paper):
    rows = explain(live, paper)
    with localcontext(CONTEXT):
        assert sum((row.live_usd for row in rows), ZERO) == sum((each.result_usd for each in live), ZERO)
        assert sum((row.paper_usd for row in rows), ZERO) == sum((each.result_usd for each in paper), ZERO)
    assert max(len(live), len(paper)) <= len(rows) <= len(live) + len(paper)
    assert [row.opened_at for row in rows] == sorted(row.opened_at for row in rows)


@settings(max_examples=200)
@given(trades(), st.data())
def test_nothing_is_left_as_rest_if_only_prices_sizes_and_costs_of_the_same_decisions_differ(paper, data):
    share = data.draw(st.sampled_from(["1", "0.5", "2"]))

    def moved(each):
        return PricedFill(1, each.size * D(share), data.draw(amounts), each.decided, data.draw(amounts), each.cause)

    live = AccountTrade(
        paper.symbol, paper.side, paper.opened_at, paper.closed_at,
        tuple(map(moved, paper.entries)), tuple(map(moved, paper.exits)),
        data.draw(costs), data.draw(costs), paper.penalties_usd,
    )  # fmt: skip
    with localcontext(CONTEXT):
        assert abs(difference(live, paper).rest_usd) < NEAR


def test_a_trade_against_itself_has_no_difference():
    trade = AccountTrade("BTC", 1, 1, 9, (fill(2, 100),), (fill(2, 110, cause="tick 2"),), D("0.5"), D("0.1"))
    assert set(parts_of(difference(trade, trade))) == {ZERO}


def test_latency_and_slippage_of_entry_and_exit_by_hand():
    # long 2: decided at 100, the market is 101 when it fills at 101.50; decided to close at 110, 109 then, filled at 108.80
    live = AccountTrade(
        "BTC", 1, 1, 9, (fill(2, "101.5", 100, 101),), (fill(2, "108.8", 110, 109, "tick 2"),), D("0.40"), D("0.05")
    )
    # on paper at the decided price, with 0.10 and 0.20 of slippage
    paper = AccountTrade(
        "BTC", 1, 1, 9, (fill(2, "100.1", 100, 100),), (fill(2, "109.8", 110, 110, "tick 2"),), D("0.30"), D("0.02")
    )
    row = difference(live, paper)
    assert (row.live_usd, row.paper_usd) == (D("14.15"), D("19.08"))
    assert row.latency_usd == D(-4)  # 1 on each side, for a size of 2
    assert row.slippage_usd == D("-0.8")  # 0.50 − 0.10 at the entry, 0.20 − 0.20 at the exit, for a size of 2
    assert (row.fees_usd, row.funding_usd) == (D("-0.10"), D("-0.03"))
    assert (row.missed_usd, row.rest_usd) == (ZERO, ZERO)


def test_a_short_that_was_filled_half_misses_the_result_of_the_other_half():
    live = AccountTrade("BTC", -1, 1, 9, (fill(1, 100),), (fill(1, 90, cause="tick 2"),))
    paper = AccountTrade("BTC", -1, 1, 9, (fill(2, 100),), (fill(2, 90, cause="tick 2"),))
    row = difference(live, paper)
    assert (row.difference_usd, row.missed_usd, row.rest_usd) == (D(-10), D(-10), ZERO)


def test_a_trade_that_one_account_does_not_have_is_missed_there():
    trade = AccountTrade("BTC", 1, 1, 9, (fill(2, 100),), (fill(2, 110, cause="tick 2"),), D("0.5"))
    assert difference(None, trade).missed_usd == D(-20)
    assert difference(None, trade).fees_usd == D("0.5")
    assert difference(trade, None).missed_usd == D(20)


def test_an_exit_by_a_stop_that_only_one_account_had_is_missed_there():
    live = AccountTrade("BTC", 1, 1, 9, (fill(1, 100),), (fill(1, "94.5", 95, 95, "stop"),))
    paper = AccountTrade("BTC", 1, 1, None, (fill(1, 100),), (fill(1, 110, cause=MARKED),))
    row = difference(live, paper)
    assert (row.missed_usd, row.slippage_usd, row.rest_usd) == (D(-15), D("-0.5"), ZERO)


def test_trades_are_matched_by_decision_before_time():
    first = AccountTrade("BTC", 1, 1, 5, (fill(1, 100, cause="tick 1"),), (fill(1, 101, cause="stop"),))
    second = AccountTrade("BTC", 1, 6, 9, (fill(1, 102, cause="tick 6"),), (fill(1, 103, cause="stop"),))
    whole = AccountTrade("BTC", 1, 1, 9, (fill(1, 100, cause="tick 6"),), (fill(1, 103, cause="stop"),))
    rows = explain([first, second], [whole])
    assert [(row.opened_at, row.paper_usd) for row in rows] == [(1, ZERO), (6, D(3))]
