"""Every pair of entrants in a table: how far the one in the row ended above the one in the column, and how sure that is."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, RIGHT, table

Plain = Mapping[str, Any]
MOST = 14
"""Entrants up to which the table can be read."""


def pair_table(arena: Plain) -> Html:
    """The differences of all pairs; those that can be told apart stand out."""
    names = [entry["model"] for entry in arena["entries"] if entry["tier"] is not None]
    if len(names) > MOST:
        return tag(
            "p", f"Pairs of {len(names)} entrants are too many for a table; `--json` has all of them.", class_="note"
        )
    found = {(one["first"], one["second"]): one for one in arena["pairs"]}
    rows = [(name, *[_cell(name, other, found) for other in names]) for name in names]
    head = [("Ended above", LEFT), *[(name.partition("/")[2] or name, RIGHT) for name in names]]
    words = (
        "How much more the one in the row ended with than the one in the column, in percent. Bold: the interval that holds for "
        "all pairs at once leaves zero out."
    )
    return join([tag("h3", "All pairs"), tag("p", words, class_="note"), table("All pairs", head, rows, style="duels")])


def _cell(name: str, other: str, found: Mapping[tuple[str, str], Plain]) -> Html:
    if name == other:
        return tag("span", "·", class_="muted")
    one = found.get((name, other))
    percent = one["percent"] if one is not None else _turned(found[other, name]["percent"])
    pair = one or found[other, name]
    shown = figures.percent(percent, signed=True, digits=1)
    title = "no interval: too few days" if pair["p"] is None else f"p = {pair['p']:.3f} for all pairs together"
    if pair["told_apart"]:
        return tag("b", shown, class_=figures.tone(percent), title=title)
    return tag("span", shown, class_="muted", title=title)


def _turned(percent: float) -> float:
    """The same difference seen from the other side."""
    return 100 * (1 / (1 + percent / 100) - 1) if percent > -100 else float("inf")
