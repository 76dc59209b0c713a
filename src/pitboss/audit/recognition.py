"""Questions that only memory can answer: here are some bars without name, date or scale; which asset is it, and when?

Truth is drawn by us, evenly from the assets and from the periods, and each question is asked by itself: whoever does not
recognise the bars is right about a period once in as many times as there are periods, however they guess. Hits are
weighed twice. If every answer is a guess of its own, their number is binomial. If like windows are answered alike, a few
lucky names make many hits; so the names are also shuffled among the periods, which keeps who is answered like whom. The
less certain of the two counts. Less is shown than in a blind run: weekdays are gone too, and prices and volumes have one
scale for all. What still shows is how an asset moves, which can give it away without any memory of these bars.
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
from pitboss.core.instant import DAY_MS, Instant, interval_ms
from pitboss.core.market import Bars, Ints
from pitboss.core.noun import noun
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolSpec
from pitboss.prompt.render import bar_header, bar_rows
from pitboss.sim.statistics.binomial import HitRate, binomial_tail, hit_rate, holm, permutation_p_value
from pitboss.venues.perp.sections import HIGHER_BARS
from pitboss.venues.perp.skill import PerpSkill

KNOWN = ("ADA", "ARB", "AVAX", "BNB", "BTC", "DOGE", "DOT", "ETH", "LINK", "LTC", "SOL", "XRP")
"""Names that are offered beside those of the data. They are never right, so they cannot lower what chance gives."""
MOST_NAMES = 12
LEAST_PERIODS = 6
MOST_PERIODS = 120
WHOLE = 0.85
"""Of the usual number of ticks a period must have: the shortest month has more."""
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
    """One window and the truth about it."""

    symbol: str
    period: str
    end_at: Instant
    user: str


@noun
class Exam:
    """The questions, and what they were drawn from."""

    questions: tuple[Question, ...]
    symbols: tuple[str, ...]
    names: tuple[str, ...]
    periods: tuple[str, ...]
    grain: Grain
    tool: ToolSpec


@noun
class RecognitionAnswer:
    """What a model answered; `wrong` says why an answer cannot be used. `failed`: nobody answered at all."""

    asset: str = ""
    period: str = ""
    wrong: str = ""
    failed: bool = False


@noun
class ChanceVerdict:
    """Hits against chance. Both probabilities say how often luck does as well: `alone` if every answer is a guess of its
    own, `shuffled` if like windows are answered alike. `raised` is the larger of them, as one of two tests."""

    rate: HitRate
    options: int
    chance: float
    alone: float
    shuffled: float
    raised: float
    needed: int | None
    """Hits from which on luck is out of the question; None where even all of them would not do."""


@noun
class RecognitionResult:
    """What came of an exam. A verdict is None where there was nothing to tell apart."""

    asked: int
    failed: int
    asset: ChanceVerdict | None
    period: ChanceVerdict | None
    both: HitRate
    unusable: Mapping[str, int] = field(default_factory=dict[str, int])
    before: HitRate | None = None
    """Periods named right among the windows that end by an instant, and `after` among the others; no test."""
    after: HitRate | None = None


# The questions --------------------------------------------------------------------------------------------------------


def make_exam(
    market: Market, skill: PerpSkill, symbols: Sequence[str], from_at: Instant, to_at: Instant, windows: int, seed: int
) -> Exam:
    """Draw windows: first an asset, then a period, then an end inside it, each evenly."""
    if not symbols:
        raise UserError(
            "no asset has bars over the whole range, so no window can be drawn", "--windows 0 asks for none"
        )
    first, *higher = _shown(skill)
    tick = interval_ms(skill.schedule.every)
    ends = np.arange(-(-from_at // tick) * tick, to_at, tick, dtype=np.int64)
    ends = ends[ends >= _ready_at(market, symbols, *first)]
    if not len(ends):
        raise UserError(
            "no window fits: there are not enough bars before any tick of the range", "choose a later --from, or --to"
        )
    # a table that is shorter at the beginning of the data would tell where it stands, so it is shown never or always
    shown = [first, *(one for one in higher if _ready_at(market, symbols, *one) <= int(ends[0]))]
    grain, periods = _periods(ends)
    names = tuple(sorted({*symbols, *KNOWN[: max(0, MOST_NAMES - len(set(symbols)))]}))
    random = Generator(PCG64([seed, windows, 7]))
    questions: list[Question] = []
    seen: set[tuple[str, int]] = set()
    for _ in range(windows):
        symbol, period, end_at = _throw(random, symbols, periods)
        for _ in range(TRIES):
            if (symbol, end_at) not in seen:
                break
            symbol, period, end_at = _throw(random, symbols, periods)  # one answer must not count twice
        seen.add((symbol, end_at))
        user = _user(market, symbol, end_at, shown, names, grain, list(periods))
        questions.append(Question(symbol, period, end_at, user))
    return Exam(tuple(questions), tuple(symbols), names, tuple(periods), grain, _tool(names, list(periods)))


def _throw(random: Generator, symbols: Sequence[str], periods: Mapping[str, Ints]) -> tuple[str, str, Instant]:
    period = list(periods)[int(random.integers(len(periods)))]
    return symbols[int(random.integers(len(symbols)))], period, int(random.choice(periods[period]))


def _shown(skill: PerpSkill) -> list[tuple[str, int]]:
    """Intervals and how many bars of each, as in the market section of the prompt."""
    context = skill.context
    most = context.bars_lookback
    return [(context.bars_interval, most), *((one, min(most, HIGHER_BARS)) for one in context.timeframes())]


def _ready_at(market: Market, symbols: Sequence[str], interval: str, most: int) -> Instant:
    """From when on every symbol has so many closed bars."""
    ready = 0
    for symbol in symbols:
        bars = market.bars[symbol, interval]
        if len(bars) < most:
            return NEVER
        ready = max(ready, int(bars.open_at[most - 1]) + bars.interval_ms)
    return ready


def _periods(ends: Ints) -> tuple[Grain, dict[str, Ints]]:
    """The ends by the coarsest calendar unit of which there are enough to choose from."""
    found: dict[str, list[int]] = {}
    grain: Grain = "day"
    for grain in ("month", "week", "day"):
        found = {}
        for end in ends.tolist():
            found.setdefault(_period(end - 1, grain), []).append(end)  # midnight belongs to the day that ends
        usual = float(np.median([len(one) for one in found.values()]))
        # a piece of a period at the edge of the range would be told by its hours
        found = {name: one for name, one in found.items() if len(one) >= WHOLE * usual}
        if len(found) >= LEAST_PERIODS:
            break
    kept = list(found)[-MOST_PERIODS:]
    return grain, {name: np.asarray(found[name], np.int64) for name in kept}


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
    shown: Sequence[tuple[str, int]],
    names: Sequence[str],
    grain: Grain,
    periods: Sequence[str],
) -> str:
    view = market.view(end_at)
    tables = [(interval, view.bars(symbol, interval, most)) for interval, most in shown]
    first = tables[0][1]
    price = SHOWN_CLOSE / float(first.close[-1])
    middle = float(np.median(first.volume))
    volume = SHOWN_VOLUME / middle if middle > 0 else 1.0
    moved = LAST_DAY - (end_at - 1) // DAY_MS * DAY_MS
    unit = {"month": "month", "week": "week that begins on", "day": "day"}[grain]
    lines = [
        "## Which asset, and when?",
        f"Closed bars of one of these assets, oldest first: {', '.join(names)}.",
        f"The last one closed in one of these, each the {unit}: {', '.join(periods)}.",
        "The time of a bar is its open in UTC. Hours are true; days are moved so that the last one reads 01-31. Prices "
        f"are multiplied so that the last close is {SHOWN_CLOSE:g}, volumes so that the middle one is {SHOWN_VOLUME:g}.",
    ]
    for interval, bars in tables:
        lines += ["", f"### {interval} bars, last {len(bars)}", *_table(bars, moved, price, volume)]
    return "\n".join(lines)


def _table(bars: Bars, moved: int, price: float, volume: float) -> list[str]:
    first, high, low, close = ((one * price).tolist() for one in (bars.open, bars.high, bars.low, bars.close))
    rows = bar_rows((bars.open_at + moved).tolist(), first, high, low, close, (bars.volume * volume).tolist())
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
    """The question as a model is asked it."""
    user = question.user
    if forcing == "schema":
        user += '\n\nAnswer with one JSON object and nothing else: {"asset": …, "period": …}.'
    return ModelRequest(SYSTEM, (Message("user", user),), (exam.tool,), exam.tool.name, settings, forcing)


# The answers ----------------------------------------------------------------------------------------------------------

REFUSED, NO_ANSWER, UNREADABLE, NOT_OFFERED = "refused", "no answer", "not readable", "not on the list"


def read_guess(reply: ModelReply, exam: Exam) -> RecognitionAnswer:
    """The answer in a reply. What cannot be used says why; it counts as wrong."""
    said = [call.arguments for call in reply.calls if call.name == exam.tool.name]
    if not said:
        said = objects(reply.text) or []
    if not said:
        refused = "refused" in reply.problem or "blocked" in reply.problem
        return RecognitionAnswer(
            wrong=REFUSED if refused else UNREADABLE if reply.text.strip() and not reply.problem else NO_ANSWER
        )
    try:
        told = codec.loads(said[0])
    except (ValueError, RecursionError):
        return RecognitionAnswer(wrong=UNREADABLE)
    if len({text.strip() for text in said}) > 1 or not isinstance(told, dict):
        return RecognitionAnswer(wrong=UNREADABLE)
    said_asset, period = (str(told.get(name, "")).strip() for name in ("asset", "period"))
    asset = {name.upper(): name for name in exam.names}.get(said_asset.upper(), "")  # some names have small letters
    return RecognitionAnswer(
        asset or said_asset.upper(), period, "" if asset and period in exam.periods else NOT_OFFERED
    )


def judge(exam: Exam, guesses: Sequence[RecognitionAnswer], at: Instant | None = None) -> RecognitionResult:
    """Count the hits and weigh them against luck; those up to `at` and after it are also counted apart.

    Questions that nobody answered are left out.
    """
    pairs = [(one, guess) for one, guess in zip(exam.questions, guesses, strict=False) if not guess.failed]
    assets = sum(guess.asset == one.symbol for one, guess in pairs)
    periods = sum(guess.period == one.period for one, guess in pairs)
    both = sum(guess.asset == one.symbol and guess.period == one.period for one, guess in pairs)
    unusable: dict[str, int] = {}
    for _, guess in pairs:
        if guess.wrong:
            unusable[guess.wrong] = unusable.get(guess.wrong, 0) + 1
    truths = [(one.symbol, one.period) for one, _ in pairs]
    answers = [(guess.asset, guess.period) for _, guess in pairs]
    asset, period = _verdicts(
        [
            (assets, _table_of(exam.symbols, [one[0] for one in truths], [one[0] for one in answers])),
            (periods, _table_of(exam.periods, [one[1] for one in truths], [one[1] for one in answers])),
        ],
        len(pairs),
    )
    failed = sum(guess.failed for guess in guesses)
    apart: list[HitRate | None] = [None, None]
    if at is not None:
        sides = [
            [guess.period == one.period for one, guess in pairs if (one.end_at <= at) is by] for by in (True, False)
        ]
        apart = [hit_rate(sum(side), len(side)) for side in sides]
    return RecognitionResult(
        len(pairs), failed, asset, period, hit_rate(both, len(pairs)), dict(sorted(unusable.items())), *apart
    )


def _table_of(options: Sequence[str], truths: Sequence[str], answers: Sequence[str]) -> Ints:
    """How often each option was the truth (row) and each was the answer (column). Names that are never right are left
    out: shuffling cannot make them right either."""
    place = {name: number for number, name in enumerate(options)}
    counts = np.zeros((len(options), len(options)), np.int64)
    for truth, answer in zip(truths, answers, strict=True):
        if answer in place:
            counts[place[truth], place[answer]] += 1
    return counts


def _verdicts(tests: Sequence[tuple[int, Ints]], asked: int) -> list[ChanceVerdict | None]:
    usable = [place for place, (_, counts) in enumerate(tests) if len(counts) > 1 and asked]
    alone = {place: binomial_tail(tests[place][0], asked, 1 / len(tests[place][1])) for place in usable}
    mixed = {place: permutation_p_value(tests[place][1]) for place in usable}
    raised = dict(zip(usable, holm([max(alone[place], mixed[place]) for place in usable]), strict=True))
    found: list[ChanceVerdict | None] = []
    for place, (hits, counts) in enumerate(tests):
        if place not in raised:
            found.append(None)
            continue
        options = len(counts)
        least = needed(asked, options)
        found.append(
            ChanceVerdict(hit_rate(hits, asked), options, 1 / options, alone[place], mixed[place], raised[place], least)
        )
    return found


def needed(asked: int, options: int) -> int | None:
    """The least number of hits that stands out, both tests counted."""
    if 2 / math.factorial(min(options, asked, 20)) >= ALPHA:
        return None  # so few names fall right by luck when they are shuffled
    return next((hits for hits in range(asked + 1) if 2 * binomial_tail(hits, asked, 1 / options) < ALPHA), None)
