"""What the chat has spent: with all other spending by day."""

from decimal import Decimal

from pitboss.core.instant import DAY_MS
from pitboss.core.money import exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import past_spend

CHAT = "(chat)"
"""Stands in place of a skill in the list of spending; no skill can have this name."""
_MAX_CHARS = 255


@exact
def record_chat_cost(database: Database, owner: str, model: str, unpriced: bool, cost_usd: Decimal) -> None:
    """Add the cost of a reply to the day."""
    with database.write() as connection:
        now = database.now(connection)
        key: dict[str, object] = {
            "owner": owner,
            "skill": CHAT,
            "model": model[:_MAX_CHARS],
            "day_at": now - now % DAY_MS,
        }
        database.lock_name(connection, "past_spend")
        day = rows.fetch(connection, past_spend, key, lock=True)
        if day is None:
            values = {"calls": 1, "unpriced": int(unpriced), "cost_usd": text(cost_usd)}
            rows.add(connection, past_spend, {**key, **values})
        else:
            changes = {
                "calls": day["calls"] + 1,
                "unpriced": day["unpriced"] + int(unpriced),
                "cost_usd": text(Decimal(day["cost_usd"]) + cost_usd),
            }
            rows.change(connection, past_spend, day, changes)
