"""The figures of a run on the predict venue: each against a slow, obvious reference on random input."""

import json
import math
from decimal import Decimal as D
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, MINUTE_MS
from pitboss.core.receipt import Receipt
from pitboss.sim.metrics import Outcome
from pitboss.sim.statistics import calibration, scores
from pitboss.venues.perp import metrics as perp
from pitboss.venues.predict.baselines import baseline_metrics, comparable
from pitboss.venues.predict.metrics import compute_predict, reference
from pitboss.venues.predict.outcome import MarketCall, PredictLedger, PredictOutcome, Traded
from venues.predict.generated_run import INITIAL, forecaster, run_generated
from venues.predict.scene import NOW

price = st.decimals(0, 1, places=9)
maybe = st.none() | price
quantity = st.decimals("0.000001", 50, places=6)


@st.composite
def calls(draw) -> MarketCall:
    """Any call a ledger could hold, and some that it could not."""
    verdict = draw(st.sampled_from(("allowed", "reduced", "refused")))
    code = draw(st.sampled_from(("", "B2_MARKET", "B5_NOT_QUOTED", "B9_SPEND_TICK"))) if verdict == "refused" else ""
    duplicate = verdict == "refused" and draw(st.booleans())
    traded, ask = None, draw(maybe)
    if verdict != "refused" and draw(st.booleans()):
        ask, held = draw(price), draw(quantity)
        traded = Traded(NOW, held, ask, ask * held)
    return MarketCall(
        NOW,
        draw(st.sampled_from(("mint", "mint", "mint", "redeem"))),
        draw(st.sampled_from([f"m{place}" for place in range(30)])),
        draw(st.sampled_from(("YES", "NO"))),
        D(63_000),
        verdict,
        code,
        draw(maybe),
        D(2),
        ask,
        draw(maybe),
        "t1" if traded else "",
        duplicate,
        False,
        traded,
        draw(st.sampled_from((None, True, False))),
    )


many = st.lists(calls(), max_size=60)


def outcome(*, calls=(), receipts=(), equity=(), **rest) -> PredictOutcome:
    at = [NOW + MINUTE_MS * (place + 1) for place in range(len(equity))]
    end = NOW + MINUTE_MS * max(1, len(equity))
    return PredictOutcome(NOW, end, MINUTE_MS, D(100), at, equity, receipts, calls=tuple(calls), **rest)


def is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int) or (type(value) is float and math.isfinite(value))


@given(many, st.integers(0, 3))
@settings(max_examples=25)
def test_every_figure_is_plain_finite_and_the_same_again(found: list[MarketCall], seed: int) -> None:
    figures = compute_predict(outcome(calls=found), seed)
    assert is_plain(figures)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert compute_predict(outcome(calls=found), seed) == figures


@given(many)
@settings(max_examples=30)
def test_scores_are_those_of_the_calls_that_can_be_scored(found: list[MarketCall]) -> None:
    figures = compute_predict(outcome(calls=found))
    mints = [one for one in found if one.action == "mint" and not one.duplicate and one.code != "B2_MARKET"]
    scored = [one for one in mints if one.confidence is not None and one.won is not None]
    for name, group in (("all", scored), ("minted", [one for one in scored if one.traded])):
        result = figures["scores"][name]
        assert result["calls"] == len(group)
        assert result["markets"] == len({one.market_id for one in group})
        assert result["brier"] == _mean([(float(one.confidence) - one.won) ** 2 for one in group])
        assert result["log_loss"] == _mean([_loss(float(one.confidence), one.won) for one in group])
        assert result["observed"] == _mean([float(one.won) for one in group])
        assert result["calibration"] == calibration.curve(
            [float(one.confidence) for one in group], [one.won for one in group]
        )
    assert figures["calls"] == len(mints)
    assert figures["calls_unresolved"] == len([one for one in mints if one.won is None])
    assert figures["calls_without_confidence"] == len([one for one in mints if one.confidence is None])
    ended = [one for one in mints if one.traded and one.won is not None]
    assert (figures["wins"], figures["minted_resolved"]) == (len([one for one in ended if one.won]), len(ended))
    assert figures["hit_rate"] == _mean([float(one.won) for one in ended])


