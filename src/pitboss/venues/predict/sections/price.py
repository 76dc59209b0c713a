"""`## BTC price`: recent one-minute closes, if candles are available."""

from pitboss.prompt import render as written
from pitboss.venues.predict.observation import PredictObservation, mid_change

PLACE = 20


def render(observation: PredictObservation) -> str | None:
    """Return the section from closed bars only; None without candles."""
    bars = observation.candles(observation.candles_minutes)
    if bars is None or not len(bars):
        return None
    change = mid_change(bars)
    moved = "" if change is None else f", {written.percent(change)} over them"
    closes = " ".join(f"{close:.2f}" for close in bars.close.tolist())
    title = f"## {observation.underlying} price"
    return f"{title}\n{len(bars)} one-minute closes, oldest first{moved}: {closes}"
