"""The ledger of the predict venue: every call, and what came of it, live and from storage alike."""

from decimal import Decimal as D

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.instant import MINUTE_MS
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.outcome import PerpLedger
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.ladder import first_rung
from pitboss.venues.predict.metrics import compute_predict
from pitboss.venues.predict.outcome import MarketCall, PredictLedger, read_predict_ledger
from pitboss.venues.predict.quote import Quote, make_quote
from pitboss.venues.predict.state import QUOTE, MarketTerms, binary, usd
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import preview
from venues.predict.generated_run import LOOSE, forecaster, run_generated
from venues.predict.predict_ticks import SOON
from venues.predict.scene import NOW

MINT = {
    "action": "mint",
    "market_id": SOON,
    "side": "YES",
    "strike": 63_200,
    "spend": 2,
    "confidence": D("0.61"),
    "reasoning": "up",
}


def first_tick_only(*intents):
    """Decides at the first tick only."""
    return lambda observation: intents if observation.at == NOW else ()


def single_call(ledger: PredictLedger) -> MarketCall:
    (call,) = ledger.calls
    return call


@given(st.integers(0, 2**32), st.integers(0, 6))
@settings(max_examples=3)
def test_live_and_stored_records_give_equal_calls_and_equal_metrics(seed: int, silence: int) -> None:
    ran = run_generated(forecaster(seed), 90, seed=seed, silent=lambda place: place % 7 < silence)
    stored = read_predict_ledger(ran.records)
    assert stored.calls == ran.ledger.calls
    assert stored.calls
    figures = compute_predict(ran.outcome(), 1)
    assert compute_predict(ran.outcome(stored), 1) == figures
    assert codec.dumps(compute_predict(ran.outcome(stored), 1)) == codec.dumps(figures)


def test_a_mint_that_is_filled_has_its_price_its_fair_price_and_what_was_won() -> None:
    ran = run_generated(first_tick_only(MINT), 70)
    call = single_call(ran.ledger)
    (fill,) = [one for one in ran.ledger.receipts if one.kind == "filled"]
    settled = [one for one in ran.ledger.receipts if one.kind == "settled" and one.symbol == SOON]
    assert (call.at, call.action, call.market_id, call.side, call.strike) == (NOW, "mint", SOON, "YES", 63_200)
    assert (call.verdict, call.code, call.confidence, call.spend) == ("allowed", "", D("0.61"), 2)
    assert call.traded is not None
    assert (call.ask, call.fair, call.traded.price) == (fill.facts["price"], fill.facts["fair"], fill.facts["price"])
    assert (call.traded.quantity, call.traded.amount) == (fill.facts["quantity"], fill.facts["cost"])
    assert call.won is (D(settled[0].facts["price"]) > 63_200)
    assert call.order_id == fill.order_id


def test_a_decision_that_waits_is_followed_to_its_fill() -> None:
    ran = run_generated(first_tick_only(MINT), 3, silent=lambda place: place == 1)
    assert single_call(ran.ledger).traded is not None
    ran = run_generated(
        lambda observation: (MINT,) if observation.at == NOW + MINUTE_MS else (), 3, silent=lambda place: place == 1
    )
    call = single_call(ran.ledger)
    assert call.traded is not None
    assert call.order_id.startswith("o")
    assert call.traded.at == NOW + MINUTE_MS + 10_000
    assert (call.ask, call.late) == (call.traded.price, False)
    assert call.fair is not None


def test_a_decision_that_waited_in_vain_is_refused_late_with_its_code_and_keeps_the_ask_it_was_judged_on() -> None:
    hasty = PredictCaps(max_price_age_ms=25_000, max_slippage_bps=0)
    shown = {"price": None}

    def decide(observation):
        """Shown a very low ask, so that whatever comes next is above it."""
        if observation.at != NOW + MINUTE_MS:
            return ()
        rung = first_rung(observation.desk.world, SOON, "YES", observation.at, count=0)
        assert rung is not None
        contract = binary(SOON, "YES", rung.strike)
        found = preview(observation.desk.world, contract, observation.at)
        assert isinstance(found, Quote)
        shown["price"] = found.ask + FLOAT // 1_000_000
        observation.shown.note(contract, shown["price"])
        return ({**MINT, "strike": usd(rung.strike)},)

    ran = run_generated(decide, 4, seed=11, caps=hasty, silent=lambda place: place == 1, later=1.001)
    call = single_call(ran.ledger)
    assert (call.verdict, call.code, call.late, call.traded) == ("refused", "B7_SLIPPAGE", True, None)
    assert call.ask is not None
    assert call.fair is not None
    assert call.fair < call.ask <= usd(shown["price"])
    figures = compute_predict(ran.outcome())
    assert (figures["late_rejections_by_rule"], figures["rejections_by_rule"]) == ({"B7_SLIPPAGE": 1}, {})