@given(many, st.sampled_from(("ask", "normalised", "fair")))
@settings(max_examples=30)
def test_the_market_is_scored_on_exactly_the_calls_the_model_is(found: list[MarketCall], kind: str) -> None:
    result = compute_predict(outcome(calls=found), 5)["scores"]["all"]["against"][kind]
    same = []
    for one in found:
        if one.action != "mint" or one.duplicate or one.code == "B2_MARKET":
            continue
        if one.confidence is None or one.won is None:
            continue
        if kind == "ask" and one.ask is not None:
            same.append((one, float(one.ask)))
        if kind == "fair" and one.fair is not None:
            same.append((one, float(one.fair)))
        if kind == "normalised" and one.ask is not None and one.fair is not None and 0 < one.fair <= one.ask < 1:
            spread = Fraction(one.ask) - Fraction(one.fair)
            other = 1 - max(Fraction(0), Fraction(one.fair) - spread)
            same.append((one, float(Fraction(one.ask) / (Fraction(one.ask) + other))))
    assert result["calls"] == len(same)
    model = _mean([(float(one.confidence) - one.won) ** 2 for one, _ in same])
    market = _mean([(chance - one.won) ** 2 for one, chance in same])
    assert (result["model_brier"], result["market_brier"]) == (model, market)
    assert result["market_log_loss"] == _mean([_loss(chance, one.won) for one, chance in same])
    if result["skill"] is not None:
        assert result["skill"] == pytest.approx(1 - result["model_brier"] / result["market_brier"])
    else:
        assert not result["market_brier"] or result["model_brier"] / result["market_brier"] == math.inf
    names = [one.market_id for one, _ in same]
    if len(set(names)) < scores.MIN_MARKETS:
        assert result["skill_ci"] is None


@given(many)
@settings(max_examples=30)
def test_promised_and_realised_edge_equal_sums_done_by_hand(found: list[MarketCall]) -> None:
    edge = compute_predict(outcome(calls=found))["edge"]
    mints = [one for one in found if one.forecast and one.won is not None]
    known = [one for one in mints if one.confidence is not None and one.ask is not None]
    assert edge["calls"]["calls"] == len(known)
    assert edge["calls"]["promised"] == _mean([float(one.confidence) - float(one.ask) for one in known])
    assert edge["calls"]["realised"] == _mean([one.won - float(one.ask) for one in known])
    bought = [one for one in mints if one.traded]
    realised = sum(
        (Fraction(one.traded.quantity) * (int(one.won) - Fraction(one.traded.price)) for one in bought), Fraction()
    )
    sure = [one for one in bought if one.confidence is not None]
    promised = sum(
        (Fraction(one.traded.quantity) * (Fraction(one.confidence) - Fraction(one.traded.price)) for one in sure),
        Fraction(),
    )
    if bought:
        assert edge["minted"]["realised_usd"] == pytest.approx(float(realised), abs=1e-12)
        size = sum((Fraction(one.traded.quantity) for one in bought), Fraction())
        assert edge["minted"]["realised_per_contract"] == pytest.approx(float(realised / size), abs=1e-12)
    else:
        assert edge["minted"]["realised_usd"] is None
    assert edge["minted"]["promised_usd"] == (pytest.approx(float(promised), abs=1e-12) if sure else None)


trade = st.tuples(
    st.sampled_from(("mint", "redeem", "payout", "other", "move")), quantity, price, st.none() | price, quantity
)


