"""The recognition test: a model is shown bars without name, date or scale and asked for the asset and the period.

The windows are drawn uniformly from the assets and the periods, and each question is asked separately: without memory a
model names the period correctly once in as many times as there are periods, however it guesses. Hits are tested twice.
If the answers are independent guesses, their number is binomial. If similar windows get similar answers, a few lucky
names make many hits; so the names are also shuffled among the periods, which keeps the grouping of answers. The larger
probability counts. Less is shown than in a blind run: weekdays are hidden too, and prices and volumes have one scale. The
movement of an asset remains visible, which can identify the asset without memory of these bars.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.agent.terminal import objects
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import Bars, Ints
from pitboss.core.noun import noun
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolSpec
from pitboss.prompt.render import bar_header, bar_rows
from pitboss.runs.charts import Charts
from pitboss.sim.statistics.binomial import HitRate, binomial_tail, hit_rate, holm, permutation_p_value

EXTRA_NAMES = ("ADA", "ARB", "AVAX", "BNB", "BTC", "DOGE", "DOT", "ETH", "LINK", "LTC", "SOL", "XRP")
"""Names that are offered in addition to those of the data. They are never right, so they cannot lower the chance rate."""
MAX_NAMES = 12
MIN_PERIODS = 6
MAX_PERIODS = 120
MIN_PERIOD_SHARE = 0.85
"""The share of the median number of ticks that a period must have; the shortest month has more."""
TRIES = 50
ALPHA = 0.05
SHOWN_CLOSE, SHOWN_VOLUME = 100.0, 1_000.0
NEVER = 1 << 62
LAST_DAY = int(datetime(2001, 1, 31, tzinfo=UTC).timestamp() * 1000)

SYSTEM = (
    "You know the history of markets well. You are shown a piece of it from which its name, its dates and its scale have "
    "been taken away. Say which asset it is and when it was. If you are not sure, give your best guess: an answer that "
    "is left out counts as wrong. Nothing is traded here."
)

Grain = Literal["month", "week", "day"]


@noun
class Question:
    """One window and its true asset and period."""

    symbol: str
    period: str
    end_at: Instant
    user: str


@noun
class Exam:
    """The questions, and the options they were drawn from."""

    questions: tuple[Question, ...]
    symbols: tuple[str, ...]
    names: tuple[str, ...]
    periods: tuple[str, ...]
    grain: Grain
    tool: ToolSpec


@noun
class RecognitionAnswer:
    """A model's answer; `problem` says why it cannot be used. `failed`: there was no reply."""

    asset: str = ""
    period: str = ""
    problem: str = ""
    failed: bool = False


@noun
class ChanceVerdict:
    """Hits compared with chance. The probabilities of at least as many hits by chance: `p_value` if answers are independent
    guesses, `p_shuffled` if similar windows get similar answers. `p_adjusted` is the larger one, adjusted for two tests."""

    rate: HitRate
    options: int
    chance: float
    p_value: float
    p_shuffled: float
    p_adjusted: float
    needed: int | None
    """The least number of hits that is significant; None if even all hits would not be."""


@noun
class RecognitionResult:
    """The result of an exam. A verdict is None if there was only one option."""

    questions: int
    failed: int
    asset: ChanceVerdict | None
    period: ChanceVerdict | None
    both: HitRate
    unusable: Mapping[str, int] = field(default_factory=dict[str, int])
    before: HitRate | None = None
    """Correct periods among the windows that end by an instant, and `after` among the others; not tested."""
    after: HitRate | None = None


# The questions --------------------------------------------------------------------------------------------------------


