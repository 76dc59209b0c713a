"""`pitboss runs prune` and `runs spend`: limit the size of the store, and show what models have cost."""

from typing import Annotated

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Duration, Json, Moment, given
from pitboss.terminal.workspace_options import Here


def register(app: App) -> None:
    """Add the commands to the group `runs`."""
    app.command(prune)
    app.command(spend)


def prune(
    *,
    keep: Annotated[int | None, given("--keep", "Keep so many of the newest that fit the rest.")] = None,
    older_than: Annotated[
        Duration | None, given("--older-than", "Only runs made longer ago than this, as 720h.")
    ] = None,
    status: Annotated[str | None, given("--status", "Only complete, error or cancelled ones.")] = None,
    study: Annotated[str | None, given("--study", "Only those of a study.")] = None,
    yes: Annotated[bool, given("--yes", "Remove them; without it they are only counted.")] = False,
    json: Json = False,
    place: Here,
) -> int:
    """Remove old runs with their records, their reports, and model replies that no remaining run needs.

    Queued and active runs are kept, remaining runs can still be verified, and costs stay recorded. For example:

        pitboss runs prune --keep 200
        pitboss runs prune --older-than 720h --status error --yes
    """
    from pitboss.store.prune import candidates
    from pitboss.store.prune import prune as remove

    if keep is not None and keep < 0:
        raise UserError("--keep: cannot be below zero", "for example --keep 200")
    with place.workspace() as workspace:
        before_at = None if older_than is None else workspace.now() - older_than
        found = candidates(workspace.database, keep=keep, before_at=before_at, status=status, study_id=study)
        answers = 0
        if yes and found:
            done = remove(workspace.database, found)
            found, answers = list(done.runs), done.answers
            for run_id in found:
                workspace.report_path(run_id).unlink(missing_ok=True)
    if json:
        screen.put_json({"runs": found, "answers": answers, "removed": yes})
    elif yes:
        screen.put(f"{len(found):,} runs and {answers:,} answers are gone")
    else:
        screen.put(f"{len(found):,} runs would go; --yes removes them")
    return 0


def spend(
    *,
    from_: Annotated[Moment | None, given("--from", "First day, as 2026-11-01. Default: all.")] = None,
    to: Annotated[Moment | None, given("--to", "End; its day does not count any more.")] = None,
    owner: Annotated[str | None, given("--owner", "Only what one user spent.")] = None,
    json: Json = False,
    place: Here,
) -> int:
    """Show what models have cost, by day, user, skill and model, including removed runs.

    For example:

        pitboss runs spend --from 2026-11-01
    """
    from pitboss.core.instant import iso
    from pitboss.core.money import text
    from pitboss.store.spend import spend as spent

    with place.workspace() as workspace:
        found = spent(workspace.database, from_ or 0, 1 << 62 if to is None else to, owner)
    rows = [
        {
            "day": iso(one.day_at)[:10],
            "owner": one.owner,
            "skill": one.skill,
            "model": one.model,
            "calls": one.calls,
            "unpriced": one.unpriced,
            "cost_usd": text(one.cost_usd),
        }
        for one in found
    ]
    if json:
        screen.put_json(rows)
    elif not rows:
        screen.put("nothing was paid for")
    else:
        names = ("day", "owner", "skill", "model", "calls", "unpriced", "cost_usd")
        screen.put_table(names, [tuple(str(row[name]) for name in names) for row in rows], right=(4, 5, 6))
    return 0