@given(st.lists(trade, max_size=30))
def test_spend_payouts_and_the_cost_of_the_spread_are_exact_sums_over_the_accounts_own_trades(rows) -> None:
    receipts, spend, back, paid, basis = [], D(0), D(0), D(0), D(0)
    bought = sold = unknown = 0
    spread = {"mint": Fraction(), "redeem": Fraction()}
    for kind, held, paid_price, fair, amount in rows:
        facts = {"account": "agent", "side": "YES", "strike": D(63_000), "quantity": held, "price": paid_price}
        facts |= {} if fair is None else {"fair": fair}
        if kind == "move":
            receipts.append(Receipt("settled", NOW, "m", "", {"price": D(63_000)}))
            continue
        if kind == "other":
            receipts.append(
                Receipt("filled", NOW, "m", "t", {**facts, "account": "else", "action": "mint", "cost": amount})
            )
            continue
        if kind == "mint":
            receipts.append(Receipt("filled", NOW, "m", "t", {**facts, "action": "mint", "cost": amount}))
            spend += amount
            bought += 1
        else:
            name = "filled" if kind == "redeem" else "settled"
            receipts.append(
                Receipt(name, NOW, "m", "t", {**facts, "action": "redeem", "payout": amount, "basis": held})
            )
            basis += held
            sold += kind == "redeem"
            back, paid = back + (amount if kind == "redeem" else 0), paid + (amount if kind == "payout" else 0)
        if kind in spread and fair is None:
            unknown += 1
        elif kind in spread:
            apart = (Fraction(paid_price) - Fraction(fair)) * Fraction(held)
            spread[kind] += apart if kind == "mint" else -apart
    result = compute_predict(outcome(receipts=receipts))
    assert (result["mints"], result["redeems"], result["payouts"]) == (
        bought,
        sold,
        len([1 for row in rows if row[0] == "payout"]),
    )
    assert (result["total_spend_usd"], result["total_redeemed_usd"], result["total_payout_usd"]) == tuple(
        map(float, (spend, back, paid))
    )
    assert result["realised_pnl_usd"] == float(back + paid - basis)
    cost = result["spread_cost"]
    assert cost["mints_usd"] == pytest.approx(float(spread["mint"]), abs=1e-12)
    assert cost["redeems_usd"] == pytest.approx(float(spread["redeem"]), abs=1e-12)
    assert cost["total_usd"] == pytest.approx(float(spread["mint"] + spread["redeem"]), abs=1e-12)
    assert cost["unknown_fills"] == unknown
    assert result["funnel"]["fills"] == bought + sold


@given(st.lists(st.floats(1, 200), max_size=300), st.integers(0, 3))
@settings(max_examples=15)
def test_return_drawdown_and_sharpe_are_those_of_the_other_venue(equity: list[float], seed: int) -> None:
    ours = compute_predict(outcome(equity=equity), seed)
    shared = outcome(equity=equity)
    theirs = perp.compute(
        Outcome(shared.from_at, shared.to_at, MINUTE_MS, D(100), shared.equity_at, shared.equity_usd), seed
    )
    both = set(ours) & set(theirs) - {"warnings", "funnel"}
    assert {"total_return_pct", "sharpe", "max_drawdown_pct", "total_return_ci", "rejections_by_rule"} <= both
    assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}
    assert ours["pnl_usd"] == ours["final_equity_usd"] - 100


def test_a_longer_run_has_the_other_venues_intervals_too() -> None:
    rng = np.random.default_rng(1)
    equity = (100 * np.cumprod(1 + rng.normal(0, 0.01, 40))).tolist()
    at = [NOW + DAY_MS * (place + 1) for place in range(40)]
    shared = (NOW, NOW + 40 * DAY_MS, DAY_MS, D(100), at, equity)
    ours, theirs = compute_predict(PredictOutcome(*shared), 3), perp.compute(Outcome(*shared), 3)
    assert ours["total_return_ci"] == theirs["total_return_ci"] is not None
    assert ours["sharpe_ci"] == theirs["sharpe_ci"] is not None


def test_a_run_cannot_start_with_nothing() -> None:
    with pytest.raises(InvariantError):
        compute_predict(PredictOutcome(NOW, NOW + 1, MINUTE_MS, D(0), [], []))


def test_money_is_accounted_for_to_the_last_unit_over_a_whole_generated_run() -> None:
    ran = run_generated(forecaster(3), 240, silent=lambda place: place % 9 == 4)
    result = compute_predict(ran.outcome(), 1)
    assert result["mints"] > 50
    assert result["redeems"] > 0
    assert result["payouts"] > 20
    last = json.loads(ran.records[-1].covered)["after"]
    cash = INITIAL - result["total_spend_usd"] + result["total_redeemed_usd"] + result["total_payout_usd"]
    assert float(last["cash"]) == pytest.approx(cash, abs=1e-9)
    held = sum(D(one["cost"]) for one in last["positions"])
    assert result["realised_pnl_usd"] == pytest.approx(cash + float(held) - INITIAL, abs=1e-9)
    assert 0 < result["spread_cost"]["total_usd"] < 0.05 * result["total_spend_usd"]
    assert result["scores"]["all"]["calls"] > result["scores"]["minted"]["calls"] > 50


