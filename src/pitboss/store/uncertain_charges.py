"""What a run may have been charged without our ever hearing of it, kept so that a resumed run does not pass its limit.

One fact for each who worked on the run (its lease epoch), as one that has lost it may still write. Answers, and what they
cost, are in `answers`; how much is in doubt, and when that must be written down, is the budget's to know.
"""

from decimal import Decimal

from pitboss.core.money import ZERO, exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import facts


class Doubts:
    """The doubts of one run, as one worker sees them."""

    @exact
    def __init__(self, database: Database, run_id: str, epoch: int) -> None:
        self._database = database
        prefix = f"doubt/{run_id}/"
        self._key = f"{prefix}{epoch}"
        query = rows.raw(facts).where(facts.c.key.startswith(prefix, autoescape=True))
        with database.read() as connection:
            found = rows.fetch_all(connection, query)
        for row in found:
            rows.require_intact(facts, row)
        amounts = {row["key"]: Decimal(row["value"]) for row in found}
        self.before_usd = sum(amounts.values(), ZERO)
        """All that was in doubt when this worker began."""
        self._others = self.before_usd - amounts.get(self._key, ZERO)

    @exact
    def note(self, usd: Decimal) -> None:
        """So much is in doubt now, `before_usd` included. Durable when it returns."""
        value = text(max(usd - self._others, ZERO))
        with self._database.write() as connection:
            row = rows.fetch(connection, facts, {"key": self._key}, lock=True)
            if row is None:
                rows.add(connection, facts, {"key": self._key, "value": value})
            else:
                rows.change(connection, facts, row, {"value": value})
