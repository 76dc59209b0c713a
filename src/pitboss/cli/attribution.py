"""`pitboss attribution`: why a deployment and the simulation of the same decisions made different results."""

from pathlib import Path
from typing import Annotated, Any

from pitboss.terminal import screen
from pitboss.terminal.options import Json, RangeEnd, option
from pitboss.terminal.workspace_options import Location

HEADINGS = (
    "symbol",
    "side",
    "opened",
    "live",
    "paper",
    "difference",
    "latency",
    "slippage",
    "fees",
    "funding",
    "missed",
    "rest",
)
AMOUNTS = tuple(range(3, len(HEADINGS)))
DETAILS = (11, 10, 9, 8, 7, 6, 2)
"""Columns that are left out first in a narrow window: the parts of the difference, and when a trade was opened."""


def attribution(
    deployment: str,
    /,
    *,
    from_: Annotated[
        RangeEnd | None,
        option("--from", "Start of the span, or -7d before the last record. Default: the first record."),
    ] = None,
    to: Annotated[RangeEnd | None, option("--to", "End of the span, exclusive. Default: the last record.")] = None,
    data_venue: Annotated[
        str, option("--data-venue", "Venue whose bars are used. Default: that of the deployment.")
    ] = "",
    out: Annotated[Path | None, option("--out", "Also write a page to this HTML file.")] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Replay the decisions of a deployment on paper, and explain the difference of the results by trade.

    A part is what it added to the result of the deployment. Latency is the market's move between a decision and its fill, slippage
    the fill against the market at that time, missed what only one of the two filled; the parts add up to the difference.

    For example:

        pitboss attribution 3f9a --from 2025-06-01 --to 2025-06-08

    Parameters
    ----------
    deployment
        Its id, or its first characters.
    """
    from pitboss.runs.attribution import attribution_document

    with location.existing_workspace() as workspace:
        stored = workspace.deployments.get(deployment)
        document = attribution_document(workspace, stored, from_, to, data_venue)
    if out is not None:
        _write(out, document, stored.skill)
    if json:
        screen.put_json(document)
        return 0
    rows = [_cells(row, row["symbol"], row["side"], row["opened_at"]) for row in document["trades"]]
    live, paper = document["live"]["result_usd"], document["paper"]["result_usd"]
    total = {**document["parts"], "live_usd": live, "paper_usd": paper, "difference_usd": document["difference_usd"]}
    screen.put_table(HEADINGS, [*rows, _cells(total, "total", "", "")], right=AMOUNTS, drop=DETAILS)
    screen.put(
        f"{document['mode']} deployment {document['deployment_id']}, {document['from']} to {document['compared_until']}; USD"
    )
    if document["outside_trades_usd"]:
        screen.put(f"the rest has {document['outside_trades_usd']:+.2f} that belongs to no trade")
    for text in document["notes"]:
        screen.note(f"note: {text}")
    if out is not None:
        screen.put(str(out))
    return 0


def _cells(row: dict[str, Any], *names: str) -> tuple[str, ...]:
    parts = ("live", "paper", "difference", "latency", "slippage", "fees", "funding", "missed", "rest")
    return (*names, *(f"{row[f'{name}_usd']:+.2f}" for name in parts))


def _write(out: Path, document: dict[str, Any], name: str) -> None:
    from pitboss.report.attribution import attribution_page
    from pitboss.report.shell import html_document
    from pitboss.runs.page_file import write_page_file

    write_page_file(html_document(attribution_page(document, name)), out, make_folder=False)
