"""The naming audit: windows reveal no name, chance is weighed correctly, and a model with memory is found."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_models import MarketMemory, text_hash, words_of

from pitboss.audit import recognition as naming
from pitboss.audit.recognition import (
    ALPHA,
    Exam,
    RecognitionAnswer,
    RecognitionResult,
    judge,
    make_exam,
    read_answer,
)
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.core.market import Bars
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.runs.charts import Charts
from pitboss.sim.statistics.binomial import binomial_tail, permutation_p_value
from pitboss.skill.load import check_plain
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.venue import VENUE

START = parse_instant("2024-01-01")
SYMBOLS = ("BTC", "ETH", "SOL")


@cache
def skill() -> PerpSkill:
    found = check_plain(
        {
            "pitboss": 1,
            "name": "recall",
            "venue": "perp",
            "model": "llm/fake",
            "schedule": {"every": "4h"},
            "strategy": {"mode": "thesis", "thesis": "Trends go on.", "avoid": "Ranges."},
            "context": {"symbols": list(SYMBOLS), "bars_interval": "1h", "bars_lookback": 24},
        },
        PerpSkill,
    )
    assert found.skill is not None
    return found.skill


def bars_shown() -> tuple[Charts, int]:
    """What windows are made of: the bars that the skill shows, and the time between its ticks."""
    one = skill()
    return VENUE.charts(one), one.every_ms


def bars(symbol: str, interval: str, seed: int, count: int, start: int = START, scale: float = 1.0) -> Bars:
    step = {"1h": HOUR_MS, "4h": 4 * HOUR_MS, "1d": DAY_MS}[interval]
    random = np.random.default_rng([seed, sum(symbol.encode()), step])
    close = 100 * np.exp(np.cumsum(random.normal(0, 0.01, count)))
    first = np.concatenate(([100.0], close[:-1]))
    high, low = np.maximum(first, close) * 1.001, np.minimum(first, close) * 0.999
    volume = random.uniform(1, 100, count)
    at = start + step * np.arange(count, dtype=np.int64)
    first, high, low, close, volume = (column * scale for column in (first, high, low, close, volume))
    return Bars(symbol, interval, step, at, first, high, low, close, volume)


def market(
    days: int = 420, seed: int = 1, symbols: tuple[str, ...] = SYMBOLS, start: int = START, scale: float = 1.0
) -> Market:
    hours = {"1h": 24, "4h": 6, "1d": 1}
    return Market(
        {
            (symbol, interval): bars(symbol, interval, seed, days * each, start, scale)
            for symbol in symbols
            for interval, each in hours.items()
        }
    )


def exam_of(windows: int = 40, seed: int = 0, days: int = 420, **more: object) -> Exam:
    return make_exam(
        market(days, **more), *bars_shown(), SYMBOLS, START + 40 * DAY_MS, START + days * DAY_MS, windows, seed
    )  # type: ignore[arg-type]


@cache
def year_exam() -> Exam:
    return exam_of(60)


def guess_result(one: Exam, salt: str) -> RecognitionResult:
    """The result of a guesser that picks names by a hash of the prompt."""
    return judge(
        one,
        [
            RecognitionAnswer(
                one.names[text_hash(q.user, salt) % len(one.names)],
                one.periods[text_hash(q.user, "p" + salt) % len(one.periods)],
            )
            for q in one.questions
        ],
    )


def test_truth_is_drawn_from_assets_and_periods_and_the_rest_is_offered_in_vain() -> None:
    found = year_exam()
    assert found.symbols == SYMBOLS
    assert set(SYMBOLS) < set(found.names)
    assert found.grain == "month"
    assert found.periods[0] == "2024-03", "a piece of February is no period"
    assert len(found.periods) == 11
    assert {one.symbol for one in found.questions} == set(SYMBOLS)
    assert {one.period for one in found.questions} <= set(found.periods)
    assert len({(one.symbol, one.end_at) for one in found.questions}) == 60, "no window twice"


@pytest.mark.parametrize(("days", "grain"), [(420, "month"), (120, "week"), (50, "day")])
def test_periods_are_as_coarse_as_leaves_enough_to_choose_from(days: int, grain: str) -> None:
    found = exam_of(5, days=days)
    assert found.grain == grain
    assert len(found.periods) >= naming.MIN_PERIODS


def test_the_same_seed_asks_the_same_and_another_one_asks_something_else() -> None:
    assert exam_of(8) == exam_of(8)
    assert exam_of(8).questions != exam_of(8, seed=1).questions


def test_scale_and_date_of_a_window_leave_no_trace_in_its_words() -> None:
    """The same bars, 4 times as dear and 91 days later, are shown by the same rows."""
    here = exam_of(12)
    dear = exam_of(12, scale=4.0)
    assert [one.user for one in here.questions] == [one.user for one in dear.questions]
    later = make_exam(
        market(start=START + 91 * DAY_MS), *bars_shown(), SYMBOLS, START + 131 * DAY_MS, START + 511 * DAY_MS, 400, 0
    )
    rows = {one.user.partition("\n\n")[2] for one in later.questions}
    shown = {
        one.user.partition("\n\n")[2]
        for one in make_exam(
            market(), *bars_shown(), SYMBOLS, START + 40 * DAY_MS, START + 420 * DAY_MS, 400, 0
        ).questions
    }
    assert len(rows & shown) > 20, "windows of the same moment in both have the very same tables"


def test_no_true_date_or_price_is_shown() -> None:
    for one in year_exam().questions[:20]:
        tables = one.user.partition("\n\n")[2]
        assert re.search(r"20\d\d-", tables) is None
        assert not any(symbol in tables for symbol in SYMBOLS)
        last = tables.partition("\n\n")[0].splitlines()[-1].split()
        assert last[0] == "01-31" or last[1] == "23:00"
        assert float(last[5]) == pytest.approx(100)


def test_tables_are_equally_long_wherever_the_window_stands() -> None:
    lengths = {tuple(len(part.splitlines()) for part in one.user.split("### ")[1:]) for one in year_exam().questions}
    assert len(lengths) == 1


def test_too_few_bars_before_the_range_is_said() -> None:
    with pytest.raises(UserError, match="no window fits"):
        make_exam(market(1), *bars_shown(), SYMBOLS, START, START + 10 * HOUR_MS, 5, 0)


# Answers --------------------------------------------------------------------------------------------------------------


def reply(**said: object) -> ModelReply:
    import json

    return ModelReply(calls=(ToolCall("1", "name_window", json.dumps(said)),))


def test_answers_are_read_from_calls_and_from_text_and_whatever_else_is_wrong_for_a_reason() -> None:
    one = year_exam()
    period = one.periods[0]
    assert read_answer(reply(asset="btc", period=period), one) == RecognitionAnswer("BTC", period)
    assert read_answer(ModelReply(f'Well: {{"asset": "ETH", "period": "{period}"}}'), one) == RecognitionAnswer(
        "ETH", period
    )
    small = replace(one, names=("1000PEPE", "BTC", "kBONK"))
    assert [read_answer(reply(asset=result, period=period), small) for result in ("kBONK", "KBONK", "1000pepe")] == [
        RecognitionAnswer("kBONK", period),
        RecognitionAnswer("kBONK", period),
        RecognitionAnswer("1000PEPE", period),
    ]
    assert read_answer(reply(asset="GOLD", period=period), one).problem == naming.NOT_OFFERED
    assert read_answer(reply(asset="BTC"), one).problem == naming.NOT_OFFERED
    assert read_answer(ModelReply(calls=(ToolCall("1", "name_window", "{"),)), one).problem == naming.UNREADABLE
    assert read_answer(ModelReply("I do not know."), one).problem == naming.UNREADABLE
    assert read_answer(ModelReply(""), one).problem == naming.NO_ANSWER
    assert read_answer(ModelReply(problem="the model refused: no"), one).problem == naming.REFUSED
    both = ModelReply(calls=(*reply(asset="BTC", period=period).calls, *reply(asset="ETH", period=period).calls))
    assert read_answer(both, one).problem == naming.UNREADABLE


def test_unusable_answers_are_wrong_and_shown_and_missing_ones_are_left_out() -> None:
    one = year_exam()
    guesses = [RecognitionAnswer(q.symbol, q.period) for q in one.questions[:10]]
    guesses += [RecognitionAnswer(problem=naming.REFUSED)] * 40 + [RecognitionAnswer(failed=True)] * 10
    found = judge(one, guesses)
    assert (found.questions, found.failed, found.unusable) == (50, 10, {"refused": 40})
    assert found.period is not None
    assert (found.period.rate.hits, found.period.rate.of) == (10, 50)
    assert found.both.hits == 10


def test_hits_are_counted_on_each_side_of_an_instant() -> None:
    one = year_exam()
    at = parse_instant("2024-09-01")
    early = [q.end_at <= at for q in one.questions]
    found = judge(
        one,
        [RecognitionAnswer(q.symbol, q.period if known else "") for q, known in zip(one.questions, early, strict=True)],
        at,
    )
    assert found.before is not None
    assert found.after is not None
    assert (found.before.hits, found.before.of) == (sum(early), sum(early))
    assert (found.after.hits, found.after.of) == (0, 60 - sum(early))


def test_a_half_right_answer_counts_where_it_is_right() -> None:
    one = year_exam()
    found = judge(one, [RecognitionAnswer(q.symbol, "1999-01", naming.NOT_OFFERED) for q in one.questions])
    assert found.asset is not None
    assert found.period is not None
    assert (found.asset.rate.hits, found.period.rate.hits) == (60, 0)


# Luck -----------------------------------------------------------------------------------------------------------------


def test_a_memory_stands_out() -> None:
    one = year_exam()
    found = judge(one, [RecognitionAnswer(q.symbol, q.period) for q in one.questions])
    assert found.period is not None
    assert found.period.p_adjusted < 0.001
    half = judge(
        one,
        [RecognitionAnswer(q.symbol, q.period if n % 3 == 0 else one.periods[0]) for n, q in enumerate(one.questions)],
    )
    assert half.period is not None
    assert half.period.p_adjusted < ALPHA


def test_three_assets_can_be_distinguished_by_luck_once_in_six_times() -> None:
    one = year_exam()
    found = judge(one, [RecognitionAnswer(q.symbol, q.period) for q in one.questions])
    assert found.asset is not None
    assert found.asset.p_value < 1e-9
    assert found.asset.p_shuffled == pytest.approx(1 / 6)
    assert found.asset.needed is None


@pytest.mark.parametrize("favourite", ["BTC", "SOL"])
def test_always_the_same_answer_is_no_memory(favourite: str) -> None:
    one = year_exam()
    found = judge(one, [RecognitionAnswer(favourite, one.periods[3])] * 60)
    assert found.asset is not None
    assert found.period is not None
    assert min(found.asset.p_adjusted, found.period.p_adjusted) > ALPHA


def count_false_alarms(trials: int, one: Exam) -> int:
    return sum(
        min(v.p_adjusted for v in (f.asset, f.period) if v) < ALPHA
        for f in (guess_result(one, str(n)) for n in range(trials))
    )


def test_guessing_is_seldom_taken_for_memory() -> None:
    assert count_false_alarms(60, year_exam()) <= 8


@pytest.mark.proof
@pytest.mark.parametrize("days", [420, 120, 50])
def test_guessing_is_taken_for_memory_in_at_most_one_of_twenty(days: int) -> None:
    assert count_false_alarms(600, exam_of(40, days=days)) <= 600 * 0.05 + 3 * np.sqrt(600 * 0.05 * 0.95)


def shuffled_names_result(one: Exam, seed: int) -> RecognitionResult:
    """The result of a guesser that recognises which windows belong together and gives each period a random name."""
    name = dict(zip(one.periods, np.random.default_rng(seed).choice(one.periods, len(one.periods)), strict=True))
    return judge(one, [RecognitionAnswer(q.symbol, str(name[q.period])) for q in one.questions])


def count_false_names(trials: int, one: Exam) -> tuple[int, int]:
    found = [shuffled_names_result(one, seed).period for seed in range(trials)]
    return (
        sum(v is not None and v.p_adjusted < ALPHA for v in found),
        sum(v is not None and 2 * v.p_value < ALPHA for v in found),
    )


def test_to_answer_like_windows_alike_is_no_memory_either() -> None:
    weighed, counted = count_false_names(60, exam_of(60, days=120))
    assert weighed <= 8
    assert counted > 8, "counting hits alone would have been fooled: this test can fail"


@pytest.mark.proof
def test_to_answer_like_windows_alike_is_taken_for_memory_in_at_most_one_of_twenty() -> None:
    weighed, _ = count_false_names(600, exam_of(60, days=120))
    assert weighed <= 600 * 0.05 + 3 * np.sqrt(600 * 0.05 * 0.95)


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10_000))
def test_shuffled_names_are_weighed_as_if_every_order_were_tried(size: int, seed: int) -> None:
    from itertools import permutations

    counts = np.random.default_rng(seed).integers(0, 4, (size, size))
    hits = int(np.trace(counts))
    orders = list(permutations(range(size)))
    as_many = sum(sum(counts[row, order[row]] for row in range(size)) >= hits for order in orders)
    assert permutation_p_value(counts) == pytest.approx(as_many / len(orders))


def test_many_names_are_weighed_by_drawing_about_as_by_trying_all() -> None:
    counts = np.zeros((8, 8), np.int64)
    counts[0, 0] = counts[1, 1] = 1
    assert permutation_p_value(counts) == pytest.approx(1 / 56, abs=0.004)
    assert permutation_p_value(np.eye(20, dtype=np.int64)) < 0.0002


@given(st.integers(1, 80), st.integers(6, 40))
def test_the_number_that_would_stand_out_is_the_least(asked: int, options: int) -> None:
    found = naming.needed(asked, options)
    if found is not None:
        assert 2 * binomial_tail(found, asked, 1 / options) < ALPHA <= 2 * binomial_tail(found - 1, asked, 1 / options)


def test_a_model_that_has_memorised_the_bars_recognises_a_window() -> None:
    """The planted memory of the stories works on words alone."""
    known, reader = market(60), object.__new__(MarketMemory)
    reader.hours = {symbol: known.bars[symbol, "1h"] for symbol in SYMBOLS}
    one = make_exam(known, *bars_shown(), SYMBOLS, START + 40 * DAY_MS, START + 60 * DAY_MS, 12, 3)
    assert [reader.recall(q.user) for q in one.questions] == [(q.symbol, q.end_at) for q in one.questions]
    assert words_of({"messages": [{"role": "user", "content": "x"}]}) == "x"
    assert replace(one.questions[0], user="").user == ""


def test_without_an_asset_that_covers_the_range_there_is_no_window_and_the_hint_says_what_to_do() -> None:
    with pytest.raises(UserError, match="no asset has bars over the whole range") as refused:
        make_exam(market(), *bars_shown(), (), START + 40 * DAY_MS, START + 420 * DAY_MS, 10, 0)
    assert "--windows 0" in refused.value.hint