@pytest.mark.parametrize(
    ("change", "code", "quoted"),
    [
        ({"market_id": "BTC-nowhere"}, "B2_MARKET", False),
        ({"strike": D("63200.5")}, "B5_NOT_QUOTED", False),
        ({"strike": 90_000}, "B5_NOT_QUOTED", False),
        ({"confidence": None}, "B8_EDGE", True),
        ({"confidence": D("0.2")}, "B8_EDGE", True),
    ],
)
def test_a_refused_call_has_its_code_and_the_prices_on_which_it_was_judged(change, code: str, quoted: bool) -> None:
    ran = run_generated(first_tick_only({**MINT, **change}), 70, caps=PredictCaps(min_edge=FLOAT // 100))
    call = single_call(ran.ledger)
    assert (call.verdict, call.code, call.traded) == ("refused", code, None)
    assert (call.ask is not None, call.fair is not None) == (quoted, quoted)
    assert ran.ledger.rejections == {code: 1}
    assert (call.won is None) == (code == "B2_MARKET")


def test_a_reduced_call_says_so_and_keeps_what_was_asked() -> None:
    call = single_call(run_generated(first_tick_only({**MINT, "spend": 50}), 1).ledger)
    assert (call.verdict, call.code, call.spend) == ("reduced", "B9_SPEND_TICK", 50)
    assert call.traded is not None
    assert call.traded.amount <= 2


def test_saying_the_same_twice_counts_under_this_venues_rule_and_is_one_forecast() -> None:
    ran = run_generated(first_tick_only(MINT, MINT), 70)
    first, second = ran.ledger.calls
    assert (first.forecast, second.forecast) == (True, False)
    assert (second.verdict, second.code, second.traded) == ("refused", "B14_DUPLICATE", None)
    assert ran.ledger.rejections == {"B14_DUPLICATE": 1}
    assert (ran.ledger.proposed, ran.ledger.accepted) == (2, 1)
    assert PerpLedger.duplicate_code == "R12_DUPLICATE"


def test_what_cannot_be_read_or_is_a_hold_is_no_call() -> None:
    hold = {"action": "hold", "market_id": SOON, "side": "YES", "strike": 63_200, "confidence": 1, "reasoning": "wait"}
    ran = run_generated(first_tick_only(hold, {"action": "mint"}, "buy!", None, [MINT]), 3)
    assert ran.ledger.calls == []
    assert ran.ledger.rejections == {"B1_SHAPE": 3}


def test_an_unnamed_market_is_learnt_from_the_order() -> None:
    unnamed = {key: value for key, value in MINT.items() if key != "market_id"}
    ledger = PredictLedger()
    proposal = {**unnamed, "confidence": 0.61}
    verdict = {"outcome": "allowed", "code": None, "duplicate": False, "order_id": "t1", "margins": []}
    facts = {"account": "agent", "action": "mint", "side": "YES", "strike": "63200", "quantity": "3", "price": "0.5"}
    fill = Receipt("filled", NOW, SOON, "t1", {**facts, "fair": "0.49", "cost": "1.5"})
    body = {"equity": (), "flags": [], "proposals": [proposal], "verdicts": [verdict], "tick_at": NOW}
    ledger.take("tick", body, [fill])
    ledger.take("close", {"equity": ()}, [Receipt("settled", NOW + 9, SOON, "", {"price": "63200"})])
    assert (single_call(ledger).market_id, single_call(ledger).won) == (SOON, False)


@pytest.mark.parametrize(("price", "yes"), [("63200", False), ("63200.000000001", True), ("63199.99", False)])
def test_yes_wins_strictly_above_the_strike_and_a_tie_is_nos(price: str, yes: bool) -> None:
    ledger = PredictLedger()
    for side in ("YES", "NO"):
        ledger.calls.append(MarketCall(NOW, "mint", SOON, side, D(63_200), "refused", "B8_EDGE"))
    ledger._awaiting[SOON] = [0, 1]
    ledger.take("close", {"equity": ()}, [Receipt("settled", NOW + 9, SOON, "", {"price": D(price)})])
    assert [call.won for call in ledger.calls] == [yes, not yes]


def test_a_call_made_after_its_market_settled_never_has_an_outcome() -> None:
    late = {**MINT, "confidence": 1}
    ran = run_generated(lambda observation: (late,) if observation.at >= NOW + 55 * MINUTE_MS else (), 70)
    early = [call for call in ran.ledger.calls if call.at < NOW + 60 * MINUTE_MS]
    after = [call for call in ran.ledger.calls if call.at >= NOW + 60 * MINUTE_MS]
    assert early
    assert after
    assert all(call.won is not None for call in early)
    assert all((call.won, call.code, call.forecast) == (None, "B2_MARKET", False) for call in after)


@given(st.integers(10_000_000, 980_000_000), st.integers(0, FLOAT))
def test_the_other_sides_ask_is_what_the_venue_would_quote(fair: int, used: int) -> None:
    quote = make_quote(MarketTerms(), fair, used)
    call = MarketCall(NOW, "mint", SOON, "YES", D(1), "refused", "B8_EDGE", ask=usd(quote.ask), fair=usd(quote.fair))
    assert call.other_ask == (usd(quote.opposite.ask) if quote.ask < FLOAT else None)


def test_redeems_are_calls_and_no_forecasts() -> None:
    sale = {"action": "redeem", "market_id": SOON, "side": "YES", "strike": 63_200, "confidence": 1, "reasoning": "out"}
    ran = run_generated(lambda o: {NOW: (MINT,), NOW + MINUTE_MS: (sale,)}.get(o.at, ()), 4, caps=LOOSE)
    bought, sold = ran.ledger.calls
    assert (sold.action, sold.forecast, sold.minted) == ("redeem", False, False)
    assert sold.traded is not None
    assert bought.traded is not None
    assert sold.traded.quantity == bought.traded.quantity
    assert sold.traded.amount * QUOTE == int(sold.traded.amount * QUOTE)
