"""`pitboss submit`: a backtest of either venue for the queue. It takes what the venue's own command takes with `--queue`."""

import inspect
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pitboss.cli import backtest
from pitboss.cli.workspace_options import WorkspaceOptions
from pitboss.core.errors import UserError
from pitboss.venues.predict import backtest_command as predict_backtesting

COMMANDS = {"perp": backtest.backtest, "predict": predict_backtesting.backtest}


def submit(skill: Path, /, *, place: WorkspaceOptions, **options: Any) -> int:
    """Queue a backtest, start workers for it, and say what it will cost. Takes what `pitboss backtest` takes, or
    `pitboss predict backtest` where the skill says `venue: predict`.

    Above $5 somebody has to agree: give `--yes` where nobody can be asked. `pitboss jobs wait` waits for it.

    For example:

        pitboss submit trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --model policy/momentum
        pitboss submit btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --model policy/alternate

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.skill.load import read_text, venue_of

    venue = venue_of(read_text(skill), skill.suffix)
    command = COMMANDS[venue]
    for name in options:
        if name not in inspect.signature(command).parameters:
            raise UserError(f"--{name.replace('_', '-')}: backtests on the {venue} venue have no such option")
    return command(skill, **options, queue=True, place=place)


def _parameters() -> dict[str, inspect.Parameter]:
    """Those of both commands; what only one of them has is told apart in the help."""
    found: dict[str, inspect.Parameter] = {}
    for venue, command in COMMANDS.items():
        others = [inspect.signature(one).parameters for one in COMMANDS.values() if one is not command]
        for name, parameter in inspect.signature(command).parameters.items():
            if not all(name in one for one in others):
                parameter = parameter.replace(
                    annotation=Annotated[parameter.annotation, Parameter(group=f"Only on the {venue} venue")]
                )
            found.setdefault(name, parameter)
    del found["queue"]  # it always does
    return found


submit.__signature__ = inspect.Signature(list(_parameters().values()))  # pyright: ignore[reportFunctionMemberAccess]
submit.__annotations__ = {name: one.annotation for name, one in _parameters().items()}
