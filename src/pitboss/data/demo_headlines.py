"""Invented headlines for the generated market: some precede a move, some follow it, most are unrelated.

Their source is "synthetic". Not a model of how news moves markets.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.market import Floats, Ints

_NAMES = {"BTC": "Bitcoin", "ETH": "Ethereum", "SOL": "Solana"}
_UP = (
    "{name} jumps as a large fund is said to be buying",
    "Short sellers of {name} caught out by a sudden bid",
    "Desk notes heavy spot demand for {name}",
    "{name} breaks higher; traders point to thin books above",
    "Report: payment firm to add {name} support next quarter",
)
_DOWN = (
    "{name} slides after a large wallet moves coins to an exchange",
    "Forced selling seen in {name} as leverage unwinds",
    "Rumour of an exchange outage weighs on {name}",
    "{name} falls through support; stops reported below",
    "Report: regulator asks questions about {name} products",
)
_FLAT = (
    "{name} trades sideways as desks wait for the next release",
    "Weekly review: {name} volumes near their average",
    "Developers of {name} discuss the next upgrade",
    "Survey: opinions on {name} little changed this week",
    "Analysts split on where {name} goes from here",
    "Miners and validators of {name} report an uneventful week",
)


@dataclass(frozen=True, slots=True)
class Headline:
    """One invented item."""

    at: Instant
    text: str
    sentiment: float
    symbol: str


@dataclass(frozen=True, slots=True)
class Move:
    """A sharp move of one symbol in one bar."""

    at: Instant
    symbol: str
    size: float


def moves_of(opens: Ints, jumps: Floats, closes: Mapping[str, Floats]) -> list[Move]:
    """The sharpest bars of each symbol and the common jumps, in time order."""
    moves: list[Move] = []
    for symbol in sorted(closes):
        steps = np.diff(np.log(closes[symbol]), prepend=np.log(closes[symbol][0]))
        sharp = np.flatnonzero((np.abs(steps) > 0.012) | (np.abs(jumps) > 0.008))
        moves += [Move(int(opens[index]), symbol, float(steps[index])) for index in sharp]
    return sorted(moves, key=lambda move: (move.at, move.symbol))


def headlines(random: Generator, moves: list[Move], opens: Ints) -> list[Headline]:
    """Items around the moves and between them, in time order, inside the span of the market."""
    first, last = int(opens[0]), int(opens[-1])
    items: list[Headline] = []
    for move in moves:
        if random.random() < 0.35:
            continue  # not every move has a headline
        leads = random.random() < 0.3
        shift = -random.integers(5, 40) if leads else random.integers(2, 90)
        items.append(_item(random, move.at + int(shift) * MINUTE_MS, move.symbol, 1.0 if move.size > 0 else -1.0))
    days = max(1, (last - first) // 86_400_000)
    for _ in range(int(days) * 7):
        at = first + int(random.integers(0, (last - first) // MINUTE_MS)) * MINUTE_MS
        symbol = sorted(_NAMES)[int(random.integers(0, len(_NAMES)))]
        mood = float(random.choice((0.0, 0.0, 0.0, 1.0, -1.0)))  # a false alarm now and then
        items.append(_item(random, at, symbol, mood))
    inside = [item for item in items if first <= item.at <= last]
    return sorted(inside, key=lambda item: (item.at, item.symbol, item.text))


def _item(random: Generator, at: Instant, symbol: str, mood: float) -> Headline:
    texts = _UP if mood > 0 else _DOWN if mood < 0 else _FLAT
    text = texts[int(random.integers(0, len(texts)))].format(name=_NAMES[symbol])
    strength = float(random.uniform(0.35, 0.95)) if mood else float(random.uniform(-0.15, 0.15))
    return Headline(at, text, round(mood * strength if mood else strength, 3), symbol)