def test_one_who_knows_better_than_the_market_has_skill_and_one_who_guesses_has_none() -> None:
    rng = np.random.default_rng(2)
    found = []
    for place in range(400):
        truth = rng.uniform(0.1, 0.9)
        fair = min(0.9, max(0.1, truth + rng.normal(0, 0.25)))
        found.append((truth, fair, bool(rng.random() < truth), f"m{place}"))

    def told(chance):
        made = [
            MarketCall(NOW, "mint", market, "YES", D(1), "refused", "B10_SPEND_DAY", confidence=D(repr(chance(truth))),
                 ask=D(repr(fair + 0.01)), fair=D(repr(fair)), won=won)
            for truth, fair, won, market in found
        ]  # fmt: skip
        return compute_predict(outcome(calls=made), 1)["scores"]["all"]["against"]["normalised"]

    knows, guesses = told(lambda truth: truth), told(lambda truth: rng.random())
    assert knows["skill_ci"][0] > 0
    assert guesses["skill_ci"][1] < 0
    assert knows["skill_ci"][0] < knows["skill"] < knows["skill_ci"][1]


@given(many)
@settings(max_examples=20)
def test_baselines_are_scored_on_one_and_the_same_set_of_calls(found: list[MarketCall]) -> None:
    result = baseline_metrics(outcome(calls=found))["forecasts"]
    same = [
        one for one in found if one.forecast and None not in (one.confidence, one.won) and one.other_ask is not None
    ]
    assert comparable(found) == same
    assert result["calls"] == len(same)
    chances = {
        "model": [float(one.confidence) for one in same],
        "market": [float(Fraction(one.ask) / (Fraction(one.ask) + Fraction(one.other_ask))) for one in same],
        "market_ask": [float(one.ask) for one in same],
        "coin": [0.5 for _ in same],
        "always_no": [1.0 if one.side == "NO" else 0.0 for one in same],
    }
    for name, given_chances in chances.items():
        assert result["all"][name]["brier"] == _mean(
            [(p - one.won) ** 2 for p, one in zip(given_chances, same, strict=True)]
        )
        assert result["all"][name]["log_loss"] == _mean(
            [_loss(p, one.won) for p, one in zip(given_chances, same, strict=True)]
        )


def test_heuristics_are_reported_by_their_trading_over_the_runs_range() -> None:
    ran, other = run_generated(forecaster(3), 90), run_generated(forecaster(4), 90)
    result = baseline_metrics(ran.outcome(), {"alternate": other.ledger, "no_only": PredictLedger()})["trading"]
    whole = compute_predict(ran.outcome(other.ledger))
    assert result["alternate"]["pnl_usd"] == whole["pnl_usd"]
    assert result["alternate"]["hit_rate"] == whole["hit_rate"]
    assert result["no_only"]["mints"] == 0


def test_without_a_price_there_is_no_reference() -> None:
    bare = MarketCall(NOW, "mint", "m", "YES", D(1), "refused")
    assert [reference(bare, kind) for kind in ("ask", "normalised", "fair")] == [None, None, None]


def test_a_run_that_bought_nothing_says_why() -> None:
    result = compute_predict(outcome(ticks=9, proposed=2, rejections_by_rule={"B8_EDGE": 2}, decisions_asked=9))
    assert result["warnings"][0].startswith("Nothing was bought: 9 ticks")
    assert (result["hit_rate"], result["scores"]["all"]["brier"]) == (None, None)


def _mean(values: list[float]):
    return pytest.approx(sum(values) / len(values), rel=1e-9, abs=1e-12) if values else None


def _loss(chance: float, won: bool) -> float:
    return -math.log(min(0.999, max(0.001, chance if won else 1 - chance)))
