"""The probability of backtest overfitting as table rows with explanations, for the pages of studies and arenas.

The numbers come from `sim/statistics/overfitting.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, tag

ExplainedRow = tuple[str, str, str]
"""Name, value, explanation."""


def overfit_rows(over: Mapping[str, Any] | None, among: str) -> list[ExplainedRow]:
    """The probability of overfitting and related figures; `among` names what is compared."""
    if over is None:
        return [("Probability of overfitting", figures.NONE, f"Needs at least two {among} and twelve days.")]
    return [
        (
            "Probability of overfitting",
            figures.share(over["probability"], 1),
            f"Over {figures.count(over['splits'])} ways to split {figures.count(over['days'])} days in {over['blocks']} blocks: how "
            "often the best of one half was no better than the median in the other.",
        ),
        (
            "Probability of a loss",
            figures.share(over["loss"], 1),
            "How often the best of one half lost money in the other.",
        ),
        (
            "Sharpe in sample → out of sample",
            f"{figures.plain(over['inside'])} → {figures.plain(over['outside'])}",
            "The mean Sharpe of the best of one half, on the days of that half and on the other days.",
        ),
    ]


def explained_table(caption: str, rows: Sequence[ExplainedRow]) -> Html:
    """A table of numbers with their explanations beside them, or below them on narrow screens."""
    body = [
        tag("tr", tag("th", name, scope="row"), tag("td", value, class_="num"), tag("td", meaning))
        for name, value, meaning in rows
    ]
    element = tag("table", tag("caption", caption), tag("tbody", *body), class_="metrics told")
    return tag("div", element, class_="scroll")