def make_exam(
    market: Market,
    charts: Charts,
    tick_ms: int,
    symbols: Sequence[str],
    from_at: Instant,
    to_at: Instant,
    windows: int,
    seed: int,
) -> Exam:
    """Draw windows: an asset, a period and an end inside it, each uniformly. They end at ticks of the skill."""
    if not symbols:
        raise UserError(
            "no asset has bars over the whole range, so no window can be drawn", "--windows 0 asks for none"
        )
    first, *higher = charts.tables
    ends = np.arange(-(-from_at // tick_ms) * tick_ms, to_at, tick_ms, dtype=np.int64)
    ends = ends[ends >= _ready_at(market, symbols, *first)]
    if not len(ends):
        raise UserError(
            "no window fits: there are not enough bars before any tick of the range", "choose a later --from, or --to"
        )
    # A table that is shorter at the beginning of the data would reveal its period, so it is shown always or never.
    tables = [first, *(table for table in higher if _ready_at(market, symbols, *table) <= int(ends[0]))]
    grain, periods = _periods(ends)
    names = tuple(sorted({*symbols, *EXTRA_NAMES[: max(0, MAX_NAMES - len(set(symbols)))]}))
    random = Generator(PCG64([seed, windows, 7]))
    questions: list[Question] = []
    windows_used: set[tuple[str, int]] = set()
    for _ in range(windows):
        symbol, period, end_at = _draw_window(random, symbols, periods)
        for _ in range(TRIES):
            if (symbol, end_at) not in windows_used:
                break
            symbol, period, end_at = _draw_window(random, symbols, periods)  # the same window must not count twice
        windows_used.add((symbol, end_at))
        user = _user(market, symbol, end_at, tables, names, grain, list(periods))
        questions.append(Question(symbol, period, end_at, user))
    return Exam(tuple(questions), tuple(symbols), names, tuple(periods), grain, _tool(names, list(periods)))


def _draw_window(random: Generator, symbols: Sequence[str], periods: Mapping[str, Ints]) -> tuple[str, str, Instant]:
    period = list(periods)[int(random.integers(len(periods)))]
    return symbols[int(random.integers(len(symbols)))], period, int(random.choice(periods[period]))


def _ready_at(market: Market, symbols: Sequence[str], interval: str, most: int) -> Instant:
    """The instant from which every symbol has `most` closed bars."""
    ready = 0
    for symbol in symbols:
        bars = market.bars[symbol, interval]
        if len(bars) < most:
            return NEVER
        ready = max(ready, int(bars.open_at[most - 1]) + bars.interval_ms)
    return ready


def _periods(ends: Ints) -> tuple[Grain, dict[str, Ints]]:
    """The ends grouped by the coarsest calendar unit that gives enough periods."""
    periods: dict[str, list[int]] = {}
    grain: Grain = "day"
    for grain in ("month", "week", "day"):
        periods = {}
        for end in ends.tolist():
            periods.setdefault(_period(end - 1, grain), []).append(end)  # midnight belongs to the day that ends
        median = float(np.median([len(period_ends) for period_ends in periods.values()]))
        # A partial period at the edge of the range would be recognisable by its hours.
        periods = {name: group for name, group in periods.items() if len(group) >= MIN_PERIOD_SHARE * median}
        if len(periods) >= MIN_PERIODS:
            break
    return grain, {name: np.asarray(periods[name], np.int64) for name in list(periods)[-MAX_PERIODS:]}


def _period(at: Instant, grain: Grain) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    if grain == "month":
        return f"{moment:%Y-%m}"
    if grain == "week":
        moment -= timedelta(days=moment.weekday())
    return f"{moment:%Y-%m-%d}"


def _user(
    market: Market,
    symbol: str,
    end_at: Instant,
    table_sizes: Sequence[tuple[str, int]],
    names: Sequence[str],
    grain: Grain,
    periods: Sequence[str],
) -> str:
    view = market.view(end_at)
    tables = [(interval, view.bars(symbol, interval, most)) for interval, most in table_sizes]
    first = tables[0][1]
    price = SHOWN_CLOSE / float(first.close[-1])
    middle = float(np.median(first.volume))
    volume = SHOWN_VOLUME / middle if middle > 0 else 1.0
    shift_ms = LAST_DAY - (end_at - 1) // DAY_MS * DAY_MS
    unit = {"month": "month", "week": "week that begins on", "day": "day"}[grain]
    lines = [
        "## Which asset, and when?",
        f"Closed bars of one of these assets, oldest first: {', '.join(names)}.",
        f"The last one closed in one of these, each the {unit}: {', '.join(periods)}.",
        "The time of a bar is its open in UTC. Hours are true; days are moved so that the last one reads 01-31. Prices "
        f"are multiplied so that the last close is {SHOWN_CLOSE:g}, volumes so that the middle one is {SHOWN_VOLUME:g}.",
    ]
    for interval, bars in tables:
        lines += ["", f"### {interval} bars, last {len(bars)}", *_table(bars, shift_ms, price, volume)]
    return "\n".join(lines)


def _table(bars: Bars, shift_ms: int, price: float, volume: float) -> list[str]:
    first, high, low, close = ((column * price).tolist() for column in (bars.open, bars.high, bars.low, bars.close))
    rows = bar_rows((bars.open_at + shift_ms).tolist(), first, high, low, close, (bars.volume * volume).tolist())
    return [bar_header(), *rows]


def _tool(names: Sequence[str], periods: Sequence[str]) -> ToolSpec:
    return ToolSpec(
        "name_window",
        "Say which asset the bars are of and when the last of them closed.",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["asset", "period"],
            "properties": {
                "asset": {"type": "string", "enum": list(names), "description": "The asset."},
                "period": {"type": "string", "enum": list(periods), "description": "When the last bar closed."},
            },
        },
    )


def request(
    exam: Exam, question: Question, settings: Mapping[str, Any], forcing: Literal["call", "schema"]
) -> ModelRequest:
    """The model request of a question."""
    user = question.user
    if forcing == "schema":
        user += '\n\nAnswer with one JSON object and nothing else: {"asset": …, "period": …}.'
    return ModelRequest(SYSTEM, (Message("user", user),), (exam.tool,), exam.tool.name, settings, forcing)


# The answers ----------------------------------------------------------------------------------------------------------

REFUSED, NO_ANSWER, UNREADABLE, NOT_OFFERED = "refused", "no answer", "not readable", "not on the list"


def read_answer(reply: ModelReply, exam: Exam) -> RecognitionAnswer:
    """Read a reply. An unusable answer states the reason and counts as wrong."""
    answers = [call.arguments for call in reply.calls if call.name == exam.tool.name]
    if not answers:
        answers = objects(reply.text) or []
    if not answers:
        refused = "refused" in reply.problem or "blocked" in reply.problem
        return RecognitionAnswer(
            problem=REFUSED if refused else UNREADABLE if reply.text.strip() and not reply.problem else NO_ANSWER
        )
    try:
        plain = codec.loads(answers[0])
    except (ValueError, RecursionError):
        return RecognitionAnswer(problem=UNREADABLE)
    if len({text.strip() for text in answers}) > 1 or not isinstance(plain, dict):
        return RecognitionAnswer(problem=UNREADABLE)
    raw_asset, period = (str(plain.get(name, "")).strip() for name in ("asset", "period"))
    asset = {name.upper(): name for name in exam.names}.get(raw_asset.upper(), "")  # some names have lower-case letters
    return RecognitionAnswer(
        asset or raw_asset.upper(), period, "" if asset and period in exam.periods else NOT_OFFERED
    )


def judge(exam: Exam, guesses: Sequence[RecognitionAnswer], at: Instant | None = None) -> RecognitionResult:
    """Count the hits and compare them with chance; those up to `at` and after it are also counted separately.

    Questions without a reply are left out.
    """
    pairs = [(question, guess) for question, guess in zip(exam.questions, guesses, strict=False) if not guess.failed]
    assets = sum(guess.asset == question.symbol for question, guess in pairs)
    periods = sum(guess.period == question.period for question, guess in pairs)
    both = sum(guess.asset == question.symbol and guess.period == question.period for question, guess in pairs)
    unusable: dict[str, int] = {}
    for _, guess in pairs:
        if guess.problem:
            unusable[guess.problem] = unusable.get(guess.problem, 0) + 1
    asset, period = _verdicts(
        [
            (assets, _confusion_matrix(exam.symbols, [(question.symbol, guess.asset) for question, guess in pairs])),
            (periods, _confusion_matrix(exam.periods, [(question.period, guess.period) for question, guess in pairs])),
        ],
        len(pairs),
    )
    failed = sum(guess.failed for guess in guesses)
    by_side: list[HitRate | None] = [None, None]
    if at is not None:
        sides = [
            [guess.period == question.period for question, guess in pairs if (question.end_at <= at) is is_before]
            for is_before in (True, False)
        ]
        by_side = [hit_rate(sum(side), len(side)) for side in sides]
    return RecognitionResult(
        len(pairs), failed, asset, period, hit_rate(both, len(pairs)), dict(sorted(unusable.items())), *by_side
    )


def _confusion_matrix(options: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Ints:
    """Counts by true option (row) and answered option (column). Answers that are never right are left out, because
    shuffling cannot make them right either."""
    index = {name: number for number, name in enumerate(options)}
    counts = np.zeros((len(options), len(options)), np.int64)
    for truth, answer in pairs:
        if answer in index:
            counts[index[truth], index[answer]] += 1
    return counts


def _verdicts(tests: Sequence[tuple[int, Ints]], questions: int) -> list[ChanceVerdict | None]:
    usable = [index for index, (_, counts) in enumerate(tests) if len(counts) > 1 and questions]
    p_values = {index: binomial_tail(tests[index][0], questions, 1 / len(tests[index][1])) for index in usable}
    p_shuffled = {index: permutation_p_value(tests[index][1]) for index in usable}
    p_adjusted = dict(zip(usable, holm([max(p_values[index], p_shuffled[index]) for index in usable]), strict=True))
    verdicts: list[ChanceVerdict | None] = []
    for index, (hits, counts) in enumerate(tests):
        if index not in p_adjusted:
            verdicts.append(None)
            continue
        options = len(counts)
        least = needed(questions, options)
        verdicts.append(
            ChanceVerdict(
                hit_rate(hits, questions),
                options,
                1 / options,
                p_values[index],
                p_shuffled[index],
                p_adjusted[index],
                least,
            )
        )
    return verdicts


def needed(questions: int, options: int) -> int | None:
    """The least number of hits that is significant, adjusted for two tests."""
    if 2 / math.factorial(min(options, questions, 20)) >= ALPHA:
        return None  # with so few options a shuffle is often right by chance
    return next(
        (hits for hits in range(questions + 1) if 2 * binomial_tail(hits, questions, 1 / options) < ALPHA), None
    )
