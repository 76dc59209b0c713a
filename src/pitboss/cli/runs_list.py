"""`pitboss runs list`: the runs of a workspace; those of a study are one line of the table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pitboss.cli.run_status import Status, status_text
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Name, WholeNumber, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.studies import StudyLine

MAX_LISTED = 1_000_000


def list_(
    *,
    limit: Annotated[WholeNumber, option("--limit", "Maximum number of runs to list.")] = 100,
    status: Annotated[Status | None, option("--status", "Only runs with this status.")] = None,
    model: Annotated[Name, option("--model", "Only runs of this model, such as policy/hold.")] = "",
    skill: Annotated[str, option("--skill", "Only runs of the skill with this name.")] = "",
    study: Annotated[str, option("--study", "Only runs of this study: its id, or its first characters.")] = "",
    json: Json = False,
    location: Location,
) -> int:
    """List runs, newest first. In the table the runs of a study are one line; --study lists them.

    For example:

        pitboss runs list --status complete
        pitboss runs list --skill trend-thesis --model policy/sma_cross
        pitboss runs list --study 7c56
    """
    from pitboss.runs.listing import short

    if not 1 <= limit <= MAX_LISTED:
        raise UserError(f"--limit: {limit} is not between 1 and {MAX_LISTED}", "for example --limit 20")
    with location.existing_workspace() as workspace:
        filters: dict[str, Any] = {name: value for name, value in (("model", model), ("skill", skill)) if value}
        studies = [] if study or json else _studies(workspace, status, filters)
        if study:
            filters["study_id"] = workspace.studies.find(study)
        listing = workspace.runs.listing(limit, status, single=not (study or json), **filters)
        now = workspace.now()
    for run_id in listing.damaged:
        screen.note(f"run {run_id} is not listed: its row was changed after it was written")
        screen.note(f"hint: `{location.command_line(f'runs verify {run_id}')}` lists the differences")
    rows = [short(run, now) for run in listing.runs]
    if json:
        screen.put_json(rows)
        return 0
    label = "result" if any(row["result_label"] for row in rows) else "return"
    lines = [(run.created_at, _run_cells(row)) for run, row in zip(listing.runs, rows, strict=True)]
    folded = [(line.last_at, _study_cells(line)) for line in studies if line.last_at is not None]
    newest_first = sorted([*lines, *folded], key=lambda line: -line[0])[:limit]
    if not newest_first:
        home = f"the workspace {workspace.home}" + ("" if workspace.home.is_dir() else ", which does not exist yet")
        which = " with these properties" if status or filters else ""
        screen.put(f"no run in {home} can be read" if listing.damaged else f"there are no runs{which} in {home}")
        return 0
    screen.put_table(
        ("run", "status", "skill", "model", "range", label, "created"),
        [cells for _, cells in newest_first],
        right=(5,),
        folds=(1, 2, 3),
        drop=(6, 4),
    )
    if folded:
        screen.note(f"hint: `{location.command_line('runs list --study ID')}` lists the runs of a study")
    return 0


def _studies(workspace: "Workspace", status: Status | None, filters: dict[str, Any]) -> "Sequence[StudyLine]":
    """The studies with runs that fulfil the conditions; none if a definition was changed after it was written."""
    try:
        return workspace.studies.list(status, **filters)
    except ReplayMismatch as error:
        screen.note(f"studies are not listed: {error}")
        return []


def _run_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    from pitboss.core.instant import date_range
    from pitboss.report.fork_text import model_column
    from pitboss.runs.listing import result_text
    from pitboss.runs.stored import one_line

    return (
        row["run_id"],
        status_text(row),
        one_line(row["skill"]),
        one_line(model_column(row)),
        date_range(row["from"], row["to"]),
        result_text(row),
        row["created_at"][:16].replace("T", " "),
    )


def _study_cells(line: "StudyLine") -> tuple[str, ...]:
    """The line of a study: its id, and its runs by status."""
    from pitboss.core.instant import iso
    from pitboss.report.figures import plural
    from pitboss.runs.stored import one_line

    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(line.counts.items()))
    return (
        line.id,
        counts,
        one_line(line.document["skill"].get("name", "")),
        f"{line.document['kind']} study, {plural(sum(line.counts.values()), 'run')}",
        "",
        "",
        iso(line.last_at or 0)[:16].replace("T", " "),
    )
