"""`pitboss submit`: a backtest for the queue. It takes what `pitboss backtest` takes, says what it will cost, and returns."""

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pitboss.cli import screen
from pitboss.cli.backtest import backtest
from pitboss.cli.options import given
from pitboss.cli.place import Place

if TYPE_CHECKING:
    from pitboss.bootstrap.request import Asked

Priority = Annotated[int, given("--priority", "Higher goes first.")]


def submit(*words: Any, priority: int = 0, place: Place, **options: Any) -> int:
    """Queue a backtest, start workers for it, and say what it will cost. Takes what `pitboss backtest` takes.

    Above $5 somebody has to agree: give `--yes` where nobody can be asked. `pitboss jobs wait` waits for it.

    For example:

        pitboss submit trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --model policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    yes = bool(options.get("yes"))

    def queue(here: Place, request: "Asked", repeats: int, json: bool) -> int:
        return _queue(here, request, repeats, json, priority, yes)

    return backtest(*words, **options, place=replace(place, instead=queue))


def _signature() -> inspect.Signature:
    """That of a backtest, with what a queue needs besides."""
    own = inspect.Parameter("priority", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Priority)
    there = inspect.signature(backtest)
    return there.replace(parameters=[*there.parameters.values(), own])


submit.__signature__ = _signature()  # pyright: ignore[reportFunctionMemberAccess]
submit.__annotations__ = {**backtest.__annotations__, "priority": Priority}


def _queue(place: Place, request: "Asked", repeats: int, json: bool, priority: int, yes: bool) -> int:
    """Estimate, ask, queue."""
    from pitboss.bootstrap.gateway import may_cost
    from pitboss.cli.conducting import asker
    from pitboss.cli.verdicts import estimate_line
    from pitboss.core.errors import BudgetExceeded, UserError
    from pitboss.jobs.enqueue import enqueue
    from pitboss.jobs.estimate import agreed, at_worst, estimate

    requests = [replace(request, seed=request.seed + number, repeat=number) for number in range(repeats)]
    with place.workspace() as workspace:
        found = estimate(workspace, requests)
        agreed(found, yes, asker(json))
        limit, reserve = workspace.settings.daily_usd or None, None
        if limit is not None:
            reserve = at_worst(found, request) if request.max_cost_usd is None else request.max_cost_usd
            if may_cost(request) and reserve:
                requests = [replace(one, max_cost_usd=reserve) for one in requests]
        try:
            ids = enqueue(workspace, requests, priority=priority, reserve_usd=reserve, daily_usd=limit)
        except BudgetExceeded as error:
            raise UserError(str(error), "raise the setting daily_usd (0: no limit), or give --max-cost-usd") from None
    if json:
        more = {"run_ids": ids} if repeats > 1 else {}
        screen.put_json({"run_id": ids[0], "estimate": found.plain(), **more})
        return 0
    screen.put(f"queued: {', '.join(ids)}")
    screen.put(estimate_line(found))
    for words in found.basis:
        screen.put(f"  {words}")
    screen.put(f"next: {place.typed(f'jobs wait {ids[0]}')}")
    return 0
