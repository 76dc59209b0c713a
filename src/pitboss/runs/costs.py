"""What was spent, as one document: by day, skill and model, with today's budget. The sums are those of `store/spend.py`."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.money import ZERO, exact
from pitboss.store.spend import Spend


@exact
def costs_document(workspace: Workspace, from_at: Instant, to_at: Instant) -> dict[str, Any]:
    """The spending of an owner on the days that begin in `[from_at, to_at)`."""
    rows = workspace.spend(from_at, to_at)
    return {
        "from": iso(from_at),
        "to": iso(to_at),
        **_totals(rows),
        "budget": budget_document(workspace),
        "days": _grouped(rows, lambda row: iso(row.day_at)[:10], "day", dearest_first=False),
        "skills": _grouped(rows, lambda row: row.skill, "skill"),
        "models": _grouped(rows, lambda row: row.model, "model"),
        "rows": [
            {"day": iso(row.day_at)[:10], "skill": row.skill, "model": row.model, **_totals([row])} for row in rows
        ],
    }


@exact
def budget_document(workspace: Workspace) -> dict[str, Any]:
    """Today's budget of an owner. Without a limit, `daily_usd` and `left_usd` are None."""
    today, limit_usd = workspace.budget(), workspace.settings.daily_usd
    left_usd = max(ZERO, limit_usd - today.spent_usd - today.reserved_usd)
    return {
        "day": iso(today.day_at)[:10],
        "daily_usd": float(limit_usd) if limit_usd else None,
        "spent_usd": float(today.spent_usd),
        "reserved_usd": float(today.reserved_usd),
        "left_usd": float(left_usd) if limit_usd else None,
    }


def first_day(now: Instant, days: int) -> Instant:
    """The beginning of the first of the last so many days, today included."""
    return now - now % DAY_MS - (days - 1) * DAY_MS


def _grouped(
    rows: Sequence[Spend], key: Callable[[Spend], str], name: str, dearest_first: bool = True
) -> list[dict[str, Any]]:
    groups: dict[str, list[Spend]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    documents = [{name: value, **_totals(group)} for value, group in groups.items()]
    return sorted(documents, key=lambda row: -row["cost_usd"]) if dearest_first else documents


def _totals(rows: Sequence[Spend]) -> dict[str, Any]:
    return {
        "cost_usd": _sum([row.cost_usd for row in rows]),
        "uncertain_usd": _sum([row.uncertain_usd for row in rows]),
        "calls": sum(row.calls for row in rows),
        "unpriced_calls": sum(row.unpriced for row in rows),
    }


def _sum(amounts: Sequence[Decimal]) -> float:
    return float(sum(amounts, ZERO))
