"""Round trips: what counts as one, and that together they account for every cent."""

from dataclasses import dataclass, field, fields
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.money import CONTEXT, ZERO
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.trade_memory import RoundTrip
from pitboss.venues.perp.trades import OpenTrade, Trade, WorkingTrip, amount, book, round_trips

D = Decimal


def fill(at, side, size, price, fee="0", symbol="BTC", penalty="0", reason="market"):
    facts = {
        "side": side,
        "size": D(size),
        "price": D(price),
        "fee_usd": D(fee),
        "slippage_usd": ZERO,
        "penalty_usd": D(penalty),
        "liquidity": "taker",
        "reason": reason,
    }
    return Receipt("filled", at, symbol, "1", facts)


def funding_receipt(at, usd, symbol="BTC"):
    facts = {"rate": D("0.0001"), "price": D(100), "size": D(1), "amount_usd": D(usd)}
    return Receipt("funded", at, symbol, "", facts)


def test_a_long_round_trip_is_one_trade_net_of_fees_and_funding():
    trades = round_trips(
        [fill(1, "buy", "2", "100", "0.9"), funding_receipt(2, "0.3"), fill(3, "sell", "2", "110", "0.99")]
    )
    assert trades == [
        Trade(
            symbol="BTC",
            side="long",
            opened_at=1,
            closed_at=3,
            entry_price=D(100),
            exit_price=D(110),
            max_size=D(2),
            pnl_usd=D("17.81"),
            gross_usd=D(20),
            fees_usd=D("1.89"),
            funding_usd=D("0.3"),
            penalties_usd=ZERO,
            fills=2,
            exit_reason="market",
        )
    ]


def test_a_short_that_earned_funding_and_was_stopped_out_says_so():
    (trade,) = round_trips(
        [fill(1, "sell", "1", "100"), funding_receipt(2, "-0.5"), fill(3, "buy", "1", "104", reason="stop")]
    )
    assert (trade.side, trade.gross_usd, trade.funding_usd, trade.pnl_usd) == ("short", D(-4), D("-0.5"), D("-3.5"))
    assert trade.exit_reason == "stop"


def test_adding_and_reducing_stay_one_trade_with_average_prices():
    (trade,) = round_trips(
        [
            fill(1, "buy", "1", "100"),
            fill(2, "buy", "3", "104"),
            fill(3, "sell", "2", "110"),
            fill(4, "buy", "2", "91"),
            fill(5, "sell", "4", "95"),
        ]
    )
    assert (trade.entry_price, trade.exit_price, trade.max_size, trade.fills) == (D(99), D(100), D(4), 5)
    assert trade.gross_usd == D(600 - 594)


def test_a_liquidation_pays_its_penalty_apart_from_the_fee():
    (trade,) = round_trips([fill(1, "buy", "1", "100"), fill(2, "sell", "1", "60", "0.1", "BTC", "0.3", "liquidation")])
    assert (trade.fees_usd, trade.penalties_usd, trade.pnl_usd) == (D("0.1"), D("0.3"), D("-40.4"))
    assert trade.exit_reason == "liquidation"


def test_symbols_are_separate_and_trades_come_in_the_order_in_which_they_closed():
    trades = round_trips(
        [
            fill(1, "buy", "1", "100"),
            fill(1, "sell", "5", "10", symbol="ETH"),
            fill(2, "buy", "5", "9", symbol="ETH"),
            fill(3, "sell", "1", "101"),
        ]
    )
    assert [(trade.symbol, trade.side, trade.gross_usd) for trade in trades] == [
        ("ETH", "short", D(5)),
        ("BTC", "long", D(1)),
    ]


def test_an_unfinished_position_is_no_trade_and_is_handed_back_as_open():
    trade_book = book(
        [fill(1, "buy", "3", "100", "0.5"), fill(2, "sell", "1", "120", "0.2"), funding_receipt(3, "0.1")]
    )
    assert trade_book.closed == ()
    assert trade_book.open == (OpenTrade("BTC", "long", 1, D(2), D(100), D(3), D(-180), D("0.7"), D("0.1"), ZERO, 2),)
    assert trade_book.open[0].pnl_usd(D(110)) == D("39.2")


def test_a_dust_position_of_one_lot_is_not_flat():
    trade_book = book([fill(1, "buy", "0.00003", "100"), fill(2, "sell", "0.00002", "100")])
    assert trade_book.closed == ()
    assert trade_book.open[0].size == D("0.00001")


@pytest.mark.parametrize(
    "receipts",
    [
        [fill(1, "buy", "1", "100"), fill(2, "sell", "2", "100")],
        [fill(1, "buy", "0", "100")],
        [fill(1, "buy", "-1", "100")],
        [funding_receipt(1, "0.1")],
    ],
    ids=["turns round", "nothing", "negative", "funding while flat"],
)
def test_a_stream_that_no_account_can_have_produced_is_an_invariant_error(receipts):
    with pytest.raises(InvariantError):
        book(receipts)


def test_other_receipts_change_nothing():
    noise = [
        Receipt("accepted", 1, "BTC", "1"),
        Receipt("rejected", 1, "BTC", "2", {"reason": "margin"}),
        Receipt("cancelled", 1, "BTC", "3", {"reason": "halt"}),
        Receipt("halted", 1, "", "", {"halt": "drawdown"}),
        Receipt("liquidated", 1, "", "", {"deficit_usd": D(3)}),
        funding_receipt(1, "0", "ETH"),
    ]
    assert book(noise).closed == book(noise).open == ()


