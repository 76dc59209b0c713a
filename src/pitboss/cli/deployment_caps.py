"""`pitboss deployments caps`: show and change the caps of a deployment."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App

from pitboss.terminal import screen
from pitboss.terminal.options import Json, Override, option
from pitboss.terminal.workspace_options import LOCAL_USER, Location


def register(app: App) -> None:
    """Add the command to its group."""
    app.command(caps)


def caps(
    deployment: str,
    /,
    *,
    set_: Override = (),
    cancel: Annotated[bool, option("--cancel", "Cancel a raise that is not in effect yet.")] = False,
    reason: Annotated[str, option("--reason", "Why. It is recorded.")] = "",
    yes: Annotated[bool, option("--yes", "Raise caps without being asked.")] = False,
    confirm: Annotated[
        str, option("--confirm", "To raise caps in mode live without a terminal: the name of the account.")
    ] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Show or change the caps of a deployment.

    Lower caps are in effect at once. Higher ones, never beyond those of the skill, have to be confirmed and are pending for an
    hour (the setting `raise_caps_delay_s`); a further change cancels what is pending. Positions and open orders stay.

    For example:

        pitboss deployments caps 3f9a
        pitboss deployments caps 3f9a --set risk.max_leverage=1 --reason 'news'
        pitboss deployments caps 3f9a --cancel

    Parameters
    ----------
    deployment
        Its id, or its first characters.
    """
    from pitboss.cli.live_confirmation import confirm_live
    from pitboss.core.errors import UserError
    from pitboss.runs import deployment_caps
    from pitboss.terminal.question import agrees, has_terminal

    with location.existing_workspace() as workspace:
        stored = workspace.deployments.get(deployment)

        def confirm_raise(fields: Sequence[str]) -> None:
            names = ", ".join(fields)
            if not yes and not (has_terminal() and agrees(f"{names} would be raised. Raise it?")):
                raise UserError(f"{names} would be raised: nothing was done", "a raise has to be confirmed: --yes")
            if stored.mode == "live":
                confirm_live(stored.account, confirm)

        if set_ and cancel:
            raise UserError("--set and --cancel exclude each other", "a further change cancels what is pending")
        if set_:
            document = deployment_caps.change_caps(workspace, stored, set_, reason, LOCAL_USER, confirm_raise)
        elif cancel:
            document = deployment_caps.cancel_raise(workspace, stored, LOCAL_USER)
        else:
            document = deployment_caps.caps_document(workspace, stored)
    if json:
        screen.put_json(document)
        return 0
    limits = dict(deployment_caps.cap_fields(document["skill_caps"]))
    rows = [(name, _cap(value), _cap(limits.get(name))) for name, value in deployment_caps.cap_fields(document["caps"])]
    screen.put_table(("cap", "in effect", "in the skill"), rows)
    pending = document["pending"]
    if pending:
        raised = ", ".join(f"{each['cap']} {_cap(each['from'])} to {_cap(each['to'])}" for each in pending["changes"])
        screen.put(f"pending until {pending['effective_at']}: {raised} (by {pending['user_name']})")
    return 0


def _cap(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "any"
    return "none" if value is None else str(value)
