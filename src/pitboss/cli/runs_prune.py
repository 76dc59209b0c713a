"""`pitboss runs prune` and `runs spend`: limit the size of the store, and show what models have cost."""

from typing import Annotated

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Duration, Json, RangeEnd, WholeNumber, option
from pitboss.terminal.workspace_options import Location


def register(app: App) -> None:
    """Add the commands to the group `runs`."""
    app.command(prune)
    app.command(spend)


def prune(
    *,
    keep: Annotated[
        WholeNumber | None,
        option("--keep", "Number of newest runs to keep, among those that the other options select."),
    ] = None,
    older_than: Annotated[
        Duration | None, option("--older-than", "Only runs created longer ago than this, such as 720h.")
    ] = None,
    status: Annotated[
        str | None, option("--status", "Only runs with this status: complete, error or cancelled.")
    ] = None,
    study: Annotated[str | None, option("--study", "Only runs of this study.")] = None,
    yes: Annotated[bool, option("--yes", "Delete the runs; without it they are only counted.")] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Delete old runs with their records, their reports, and the model replies that no remaining run needs.

    Queued and active runs are kept, remaining runs can still be verified, and costs stay recorded.

    For example:

        pitboss runs prune --keep 200
        pitboss runs prune --older-than 720h --status error --yes
    """
    from pitboss.report.figures import plural
    from pitboss.store.lifecycle import ENDED
    from pitboss.store.prune import candidates
    from pitboss.store.prune import prune as remove

    if keep is not None and keep < 0:
        raise UserError("--keep: cannot be below zero", "for example --keep 200")
    if status is not None and status not in ENDED:
        raise UserError(f"--status: {status!r} is not complete, error or cancelled", "other runs are never deleted")
    with location.existing_workspace() as workspace:
        before_at = None if older_than is None else workspace.now() - older_than
        study_id = None if study is None else workspace.studies.find(study)
        run_ids = candidates(workspace.database, keep=keep, before_at=before_at, status=status, study_id=study_id)
        answers = 0
        if yes and run_ids:
            removed = remove(workspace.database, run_ids)
            run_ids, answers = list(removed.runs), removed.answers
            for run_id in run_ids:
                workspace.remove_files(run_id)
    if json:
        screen.put_json({"runs": run_ids, "answers": answers, "removed": yes})
    elif yes:
        replies = plural(answers, "cached reply", "cached replies")
        screen.put(f"deleted {plural(len(run_ids), 'run')} and {replies}")
    else:
        screen.put(f"{plural(len(run_ids), 'run')} would be deleted; add --yes to delete")
    return 0


def spend(
    *,
    from_: Annotated[
        RangeEnd | None,
        option("--from", "First day, such as 2026-11-01, or -30d for 30 days ago. Default: the first one with a cost."),
    ] = None,
    to: Annotated[RangeEnd | None, option("--to", "End, exclusive: this day is not included.")] = None,
    owner: Annotated[str | None, option("--owner", "Only costs of this user.")] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Show what models have cost, by day, user, skill and model, including removed runs.

    `uncertain_usd` is what may have been charged besides, for calls that were cut off. The last line is today's budget.

    For example:

        pitboss runs spend --from 2026-11-01
    """
    from pitboss.core.instant import iso, resolved
    from pitboss.core.money import text
    from pitboss.runs.daily_budget import daily_budget_line
    from pitboss.store.spend import spend as spend_rows

    with location.existing_workspace() as workspace:
        from_at = 0 if from_ is None else resolved(from_, workspace.now)
        to_at = 1 << 62 if to is None else resolved(to, workspace.now)
        costs = spend_rows(workspace.database, from_at, to_at, owner)
        budget_line = daily_budget_line(workspace, owner or "")
    rows = [
        {
            "day": iso(cost.day_at)[:10],
            "owner": cost.owner,
            "skill": cost.skill,
            "model": cost.model,
            "calls": cost.calls,
            "unpriced": cost.unpriced,
            "cost_usd": text(cost.cost_usd),
            "uncertain_usd": text(cost.uncertain_usd),
        }
        for cost in costs
    ]
    if json:
        screen.put_json(rows)
    elif not rows:
        screen.put("no costs are recorded")
    else:
        headings = ("day", "owner", "skill", "model", "calls", "without a price", "cost in USD", "uncertain in USD")
        cells = [tuple(map(str, row.values())) for row in rows]
        screen.put_table(headings, cells, right=(4, 5, 6, 7), folds=(2, 3), drop=(1, 5, 7))
    if not json:
        screen.note(budget_line)
    return 0
