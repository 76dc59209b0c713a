"""Account, caps, memory and past anonymised: every field that is carried has been thought of."""

from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points
from pitboss.core.past import PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.state import LastDecision
from pitboss.venues.perp.blind import memory as hindsight
from pitboss.venues.perp.blind import observation
from pitboss.venues.perp.blind.anonymiser import make_anonymiser
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.portfolio import portfolio
from pitboss.venues.perp.state import PerpWorld, Position, WorkingOrder, open_world
from pitboss.venues.perp.trade_memory import (
    ClosedTrade,
    LessonNotes,
    OrderThesis,
    PerpMemory,
    RefusedProposal,
    RoundTrip,
)
from venues.perp.blind.blind_runs import FROM, LEVELS, SYMBOLS
from venues.perp.prompt_scene import TERMS

ANONYMISER = make_anonymiser(SYMBOLS, 3, LEVELS)
BTC = ANONYMISER.by_symbol["BTC"]


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        (Market, "bars points news events listings"),
        (Bars, "symbol interval interval_ms open_at open high low close volume"),
        (Points, "symbol kind at value"),
        (NewsItem, "published_at available_at source text sentiment symbols mood"),
        (CalendarEvent, "scheduled_at known_at kind title importance symbols"),
        (Listing, "symbol listed_at delisted_at known_at"),
        (PerpWorld, "cash initial peak day day_reference last_equity positions orders leverage marks marked_at halts next_order deficit"),
        (Position, "symbol size cost opened_at stop take_profit thesis stopping"),
        (WorkingOrder, "id kind symbol side size submitted_at active_from limit stop take_profit thesis rested"),
        (LastDecision, "tick_at outcome flag proposal code detail"),
        (ClosedTrade, "symbol side opened_at closed_at pnl_usd reason entry_price exit_price notional_usd mfe_pct mae_pct regime thesis"),
        (
            RoundTrip,
            "symbol way opened_at left max_size grown grown_notional shrunk shrunk_notional flow fees funding penalties fills"
            " regime thesis",
        ),
        (LessonNotes, "entry_timing sizing symbol_selection exit_timing regime_fit"),
        (RefusedProposal, "at code"),
        (OrderThesis, "order_id thesis"),
        (PerpMemory, "trades notes refusals going reasons part_filled day executed realised_usd losses closed learnt tried"),
        (PastDecision, "at outcome code detail proposal text flags calls equity_usd cost_usd"),
        (Receipt, "kind at symbol order_id facts"),
    ],
)  # fmt: skip
def test_no_field_has_been_added_that_the_mapping_does_not_know(kind: type, known: str) -> None:
    assert [field.name for field in fields(kind)] == known.split(), (
        "teach venues/perp/blind/observation.py the new field, then this list"
    )


def test_an_account_anonymised_is_worth_the_same_and_its_prices_are_scaled() -> None:
    world = PerpWorld(
        **{name: getattr(open_world(Decimal(10_000), 20_000), name) for name in ("cash", "initial", "peak", "day", "day_reference", "last_equity")},
        positions={
            "BTC": Position("BTC", Decimal("0.5"), Decimal(31_000), FROM, Decimal(60_000), None, "Bitcoin breaks out"),
            "ETH": Position("ETH", Decimal(-2), Decimal(-6_200), FROM, None, Decimal(2_900)),
        },
        orders=(WorkingOrder("o7", "limit", "LINK", 1, Decimal("10.1"), FROM, FROM, Decimal("13.9"), Decimal(13), None, "on"),),
        leverage={"BTC": 5, "ETH": 2},
        marks={"BTC": Decimal(63_000), "ETH": Decimal("3100.5"), "LINK": Decimal("14.02")},
        marked_at=dict.fromkeys(SYMBOLS, FROM),
    )  # fmt: skip
    terms = observation.terms_of(ANONYMISER, TERMS)
    true, seen = portfolio(world, TERMS), portfolio(observation.world_of(ANONYMISER, world), terms)
    assert (seen.equity_usd, seen.free_margin_usd) == (true.equity_usd, true.free_margin_usd)
    mine = {held.symbol: held for held in seen.positions}
    for held in true.positions:
        alias = ANONYMISER.by_symbol[held.symbol]
        other = mine[alias.name]
        assert (other.side, other.notional_usd, other.unrealised_usd) == (
            held.side,
            held.notional_usd,
            held.unrealised_usd,
        )
        assert other.entry == pytest.approx(held.entry * alias.price, rel=Decimal("1e-40"))
        assert held.liquidation is not None
        assert other.liquidation == pytest.approx(held.liquidation * alias.price, rel=Decimal("1e-40"))
        assert other.size == held.size * alias.size
    assert "itcoin" not in mine[BTC.name].thesis
    assert seen.orders[0].limit == Decimal("13.9") * ANONYMISER.by_symbol["LINK"].price


