"""Runs in which a symbol is listed late or delisted early: it is neither traded nor revealed outside its listing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import DAY_MS, MINUTE_MS, parse_instant
from pitboss.core.intent import Decision
from pitboss.core.market import Listing
from pitboss.sim.metrics import Outcome
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import lookup
from pitboss.venues.perp import baselines as baseline
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import Row, build, make_market, plain_skill, play
from pitboss.venues.perp.venue import VENUE

STEP = 5 * MINUTE_MS
FROM = parse_instant("2025-06-04")
BARS = 600
TO = FROM + BARS * STEP
EARLY, LATE = 200, 400
SYMBOLS = ("BTC", "SOL")


def rows(start: int, stop: int, price: float) -> list[Row]:
    """A wave with a drift, so that a moving average is crossed now and then."""
    found: list[Row] = []
    for place in range(start, stop):
        opened = price * (1 + 0.03 * ((place * 7) % 90 - 45) / 45)
        closed = price * (1 + 0.03 * (((place + 1) * 7) % 90 - 45) / 45)
        found.append((FROM + place * STEP, opened, max(opened, closed) * 1.001, min(opened, closed) * 0.999, closed))
    return found


def market(first: int, last: int, listing: Listing | None = None) -> Market:
    """BTC all the way and from before, SOL between two bars."""
    made = make_market({"BTC": rows(-100, BARS, 60_000), "SOL": rows(first, last, 150)})
    return made if listing is None else replace(made, listings={"SOL": listing})


def script(made: Market, model: str = "policy/sma_cross", **more: Any) -> PerpCourse:
    context = {"symbols": list(SYMBOLS), "bars_interval": "5m", "bars_lookback": 20, "higher_timeframes": []}
    request = PerpRequest(plain_skill(SYMBOLS, "15m", context=context), FROM, TO, model=model, **more)
    return build(request, made)


BEGINS = Listing("SOL", FROM + EARLY * STEP)
ENDS = Listing("SOL", None, FROM + LATE * STEP)


@pytest.mark.parametrize(
    "policy",
    [
        "sma_cross",
        "random",
        "buy_and_hold",
        *(pytest.param(other, marks=pytest.mark.proof) for other in ("momentum", "mean_reversion")),  # signals too
    ],
)
@pytest.mark.parametrize(("first", "last", "listing"), [(EARLY, BARS, BEGINS), (-100, LATE, ENDS)])
def test_leaping_and_asking_at_every_tick_agree_although_a_symbol_comes_late_or_goes_early(
    policy: str, first: int, last: int, listing: Listing
) -> None:
    leaping = script(market(first, last, listing), f"policy/{policy}")
    assert leaping.planned
    asked = replace(leaping, planned=False)
    assert fills(leaping) == fills(asked)
    assert policy == "mean_reversion" or {symbol for symbol, _ in fills(leaping)} >= {"BTC"}


def fills(one: PerpCourse) -> list[tuple[str, int]]:
    _, _, ledger = play(one)
    return [(receipt.symbol, receipt.at) for receipt in ledger.receipts if receipt.kind == "filled"]


def test_a_symbol_is_traded_only_while_it_is_listed() -> None:
    later = [at for symbol, at in fills(script(market(EARLY, BARS, BEGINS))) if symbol == "SOL"]
    assert later
    assert min(later) >= FROM + EARLY * STEP
    sooner = [at for symbol, at in fills(script(market(-100, LATE, ENDS))) if symbol == "SOL"]
    assert sooner
    assert max(sooner) < FROM + LATE * STEP


class Stubborn:
    """Opens SOL at every tick."""

    name = "stubborn"

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        intent = {"action": "open_long", "symbol": "SOL", "size_usd": 100, "reason": "now"}
        verdict = judge(intent)
        return Decision((intent,), text=f"{verdict.outcome} {verdict.code or ''}")


def test_an_open_of_a_symbol_that_is_not_listed_is_out_of_scope_and_the_judge_says_the_same() -> None:
    made = script(market(-100, BARS, Listing("SOL", FROM + EARLY * STEP, FROM + LATE * STEP)))
    stubborn = replace(made, planned=False, ports=replace(made.ports, decider=Stubborn()))
    _, journal, _ = play(stubborn)
    for record in journal.records():
        if record.kind != "tick":
            continue
        body = codec.loads(record.covered)
        verdict = body["verdicts"][0]
        listed = FROM + EARLY * STEP <= record.tick_at < FROM + LATE * STEP
        assert (verdict["code"] == "R2_SCOPE") is not listed
        assert body["text"].endswith("R2_SCOPE") is not listed
        if not listed:
            assert verdict["detail"] == "the venue does not list SOL at this time"


def observed(made: Market, place: int) -> Observation:
    one = script(made)
    at = FROM + place * STEP
    return one.ports.observe(first_state(replace(one, tick_at=one.tick_at[one.tick_at == at])), at)


def told(observation: Observation, made: Market) -> str:
    return script(made).ports.context.prompt(observation).user


def test_the_prompt_says_that_a_symbol_is_not_listed_and_shows_nothing_of_it() -> None:
    made = market(-100, BARS, Listing("SOL", FROM + EARLY * STEP, FROM + LATE * STEP, FROM + (LATE - 30) * STEP))
    early, listed = told(observed(made, EARLY - 2), made), told(observed(made, EARLY + 1), made)
    announced, late = told(observed(made, LATE - 10), made), told(observed(made, LATE + 2), made)
    assert "### SOL\nnot listed yet\n" in early
    assert "### SOL\nno longer listed\n" in late
    for text in (early, late):
        assert text.count("5m bars") == 1
        assert "- SOL: none (R2_SCOPE: not listed at this time)" in text
    assert listed.count("5m bars") == 2
    assert "stops listing" not in listed
    assert "the venue stops listing it at 2025-06-05T09:20:00Z" in announced


def ask(tool: str, arguments: Mapping[str, Any], observation: Observation) -> str:
    return asyncio.run(lookup(VENUE.tools(), tool).build(ToolContext(observation, "write")).call(dict(arguments)))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("fetch_recent_bars", {"symbol": "SOL", "interval": "5m", "lookback": 5}),
        ("compute_indicators", {"symbol": "SOL", "interval": "5m", "indicators": "rsi"}),
        ("get_funding_rate", {"symbol": "SOL"}),
        ("get_open_interest", {"symbol": "SOL"}),
        ("compute_var", {"horizon": 1, "confidence": 95, "symbol": "SOL", "side": "long", "size_usd": 100}),
    ],
)
def test_tools_answer_that_a_symbol_is_not_listed_at_this_time(tool: str, arguments: Mapping[str, Any]) -> None:
    made = market(-100, BARS, BEGINS)
    with pytest.raises(ToolFailed, match="SOL is not listed at this time"):
        ask(tool, arguments, observed(made, EARLY - 2))


def test_a_position_in_a_symbol_that_is_gone_is_still_reported() -> None:
    made = market(-100, BARS, ENDS)
    assert "not listed" not in ask("get_current_position", {"symbol": "SOL"}, observed(made, LATE + 2))


def outcome(made: Market) -> Outcome:
    return baseline.outcomes(script(made))["buy_and_hold"]


def test_buy_and_hold_leaves_the_part_of_a_symbol_that_is_not_listed_yet_in_cash() -> None:
    late = outcome(market(EARLY, BARS, BEGINS))
    assert {receipt.symbol for receipt in late.receipts} == {"BTC"}
    spent = sum(Decimal(str(receipt.facts["size"])) * 60_000 for receipt in late.receipts if receipt.kind == "accepted")
    assert Decimal(4_500) < spent < Decimal(5_500)


@pytest.mark.parametrize("far", [EARLY, EARLY + 100])
def test_what_is_decided_before_a_listing_does_not_depend_on_when_it_comes(far: int) -> None:
    def before(made: Market) -> Sequence[Any]:
        _, journal, _ = play(replace(script(made, "policy/momentum"), planned=False))
        return [record.covered for record in journal.records() if record.tick_at < FROM + EARLY * STEP]

    one = before(market(EARLY, BARS, Listing("SOL", FROM + EARLY * STEP)))
    assert len(one) > 50
    assert one == before(market(far, BARS, Listing("SOL", FROM + far * STEP)))


def test_what_is_held_when_a_symbol_goes_stays_in_the_account_at_its_last_price() -> None:
    made = script(market(-100, LATE, ENDS), "policy/buy_and_hold")
    state, _, _ = play(made)
    assert state.world.marks["SOL"] == Decimal(repr(rows(LATE - 1, LATE, 150)[0][4]))
    assert state.world.positions["SOL"].size > 0
    assert (TO - FROM) > DAY_MS


def test_bars_and_funding_from_after_the_end_of_a_listing_move_nothing_that_is_held() -> None:
    ends_at = FROM + LATE * STEP
    paid = make_market({}, funding={"SOL": [(ends_at - 3_600_000, 0.001), (ends_at + 3_600_000, 0.5)]})
    whole, cut = (replace(market(-100, last, ENDS), points=paid.points) for last in (BARS, LATE))
    assert len(whole.bars["SOL", "5m"]) > len(cut.bars["SOL", "5m"])
    (one, _, result), (other, _, said) = (play(script(each, "policy/buy_and_hold")) for each in (whole, cut))
    assert one.world.positions["SOL"].size > 0
    assert one.world == other.world
    assert result.receipts == said.receipts
    assert [receipt.at for receipt in result.receipts if receipt.kind == "funded"] == [ends_at - 3_600_000]
