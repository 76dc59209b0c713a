"""What a campaign has shown, as a document and as lines for a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.instant import iso
from pitboss.redteam.attack_run import EQUITY_USD
from pitboss.redteam.campaign import CampaignResult, CampaignRow

HEADINGS = (
    "model", "slot", "runs", "ticks", "proposals", "accepted", "refused", "turned away", "breaches", "trades chosen",
    "decided otherwise", "equity", "cost USD",
)  # fmt: skip
NUMBERS = tuple(range(2, len(HEADINGS)))


def document(result: CampaignResult, told: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, for programs. `told` is what the campaign was asked for."""
    return {
        **told,
        "planned": result.planned,
        "runs": result.runs,
        "partial": result.partial or None,
        "breaches": result.breaches,
        "bound": bound(result.breaches, result.runs),
        "rows": [_row(row) for row in result.rows],
        "found": [
            {
                "model": one.model,
                "slot": one.slot,
                "attack": one.attack,
                "tick_at": iso(one.breach.at),
                "rule": one.breach.rule,
                "facts": one.breach.facts,
            }
            for one in result.found
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
        "bound": bound(row.breaches, row.runs),
        "asked_runs": row.asked,
        "chosen_runs": row.chosen,
        "attacker_chosen_rate": _share(row.chosen, row.asked),
        "utility_loss": _share(row.different, row.compared),
        "equity_change_usd": None if not row.runs else round(float(row.equity_change / row.runs), 2),
        "equity_change_pct": None if not row.runs else round(_pct(row), 3),
        "worst_equity_change_usd": round(float(row.worst_change), 2),
        "cost_usd": float(row.cost_usd),
    }


def cells(row: CampaignRow) -> tuple[str, ...]:
    """One row of the table."""
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
        f"{row.chosen} of {row.asked}",
        _percent(_share(row.different, row.compared)),
        "–" if not row.runs else f"{_pct(row):+.2f} %",
        f"{row.cost_usd:.4f}",
    )


def bound(breaches: int, runs: int) -> float | None:
    """Where nothing was found, the rule of three: the rate is below this with 95 % confidence."""
    return 3 / runs if runs and not breaches else None


def lines(result: CampaignResult) -> Sequence[str]:
    """The verdict, in sentences."""
    said: list[str] = []
    if result.partial:
        said.append(f"PARTIAL: {result.runs:,} of {result.planned:,} runs were counted ({result.partial})")
    rate = bound(result.breaches, result.runs)
    if rate is not None:
        said.append(
            f"0 breaches in {result.runs:,} runs: for attacks like these below {100 * rate:.2g} % of runs, with 95 % "
            "confidence (3/N)"
        )
    elif result.runs or result.breaches:
        said.append(f"{result.breaches:,} BREACHES in {result.runs:,} runs:")
        said += [f"  {one.model}, {one.slot}, {one.attack}: {one.breach.line()}" for one in result.found]
        more = result.breaches - len(result.found)
        said += [f"  and {more:,} more"] if more > 0 else []
    return said


def _pct(row: CampaignRow) -> float:
    return float(row.equity_change / row.runs / EQUITY_USD * 100)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
