"""Decides whether the model is asked at a tick, from the skill's `wake_when` conditions.

It only answers yes or no; the tick itself records a skipped call as a no-op flagged `asleep`. The caller stores what
the model saw when it was last asked: the closes (from `closes`) and the number of news items.
"""

from collections.abc import Mapping

from pitboss.venues.perp import regime
from pitboss.venues.perp.observation import Observation


def awake(observation: Observation, asked_close: Mapping[str, float], news_seen: int) -> bool:
    """Return whether any condition of `wake_when` holds; True if there are no conditions.

    Before the first call to the model there is no close to compare with, so `move_atr` counts as met.
    """
    conditions = observation.skill.schedule.wake_when
    if not conditions:
        return True
    for condition in conditions:
        if condition == "position_open":
            holds = bool(observation.world.positions)
        elif condition == "new_news":
            holds = observation.view.news_count() > news_seen
        else:
            holds = _moved(observation, asked_close, float(condition.move_atr))
        if holds:
            return True
    return False


def closes(observation: Observation) -> dict[str, float]:
    """Return the newest close of every symbol that has one; the caller passes it as `asked_close` at later ticks."""
    return {symbol: close for symbol, close, _ in _newest(observation)}


def _moved(observation: Observation, asked_close: Mapping[str, float], multiple: float) -> bool:
    if not asked_close:
        return True
    for symbol, close, atr in _newest(observation):
        before = asked_close.get(symbol)
        # A symbol that has begun to trade since then counts as a move; without enough bars for an ATR there is no measure.
        if before is None or (atr is not None and abs(close - before) >= multiple * atr):
            return True
    return False


def _newest(observation: Observation) -> list[tuple[str, float, float | None]]:
    context = observation.skill.context
    newest: list[tuple[str, float, float | None]] = []
    for symbol in context.symbols:
        bars, closed = observation.view.series(symbol, context.bars_interval)  # empty for a symbol that is not listed
        if closed:
            newest.append((symbol, float(bars.close[closed - 1]), regime.atr(bars, closed)))
    return newest
