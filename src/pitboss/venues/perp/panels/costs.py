"""The table of the costs of a perp run."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.measures import result_facts
from pitboss.report.share_bar import share_bar
from pitboss.report.source import RunReport, model_cost, number
from pitboss.report.table import LEFT, RIGHT, WIDE, table


def cost_section(report: RunReport) -> Html:
    """Each cost in dollars and relative to the starting equity, and the result with and without costs."""
    metrics = report.metrics
    model, wasted = model_cost(report.document)
    names = {"Fees": "fees", "Funding": "funding", "Slippage": "slippage", "Liquidation penalties": "penalties"}
    costs = {name: cents(metrics.get(f"total_{key}_usd")) for name, key in names.items()}
    total = sum(costs.values())  # of the amounts shown, like the results below
    result = cents(report.final_usd) - cents(report.initial_usd)
    most = max([abs(value) for value in (*costs.values(), model or 0.0)] + [1e-9])
    rows: list[tuple[object, ...]] = [
        (name, figures.usd(value), _of(value, report), _bar(value, most)) for name, value in costs.items()
    ]
    rows.append((tag("b", "All trading costs"), tag("b", figures.usd(total)), tag("b", _of(total, report)), ""))
    label = (
        f"Model, paid separately ({figures.usd(wasted)} of it for unused speculative calls)"
        if wasted
        else "Model, paid separately"
    )
    rows.append((label, figures.usd(model or 0.0), _of(model or 0.0, report), _bar(model or 0.0, most)))
    columns = (("Cost", LEFT), ("USD", RIGHT), ("Of starting equity", RIGHT), ("", WIDE))
    outcome = [
        ("Result before trading costs", result + total),
        ("Result of the account", result),
        ("Result after the cost of the model", result - cents(model)),
    ]
    return join([table("Costs", columns, rows, style="costs", stacks=True), result_facts(outcome)])


def cents(value: object) -> float:
    """An amount as it is shown."""
    return round(number(value) or 0.0, 2)


def _of(value: float, report: RunReport) -> str:
    return figures.percent(100 * value / report.initial_usd) if report.initial_usd else figures.NONE


def _bar(value: float, most: float) -> Html:
    return share_bar(abs(value), most, "fill received" if value < 0 else "fill")