def test_amounts_are_exact_or_refused():
    assert amount("0.10") == amount(D("0.1")) == D("0.1")
    assert amount(3) == D(3)
    with pytest.raises(InvariantError):
        amount(0.1)  # pyright: ignore[reportArgumentType]


@dataclass
class Account:
    """The slow, obvious account: cash, and size and cost by symbol, as the paper world keeps them."""

    cash: Decimal = Decimal(10_000)
    size: dict[str, Decimal] = field(default_factory=dict)
    cost: dict[str, Decimal] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    flats: int = 0

    def fill(self, at, symbol, signed, price, fee, penalty):
        size, cost = self.size.get(symbol, ZERO), self.cost.get(symbol, ZERO)
        if size * signed >= 0:
            cost += signed * price
        else:
            part = cost if signed == -size else cost * -signed / size
            self.cash += -signed * price - part
            cost -= part
        self.size[symbol], self.cost[symbol] = size + signed, cost
        self.flats += size != 0 and size + signed == 0
        self.cash -= fee + penalty
        side = "buy" if signed > 0 else "sell"
        self.receipts.append(fill(at, side, abs(signed), price, fee, symbol, penalty))

    def fund(self, at, symbol, usd):
        self.cash -= usd
        self.receipts.append(funding_receipt(at, usd, symbol))

    def equity(self, marks):
        return self.cash + sum(self.size[key] * marks[key] - self.cost[key] for key in self.size)


def amounts(low, high, places):
    return st.integers(low * 10**places, high * 10**places).map(lambda units: D(units).scaleb(-places))


steps = st.lists(
    st.tuples(
        st.sampled_from(["BTC", "ETH"]),
        st.sampled_from(["add", "reduce", "close", "fund"]),
        amounts(1, 90, 3),
        amounts(1, 200, 5),
        amounts(0, 2, 4),
        st.booleans(),
    ),
    max_size=25,
)


@given(steps, amounts(1, 200, 5), amounts(1, 200, 5))
def test_p20_trades_and_open_positions_together_are_the_whole_result(steps, btc, eth):
    with localcontext(CONTEXT):
        account = Account()
        for at, (symbol, what, part, price, usd, short) in enumerate(steps):
            size = account.size.get(symbol, ZERO)
            if what == "add" or not size:
                way = size if size else D(-1 if short else 1)
                account.fill(at, symbol, part.copy_sign(way), price, usd, ZERO)
            elif what == "fund":
                account.fund(at, symbol, -usd if short else usd)
            elif what == "reduce":
                account.fill(at, symbol, -min(part, abs(size)).copy_sign(size), price, usd, ZERO)
            else:
                account.fill(at, symbol, -size, price, usd, usd if short else ZERO)
        marks = {"BTC": btc, "ETH": eth}
        trade_book = book(account.receipts)
        flows = D(10_000)
        for receipt in account.receipts:
            facts = receipt.facts
            if receipt.kind == "funded":
                flows -= facts["amount_usd"]
            else:
                way = -1 if facts["side"] == "buy" else 1
                flows += way * facts["size"] * facts["price"] - facts["fee_usd"] - facts["penalty_usd"]
        flows += sum(account.size[key] * marks[key] for key in account.size)
        result = sum((trade.pnl_usd for trade in trade_book.closed), ZERO)
        result += sum((trade.pnl_usd(marks[trade.symbol]) for trade in trade_book.open), ZERO)
        assert result == flows - 10_000
        # The account splits cost in proportion, which may not divide; cash flows never have to be divided.
        assert abs(account.equity(marks) - 10_000 - result) < D("1e-45")
    assert len(trade_book.closed) == account.flats
    assert {trade.symbol: trade.size for trade in trade_book.open} == {k: v for k, v in account.size.items() if v}
    for trade in trade_book.closed:
        assert trade.pnl_usd == trade.gross_usd - trade.fees_usd - trade.funding_usd - trade.penalties_usd
        assert trade.opened_at < trade.closed_at


@given(steps)
def test_receipts_read_back_from_storage_give_the_same_trades(steps):
    fresh = [fill(at, "sell" if at % 2 else "buy", "1", price, usd) for at, (*_, price, usd, _) in enumerate(steps)]
    stored = [Receipt(**codec.plain(receipt)) for receipt in fresh]
    assert all(isinstance(receipt.facts["price"], str) for receipt in stored)
    assert book(stored) == book(fresh)


def test_the_callers_decimal_context_does_not_change_a_cent():
    receipts = [fill(1, "buy", "3.123456789", "100.123456789"), fill(2, "sell", "3.123456789", "101.987654321")]
    with localcontext() as context:
        context.prec = 4
        rounded = round_trips(receipts)
    assert rounded == round_trips(receipts)


def test_a_working_trip_has_the_fields_of_a_round_trip_in_their_order():
    frozen, working = (
        [(each.name, each.type, each.default) for each in fields(kind)] for kind in (RoundTrip, WorkingTrip)
    )
    assert working == frozen
