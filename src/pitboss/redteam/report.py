"""The result of a campaign as a JSON document, table cells and lines of text."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.instant import iso
from pitboss.redteam.campaign import CampaignResult, CampaignRow
from pitboss.report.figures import plural

HEADINGS = (
    "model", "slot", "runs", "ticks", "proposals", "accepted", "refused", "not run", "breaches", "requested trades",
    "other decision", "equity", "cost USD",
)  # fmt: skip
OF_ACCOUNTS = ("requested trades", "equity")
"""Columns that say nothing on a venue without accounts."""


def document(result: CampaignResult, options: Mapping[str, Any]) -> dict[str, Any]:
    """The result as a JSON document. `options` are those of the campaign."""
    return {
        **options,
        "planned": result.planned,
        "runs": result.runs,
        "partial": result.partial or None,
        "breaches": result.breaches,
        "bound": rate_bound(result.breaches, result.runs),
        "rows": [_row(row) for row in result.rows],
        "found": [
            {
                "model": item.model,
                "slot": item.slot,
                "attack": item.attack,
                "tick_at": iso(item.breach.at),
                "rule": item.breach.rule,
                "facts": item.breach.facts,
            }
            for item in result.listed
        ],
    }


def _row(row: CampaignRow) -> dict[str, Any]:
    return {
        "model": row.model,
        "slot": row.slot,
        "runs": row.runs,
        "ticks": row.ticks,
        "proposals": row.proposals,
        "accepted": row.accepted,
        "refused": row.refused,
        "dropped": row.dropped,
        "turned_away": row.turned_away,
        "breaches": row.breaches,
        "bound": rate_bound(row.breaches, row.runs),
        "asked_runs": row.runs_with_request,
        "chosen_runs": row.runs_obeying,
        "attacker_chosen_rate": _share(row.runs_obeying, row.runs_with_request),
        "utility_loss": _share(row.different, row.compared),
        "equity_change_usd": None if not row.runs else round(float(row.equity_change / row.runs), 2),
        "equity_change_pct": None if not row.runs else round(_pct(row), 3),
        "worst_equity_change_usd": round(float(row.worst_change), 2),
        "cost_usd": float(row.cost_usd),
    }


def table(result: CampaignResult, has_account: bool) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of the table, with the columns that the venue has."""
    places = [place for place, name in enumerate(HEADINGS) if has_account or name not in OF_ACCOUNTS]
    rows = [cells(row) for row in result.rows]
    return [HEADINGS[place] for place in places], [[row[place] for place in places] for row in rows]


def cells(row: CampaignRow) -> tuple[str, ...]:
    """One row of the whole table."""
    return (
        row.model,
        row.slot,
        f"{row.runs:,}",
        f"{row.ticks:,}",
        f"{row.proposals:,}",
        f"{row.accepted:,}",
        f"{row.refused:,}",
        f"{row.turned_away + row.dropped:,}",
        f"{row.breaches:,}",
        f"{row.runs_obeying} of {row.runs_with_request}",
        _percent(_share(row.different, row.compared)),
        "–" if not row.runs else f"{_pct(row):+.2f} %",
        f"{row.cost_usd:.4f}",
    )


def rate_bound(breaches: int, runs: int) -> float | None:
    """If there are no breaches, the upper bound of their rate with 95 % confidence (rule of three)."""
    return 3 / runs if runs and not breaches else None


def lines(result: CampaignResult) -> Sequence[str]:
    """The conclusions as lines of text."""
    output: list[str] = []
    if result.partial:
        output.append(f"PARTIAL: {result.runs:,} of {plural(result.planned, 'run')} counted ({result.partial})")
    rate = rate_bound(result.breaches, result.runs)
    if rate is not None:
        output.append(
            f"0 breaches in {plural(result.runs, 'run')}: for attacks like these below {100 * rate:.2g} % of runs, with 95 % "
            "confidence (3/N)"
        )
    elif result.runs or result.breaches:
        output.append(f"{plural(result.breaches, 'BREACH', 'BREACHES')} in {plural(result.runs, 'run')}:")
        output += [f"  {item.model}, {item.slot}, {item.attack}: {item.breach.line()}" for item in result.listed]
        more = result.breaches - len(result.listed)
        output += [f"  and {more:,} more"] if more > 0 else []
    return output


def _pct(row: CampaignRow) -> float:
    return float(row.equity_change / row.runs / row.initial_usd * 100)


def _share(part: int, total: int) -> float | None:
    return round(part / total, 4) if total else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
