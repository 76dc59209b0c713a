"""Doing a study from the command line: say what it will cost, ask if need be, work on it, show what came of it."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pitboss.bootstrap.backtest import Request
from pitboss.bootstrap.documents import read_file, read_predict
from pitboss.bootstrap.gateway import is_model
from pitboss.bootstrap.predict.backtest import PredictRequest
from pitboss.bootstrap.workspace import Workspace
from pitboss.cli import screen
from pitboss.cli.backtest import check_numbers, read_window
from pitboss.cli.place import Place
from pitboss.cli.scoreboard import following
from pitboss.cli.verdicts import estimate_line, show_estimate, show_study
from pitboss.core.errors import BudgetExceeded, RunCancelled, UserError
from pitboss.jobs.arena import arena
from pitboss.jobs.estimate import Estimate, agreed, at_worst, estimate, pilot
from pitboss.jobs.make import Made
from pitboss.jobs.plan import Member, members
from pitboss.jobs.standing import judged
from pitboss.jobs.study import Money, Terms, study
from pitboss.skill.load import PREDICT, read_text, venue_of
from pitboss.store.studies import Studies

MANY = 32
"""Runs from which on it pays to start workers for what only computes."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a study is to be done, as it was typed."""

    yes: bool
    executor: Literal["auto", "here", "local", "ray"]
    concurrency: int
    only_estimate: bool
    with_pilot: bool
    json: bool
    out: Path | None = None


def base_request(
    place: Place,
    file: Path,
    sets: tuple[str, ...],
    from_at: int,
    to_at: int,
    model: str,
    equity: Decimal | None,
    data_venue: str,
    seed: int,
    max_gap: int | None,
    max_cost_usd: Decimal | None,
    price_in: Decimal | None,
    price_out: Decimal | None,
    yes: bool,
    speculate: str,
) -> Any:
    """The base request, of the venue that the skill names."""
    check_numbers(max_cost_usd, price_in, price_out, Decimal(35), 1, seed, max_gap, (from_at, to_at))
    settings = place.settings()
    predict = venue_of(read_text(file), file.suffix) == PREDICT
    plain = read_predict(file, sets) if predict else read_file(file, sets, settings)
    more: dict[str, Any] = {} if equity is None else {"equity_usd": equity}
    kind = PredictRequest if predict else Request
    return kind(
        skill=plain,
        from_at=from_at,
        to_at=to_at,
        model=model,
        data_venue=data_venue,
        seed=seed,
        max_gap=settings.max_gap if max_gap is None else max_gap,
        max_cost_usd=max_cost_usd,
        price_in=price_in,
        price_out=price_out,
        any_price=yes,
        speculate=read_window(speculate),
        **more,
    )


def conduct(place: Place, made: Made, manner: Manner) -> int:
    """Estimate, ask, do, show. Gives the exit code."""
    if not 1 <= manner.concurrency <= 256:
        raise UserError("--concurrency: not from 1 to 256", "for example --concurrency 8")
    with place.workspace() as workspace:
        known = members(made.plan, made.known)
        found = _estimated(workspace, made, known, manner)
        if manner.only_estimate:
            if manner.json:
                screen.put_json({"study_id": made.plan.id, "estimate": found.plain()})
            else:
                show_estimate(found)
            return 0
        screen.note(f"study {made.plan.id}: {len(known)} runs; {estimate_line(found)}")
        if found.usd:
            for words in found.basis:
                screen.note(f"  {words}")
        agreed(found, manner.yes, asker(manner.json))
        workspace, terms = _terms(workspace, known, found, manner)
        code = _work(workspace, place, made, terms)
        document = document_of(workspace, made.plan.id)
        if "entries" in document and not code:
            document["report"] = str(write_page(workspace, document, manner.out))
        if manner.json:
            screen.put_json({**document, "estimate": found.plain()})
        elif not code:
            show_study(document, place)
    return code


def document_of(workspace: Workspace, study_id: str) -> dict[str, Any]:
    """Everything that can be said about a study or an arena."""
    asked = Studies(workspace.database).document(study_id)
    return arena(workspace, study_id) if asked["kind"] == "arena" else judged(workspace, study_id)


def write_page(workspace: Workspace, document: Mapping[str, Any], out: Path | None) -> Path:
    """The page of an arena."""
    from pitboss.sim.report.arena import render

    path = out or workspace.home / "reports" / f"arena-{document['study_id']}.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(document), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None
    return path


def _estimated(workspace: Workspace, made: Made, known: Sequence[Member], manner: Manner) -> Estimate:
    """Of the runs that are not done yet."""
    standing = {line.id: line.status for line in Studies(workspace.database).progress(made.plan.id)}
    open_ = [member.request for member in known if standing.get(member.run_id(made.plan.id)) != "complete"]
    per_tick = asyncio.run(pilot(workspace, open_)) if manner.with_pilot and open_ else None
    return estimate(workspace, open_, per_tick)


def _terms(workspace: Workspace, known: Sequence[Member], found: Estimate, manner: Manner) -> tuple[Workspace, Terms]:
    limit = workspace.settings.daily_usd
    money = Money(lambda member: at_worst(found, member.request), limit or None)
    executor = manner.executor
    if executor == "auto":
        computing = sum(not is_model(member.request) for member in known)
        alone = (os.cpu_count() or 1) < 2 or workspace.settings.sqlite_processes == "one"
        executor = (
            "here"
            if alone or computing < MANY or workspace.settings.executor == "none"
            else workspace.settings.executor
        )
    if executor == "here":
        return workspace, Terms("here", manner.concurrency, money)
    chosen = workspace.settings.model_copy(update={"executor": executor})
    return replace(workspace, settings=chosen), Terms("workers", manner.concurrency, money)


def _work(workspace: Workspace, place: Place, made: Made, terms: Terms) -> int:
    plan = made.plan
    again = "the same command goes on with it"
    try:
        with following(workspace, f"{plan.kind} {plan.id}", plan.by) as board:
            done = asyncio.run(study(workspace, plan, made.method, terms, board.onlooker()))
    except (RunCancelled, KeyboardInterrupt):
        screen.note(f"study {plan.id} stopped; everything up to there is kept, and {again}")
        screen.note(f"hint: {place.typed(f'study show {plan.id}')}")
        return 130
    except BudgetExceeded as error:
        raise UserError(
            str(error), "raise the setting daily_usd (0: no limit), or bound every run with --max-cost-usd"
        ) from None
    if done.failed:
        first = done.failed[0]
        screen.complain(
            f"{len(done.failed)} runs have no result; {first.id}: {first.error_text or first.status}", again
        )
        return 1
    return 0


def asker(json: bool) -> Any:
    """Somebody to ask, if there is one."""
    if json or not (sys.stdin is not None and sys.stdin.isatty() and screen.ERR.is_terminal):
        return None

    def ask() -> bool:
        screen.ERR.print("go on? [y/N] ", end="")
        return input().strip().lower() in ("y", "yes")

    return ask
