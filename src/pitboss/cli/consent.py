"""The cost of runs before anything is spent: the estimate is shown, and above a limit the user has to agree."""

from collections.abc import Callable

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.estimate import Estimate, needs_consent, require_consent
from pitboss.jobs.submit import Agree
from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.question import agrees, has_terminal


def estimate_line(cost: Estimate) -> str:
    """Format an estimate in one line."""
    if cost.usd is None:
        return "estimated cost: unknown"
    if not cost.hi:
        return "estimated cost: none"
    ahead = f", of which up to ${cost.ahead_usd:.2f} for asking ahead" if cost.ahead_usd else ""
    return (
        f"estimated cost: ${cost.usd:.2f} (from ${cost.lo:.2f} to ${cost.hi:.2f}{ahead}), {plural(cost.calls, 'call')}"
    )


def agreement(workspace: Workspace, yes: bool, json: bool) -> Agree:
    """How a user of a command agrees to a cost: with `--yes`, or by answering a question on a terminal."""

    def agree(cost: Estimate) -> None:
        above_usd = workspace.settings.confirm_above_usd
        ask = None if yes else asker(json)
        if ask is not None and needs_consent(cost, above_usd):
            screen.note(estimate_line(cost))
            for line in cost.basis:
                screen.note(f"  {line}")
        require_consent(cost, above_usd, yes, ask)

    return agree


def asker(json: bool) -> Callable[[], bool] | None:
    """A function that asks for confirmation; None if there is no terminal."""
    if json or not (has_terminal() and screen.ERR.is_terminal):
        return None
    return lambda: agrees("continue?")
