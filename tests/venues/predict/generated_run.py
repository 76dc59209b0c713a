"""A generated run of the predict venue for the tests of its metrics and its report: ticks, records and both ledgers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.core.curve import Piece
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.money import text
from pitboss.core.snapshot import Record
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.ladder import first_rung
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.outcome import PredictLedger, PredictOutcome
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import QUOTE, Side, contracts, usd
from pitboss.venues.predict.svi import FLOAT
from venues.predict import predict_ticks
from venues.predict.scene import NOW

INITIAL = 100
LOOSE = PredictCaps(
    max_spend_per_day=10_000 * QUOTE, max_total_spend=10_000 * QUOTE, max_exposure_per_expiry=200 * QUOTE
)


@dataclass
class GeneratedRun:
    """A finished run: its records, and the ledger that was kept meanwhile."""

    records: list[Record]
    ledger: PredictLedger
    to_at: Instant

    def outcome(self, ledger: PredictLedger | None = None) -> PredictOutcome:
        return (ledger or self.ledger).outcome(NOW, self.to_at, MINUTE_MS, Decimal(INITIAL))


def run_generated(
    answers: Callable[[PredictObservation], Sequence[Any]] | Decider,
    minutes: int,
    seed: int = 7,
    caps: PredictCaps = LOOSE,
    silent: Callable[[int], bool] = lambda place: False,
    later: float = 1.0,
) -> GeneratedRun:
    """A tick a minute; where `silent`, prices come twenty seconds before it and ten after, so that decisions
    wait; the second one is `later` times the first."""
    decider = predict_ticks.ScriptedDecider(answers) if callable(answers) else answers
    given = predict_ticks.ports(decider, caps, build_prompts=False)
    state, ledger, records = predict_ticks.new_state(INITIAL), PredictLedger(), []
    late: tuple[Any, ...] = ()
    for place, spot in enumerate(predict_ticks.price_path(seed, minutes)):
        at = NOW + place * MINUTE_MS
        happened = predict_ticks.WorldEvents(late)
        late = ()
        state, news = predict_ticks.state_after_update(state, given, spot, at - 20_000 if silent(place) else at)
        happened = replace(news, receipts=(*happened.receipts, *news.receipts))
        worth = text(contracts(equity(state.world.world)))
        point: Piece = (at + MINUTE_MS, MINUTE_MS, worth, 1)
        done = predict_ticks.tick_without_update(state, given, at, replace(happened, equity=(point,)))
        state = done.state
        ledger.take("tick", done.covered, done.receipts, done.decision.cost_usd, done.decision.saved_usd)
        records.append(done.record)
        if silent(place):
            state, news = predict_ticks.state_after_update(state, given, int(spot * later), at + 10_000)
            late = tuple(news.receipts)
    return GeneratedRun(records, ledger, NOW + minutes * MINUTE_MS)


def forecaster(seed: int, bias: float = 0.05, act: float = 1.0) -> Callable[[PredictObservation], Sequence[Any]]:
    """Buys near the money with a confidence around the market's price; now and then it redeems, errs or overreaches."""
    rng = Random(seed)

    def decide(observation: PredictObservation) -> Sequence[Any]:
        world, at = observation.desk.world, observation.at
        if rng.random() > act:
            return ()
        if not (markets := observation.markets()[:4]):
            return ()
        market = rng.choice(markets)
        side: Side = rng.choice(("YES", "NO"))
        rung = first_rung(world, market.id, side, at, count=rng.choice((0, 3)))
        if rung is None:
            return ()
        strike = usd(rung.strike) + rng.choice((0, 0, 50, -50))
        chance = min(0.99, max(0.01, rung.ask(side) / FLOAT + rng.gauss(bias, 0.08)))
        mint = {
            "action": "mint",
            "market_id": market.id,
            "side": side,
            "strike": strike,
            "spend": rng.choice((1, 2, 2, 5)),
            "confidence": Decimal(repr(round(chance, 3))),
            "reasoning": "the last hour moved that way",
        }
        odd = rng.random()
        if odd < 0.05:
            return ({**mint, "market_id": "BTC-nowhere"},)
        if odd < 0.10:
            return ({**mint, "strike": strike + Decimal("0.5")},)
        if odd < 0.14:
            return (mint, mint)
        if odd < 0.18:
            return ({key: value for key, value in mint.items() if key != "confidence"},)
        if odd < 0.20:
            return ({"action": "mint", "wish": "<script>alert(1)</script>"},)
        held = observation.portfolio().positions
        if odd < 0.26 and held:
            one = held[0]
            sale = {"action": "redeem", "market_id": one.market_id, "side": one.side, "strike": one.strikes[0]}
            return ({**sale, "confidence": Decimal("0.4"), "reasoning": "take it back"},)
        return (mint,)

    return decide
