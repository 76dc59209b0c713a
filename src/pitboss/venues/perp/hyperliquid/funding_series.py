"""The funding rows of one symbol: which hour is due next, and whether a bar is complete without it. Pure."""

from collections.abc import Sequence

from pitboss.core.instant import HOUR_MS, MINUTE_MS, SECOND_MS, Instant

PUBLISH_MS = 3 * SECOND_MS
"""How long after the hour its row is requested first."""
FUNDING_PATIENCE_MS = 2 * MINUTE_MS
"""How long replies may lack the row of an hour before bars count as complete without it."""
LEAST_LACKING = 3
"""How many replies have to lack it: one may be empty by error."""


class FundingSeries:
    """`next_hour` is the first hour without a row."""

    def __init__(self, symbol: str, next_hour: Instant) -> None:
        self.symbol = symbol
        self.next_hour = next_hour
        self.missing: Instant | None = None
        """The newest hour that was given up."""
        self._lacking: tuple[Instant, int] | None = None

    def complete_before(self, step: int) -> Instant:
        """Return the close of the bar of a length that contains the next hour: without the row it is not complete."""
        return self.next_hour // step * step + step

    def add_reply(self, rows: Sequence[tuple[Instant, float]], requested_at: Instant) -> list[tuple[Instant, float]]:
        """Take a reply that was requested at a venue time; return its rows."""
        new = [row for row in rows if row[0] >= self.next_hour]
        if new:
            self.next_hour = new[-1][0] // HOUR_MS * HOUR_MS + HOUR_MS
            self._lacking = self.missing = None
        elif requested_at >= self.next_hour + PUBLISH_MS:
            since, count = self._lacking or (requested_at, 0)
            self._lacking = since, count + 1
            if requested_at - since >= FUNDING_PATIENCE_MS and count >= LEAST_LACKING - 1:
                self.missing, self._lacking = self.next_hour, None
                self.next_hour += HOUR_MS
        return list(rows)

    def is_due(self, now: Instant) -> bool:
        """Whether the row of the next hour should be there."""
        return now >= self.next_hour + PUBLISH_MS
