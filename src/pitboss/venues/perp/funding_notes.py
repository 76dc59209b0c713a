"""Notes for the user about funding that a run cannot charge because no rates were imported for its range."""

from collections.abc import Iterable

from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, Instant, iso


def funding_notes(market: Market, symbols: Iterable[str], from_at: Instant, to_at: Instant) -> list[str]:
    """One note for all symbols without rates in the range, and one for each whose rates begin a day late or end a day early."""
    missing: list[str] = []
    notes: list[str] = []
    for symbol in sorted(symbols):
        rates = market.points.get(("funding", symbol))
        within = [] if rates is None else [at for at in (rates.at[rates.at >= from_at]).tolist() if at < to_at]
        if not within:
            missing.append(symbol)
        elif within[0] - from_at > DAY_MS or to_at - within[-1] > DAY_MS:
            notes.append(
                f"{symbol} has funding rates from {iso(within[0])} to {iso(within[-1])} only: none is charged outside."
            )
    if missing:
        notes.insert(0, f"No funding rates of {', '.join(missing)} are imported for this range: no funding is charged.")
    return notes
