"""The table of a run's decisions in the app: filters, and an empty view that `decisions.js` fills with the rows in sight."""

from collections.abc import Sequence

from pitboss.report.decisions import outcome_choices
from pitboss.report.markup import Html, join, tag
from pitboss.runs.run_index import RunIndex
from pitboss.server.pages.components import dialog

COLUMNS = ("Time (UTC)", "Proposal", "Reason", "Verdict")


def decision_table(run_id: str, index: RunIndex) -> Html:
    """Filters and table; without a script there is only a link to the decisions as data."""
    if not len(index):
        return tag("p", "No decision was recorded.", class_="note")
    head = tag("div", *[tag("span", name, role="columnheader") for name in COLUMNS], role="row", class_="log-head")
    view = tag(
        "div",
        head,
        tag("div", class_="log-body", role="rowgroup"),
        class_="log-view",
        role="grid",
        tabindex="0",
        aria_label="Decisions",
        aria_rowcount=len(index),
    )
    keys = join(
        [
            tag("kbd", "j"), " ", tag("kbd", "k"), " next and previous, ",
            tag("kbd", "Enter"), " opens a decision, ", tag("kbd", "Esc"), " closes it",
        ]
    )  # fmt: skip
    return tag("div", _filters(index), view, tag("p", keys, class_="note keys"), class_="log", data_run=run_id)


def decision_drawer() -> Html:
    """The drawer that a decision is shown in."""
    return dialog("decision", "Decision", drawer=True)


def _filters(index: RunIndex) -> Html:
    return tag(
        "form",
        _select("outcome", "Show", outcome_choices(index.outcome_counts())),
        _of_column(index, "action", "Action", "All actions"),
        _of_column(index, "code", "Rule", "All rules"),
        _of_column(index, "flags", "Flag", "All flags", "flag"),
        _of_column(index, "symbol", "Symbol", "All symbols"),
        tag(
            "label",
            "Text ",
            tag("input", type="search", name="text", placeholder="part of a reason", autocomplete="off"),
        ),
        tag("output", class_="shown", aria_live="polite"),
        class_="log-filters",
        aria_label="Filter the decisions",
    )


def _of_column(index: RunIndex, column: str, label: str, every: str, name: str = "") -> Html:
    values = index.choices(column)
    if not values:
        return Html()
    return _select(
        name or column,
        label,
        [("", every), *[(value, value.replace("_", " ") if column == "action" else value) for value in values]],
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    elements = [tag("option", text, value=value) for value, text in options]
    return tag("label", f"{label} ", tag("select", *elements, name=name))
