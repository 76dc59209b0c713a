"""The table of all pairs of entrants: the difference of the row from the column and its significance."""

from collections.abc import Mapping

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag, with_code
from pitboss.report.source import Plain
from pitboss.report.table import LEFT, RIGHT, table

MOST = 14
"""Up to this many entrants the table is readable."""


def pair_table(arena: Plain) -> Html:
    """The differences of all pairs; significant ones are bold."""
    names = [entry["model"] for entry in arena["entries"] if entry["tier"] is not None]
    if len(names) > MOST:
        note = with_code(f"{len(names)} entrants have too many pairs for a table; `--json` lists all of them.")
        return tag("p", note, class_="note")
    differences = {(difference["first"], difference["second"]): difference for difference in arena["pairs"]}
    rows = [(name, *[_cell(name, column, differences) for column in names]) for name in names]
    head = [("Difference", LEFT), *[(name.partition("/")[2] or name, RIGHT) for name in names]]
    note = (
        "Final equity of the row relative to the column, as a difference in percent. Bold: significant, because the simultaneous "
        "interval excludes zero."
    )
    return join([tag("h3", "All pairs"), tag("p", note, class_="note"), table("All pairs", head, rows, style="duels")])


def _cell(name: str, reference: str, differences: Mapping[tuple[str, str], Plain]) -> Html:
    if name == reference:
        return tag("span", "·", class_="muted")
    difference = differences.get((name, reference))
    percent = (
        difference["percent"] if difference is not None else reversed_percent(differences[reference, name]["percent"])
    )
    pair = difference or differences[reference, name]
    text = figures.percent(percent, signed=True, digits=1)
    title = "no interval: too few days" if pair["p"] is None else f"p = {pair['p']:.3f}, adjusted for all pairs"
    if pair["told_apart"]:
        return tag("b", text, class_=figures.tone(percent), title=title)
    return tag("span", text, class_="muted", title=title)


def reversed_percent(percent: float) -> float:
    """The same difference relative to the other entrant; a total loss counts as all but a millionth."""
    return 100 * (1 / (1 + max(percent, -99.9999) / 100) - 1)
