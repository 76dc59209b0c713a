"""How likely it is that choosing the best of many has chosen noise, in rows that say what each number means.

For the pages of whatever compares many runs: studies and arenas. The numbers are those of `sim/statistics/overfitting.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, tag

ExplainedRow = tuple[str, str, str]
"""Name, value, what it means."""


def overfit_rows(over: Mapping[str, Any] | None, among: str) -> list[ExplainedRow]:
    """The probability of overfitting and what else the splits say; `among` names what is chosen among."""
    if over is None:
        return [("Probability of overfitting", figures.NONE, f"Needs at least two {among} and twelve days.")]
    return [
        (
            "Probability of overfitting",
            figures.share(over["probability"], 1),
            f"Over {figures.count(over['splits'])} ways to split {figures.count(over['days'])} days in {over['blocks']} blocks: how "
            "often the best of one half was no better than the middle in the other.",
        ),
        (
            "Probability of a loss",
            figures.share(over["loss"], 1),
            "How often the chosen one lost money in the other half.",
        ),
        (
            "Sharpe where chosen, and after",
            f"{figures.plain(over['inside'])} → {figures.plain(over['outside'])}",
            "The mean Sharpe of the chosen ones on the days they were chosen by, and on the others.",
        ),
    ]


def explained_table(caption: str, rows: Sequence[ExplainedRow]) -> Html:
    """Numbers with their meanings beside them, or beneath them where there is no room."""
    body = [
        tag("tr", tag("th", name, scope="row"), tag("td", value, class_="num"), tag("td", words))
        for name, value, words in rows
    ]
    made = tag("table", tag("caption", caption), tag("tbody", *body), class_="metrics told")
    return tag("div", made, class_="scroll")
