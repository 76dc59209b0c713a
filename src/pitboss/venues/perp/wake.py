"""Whether the model is asked at this tick. A tick slept through is a no-op flagged `asleep`; this only answers yes or no.

The caller keeps what the model last saw: the closes (`closes`) and the count of news at the last tick it was asked.
"""

from collections.abc import Mapping

from pitboss.venues.perp import regime
from pitboss.venues.perp.observation import Observation


def awake(observation: Observation, asked_close: Mapping[str, float], news_seen: int) -> bool:
    """Whether any condition of `wake_when` holds, or there is none. Unasked so far: a move cannot be ruled out."""
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
    """The newest close of every symbol that has one: what `asked_close` is after a tick at which the model was asked."""
    return {symbol: close for symbol, close, _ in _newest(observation)}


def _moved(observation: Observation, asked_close: Mapping[str, float], multiple: float) -> bool:
    if not asked_close:
        return True
    for symbol, close, atr in _newest(observation):
        before = asked_close.get(symbol)
        # A symbol that has begun to trade since is news; one without enough bars for an ATR has no measure of a move.
        if before is None or (atr is not None and abs(close - before) >= multiple * atr):
            return True
    return False


def _newest(observation: Observation) -> list[tuple[str, float, float | None]]:
    shown = observation.skill.context
    found: list[tuple[str, float, float | None]] = []
    for symbol in shown.symbols:
        bars, closed = observation.view.series(symbol, shown.bars_interval)  # none of a symbol that is not listed
        if closed:
            found.append((symbol, float(bars.close[closed - 1]), regime.atr(bars, closed)))
    return found