@given(st.decimals(min_value="0.001", max_value=200_000, places=4), st.booleans())
def test_lots_and_price_steps_are_the_true_ones_scaled(price: Decimal, up: bool) -> None:
    terms = observation.terms_of(ANONYMISER, TERMS)
    for symbol, alias in ANONYMISER.by_symbol.items():
        true, seen = TERMS.assets[symbol], terms.assets[alias.name]
        assert seen.lot == true.lot * alias.size
        assert seen.round_price(price * alias.price, up) == true.round_price(price, up) * alias.price


def test_memory_anonymised_keeps_results_and_loses_names_times_and_prices() -> None:
    trade = ClosedTrade("BTC", "long", FROM, FROM + 5, Decimal(12), "stop", Decimal(63_000), Decimal(64_000), Decimal(900), 1.0, 2.0, "chop", "BTC up")  # fmt: skip
    trip = RoundTrip("ETH", "buy", FROM, Decimal(2), Decimal(2), Decimal(2), Decimal(6_200), thesis="ethereum")
    memory = PerpMemory(
        (trade,),
        LessonNotes(sizing="Less Bitcoin"),
        (RefusedProposal(FROM, "R3"),),
        (trip,),
        (OrderThesis("o1", "BTC"),),
        day=FROM // DAY_MS,
    )
    seen = hindsight.memory_of(ANONYMISER, memory)
    result = codec.dumps(seen).decode()
    for true in ("BTC", "ETH", "itcoin", "thereum", "63000", "64000", str(FROM), str(FROM // DAY_MS)):
        assert true not in result
    assert seen.trades[0].pnl_usd == 12
    assert seen.trades[0].entry_price == 63_000 * BTC.price
    assert seen.day == (FROM + ANONYMISER.shift_ms) // DAY_MS


class _FixedHistory:
    def decisions(self, before: int, count: int) -> list[PastDecision]:
        assert before == FROM
        proposal = '{"symbol":"BTC","stop_loss":64000,"reason":"Bitcoin"}'
        detail = "stop_loss 64000 is not on the losing side of 63000"
        return [PastDecision(FROM - 1, "refused", "R11_PRICE_BAND", detail, proposal, "BTC?")][:count]

    def receipts(self, before: int, count: int) -> list[Receipt]:
        assert before == FROM
        return [
            Receipt("filled", FROM - 1, "BTC", "o1", {"side": "buy", "size": "0.5", "price": "63000", "fee_usd": "1"})
        ]

    def snapshot(self, at: int, before: int) -> dict[str, Any] | None:
        assert (at, before) == (FROM - 1, FROM)
        margin = {"code": "R11_PRICE_BAND", "limit": "64000", "used": "63000", "left": None, "unit": "price"}
        verdict = {"outcome": "refused", "code": "R2_SCOPE", "detail": "no position in BTC", "margins": [margin]}
        kept = dict.fromkeys(("seq", "steps", "text", "flags", "finish_reason", "extra", "prompt_sha256", "digest"))
        account = {"equity_usd": "1", "positions": {"BTC": {"mark": "63000"}}, "orders": []}
        body = {"proposals": [{"symbol": "BTC"}], "verdicts": [verdict], "before": account, "after": account}
        return (
            kept | body | {"receipts": [{"kind": "filled", "at": FROM, "symbol": "BTC", "facts": {"price": "63000"}}]}
        )

    def commands(self, before: int, count: int) -> list[str]:
        return ["close BTC at 63000"]


def test_a_past_anonymised_is_asked_and_answers_anonymisedd_terms() -> None:
    past, now = ANONYMISER.past(_FixedHistory()), FROM + ANONYMISER.shift_ms
    result = codec.dumps(
        [past.decisions(now, 5), past.receipts(now, 5), past.snapshot(now - 1, now), past.commands(now, 1)]
    ).decode()
    for true in ("BTC", "itcoin", "63000", "64000", str(FROM), str(FROM - 1)):
        assert true not in result
    assert past.decisions(now, 5)[0].at == now - 1
    assert past.receipts(now, 5)[0].facts["fee_usd"] == "1"


def test_a_list_of_allowed_symbols_that_names_nothing_of_the_run_still_allows_nothing() -> None:
    for allowed, expected in (((), ()), (("DOGE",), ("OTHER",)), (("DOGE", "BTC"), (BTC.name,))):
        caps = PerpCaps(symbols=SYMBOLS, allowed_symbols=allowed)
        assert observation.caps_of(ANONYMISER, caps).allowed_symbols == expected
        assert [observation.caps_of(ANONYMISER, caps).opens_allowed(ANONYMISER.name(symbol)) for symbol in SYMBOLS] == [
            caps.opens_allowed(symbol) for symbol in SYMBOLS
        ]
