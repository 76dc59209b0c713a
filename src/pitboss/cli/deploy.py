"""`pitboss deploy`, `deployments` and `command`: run a skill live, and tell it what to do."""

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from pitboss.cli import deployment_caps
from pitboss.core.deployment import COMMAND_MEANINGS, MODE_MEANINGS, Command, Mode
from pitboss.terminal import screen
from pitboss.terminal.options import Amount, Json, Name, Override, option
from pitboss.terminal.workspace_options import LOCAL_USER, Location

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.deployments import Deployment

app = App(name="deployments", help="List deployments, show one, change its caps, and acknowledge its alarm.")
deployment_caps.register(app)
MODES = "; ".join(f"{mode}: {meaning}" for mode, meaning in MODE_MEANINGS.items())
MEANINGS = "\n    ".join(f"- {name}: {meaning}" for name, meaning in COMMAND_MEANINGS.items())


def deploy(
    skill: str,
    /,
    *,
    mode: Annotated[Mode, option("--mode", f"Where orders go. {MODES}.")],
    account: Annotated[
        str, option("--account", "Name of the account for shadow and live (`pitboss live accounts`).")
    ] = "",
    model: Annotated[Name, option("--model", "Model or policy in place of the skill's.")] = "",
    equity: Annotated[Amount, option("--equity", "Paper money to start with.")] = Decimal(10_000),
    set_: Override = (),
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "Most that the model may cost in all; then the agent holds.")
    ] = None,
    max_cost_usd_per_day: Annotated[
        Amount | None, option("--max-cost-usd-per-day", "Most that the model may cost in a UTC day.")
    ] = None,
    price_in: Annotated[Amount | None, option("--price-in", "Price in USD of a million input tokens.")] = None,
    price_out: Annotated[Amount | None, option("--price-out", "Price in USD of a million output tokens.")] = None,
    yes: Annotated[bool, option("--yes", "Do not ask; also run a model whose price is not known.")] = False,
    confirm: Annotated[
        str, option("--confirm", "For mode live without a terminal: the name of the account, typed once more.")
    ] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Run a skill live. On paper it needs no account and no key.

    The deployment is stored, and a process of this machine works on it until it is stopped (`pitboss live host` runs one in
    the foreground). `--set` can only tighten the caps of the skill; with them it is saved as another version of the skill.

    For example:

        pitboss deploy trend-thesis.yaml --mode paper
        pitboss deploy trend-thesis.yaml --mode paper --set risk.max_leverage=1 --max-cost-usd-per-day 2

    Parameters
    ----------
    skill
        A .yaml or .json file, or the name of a saved skill, also as name@version.
    """
    from pitboss.cli.live_confirmation import confirm_live
    from pitboss.jobs.executors.live import attend
    from pitboss.runs import deployments
    from pitboss.runs.deployment_caps import tightened_skill
    from pitboss.runs.documents import read_file_or_saved
    from pitboss.runs.live_deployment import DeployRequest
    from pitboss.runs.venues import venue_of
    from pitboss.skill.document import to_plain

    with location.workspace() as workspace:
        request = DeployRequest(
            skill=tightened_skill(lambda overrides: read_file_or_saved(workspace, skill, overrides), set_),
            mode=mode,
            account=account,
            model=model,
            equity_usd=equity,
            max_cost_usd=max_cost_usd,
            max_cost_usd_per_day=max_cost_usd_per_day,
            price_in=price_in,
            price_out=price_out,
            any_price=yes,
        )
        if mode == "live":
            if account:
                venue_of(to_plain(request.skill)).check_live(workspace, request)
            confirm_live(account, confirm)
        deployment = deployments.deploy(workspace, request)
        if mode == "live":
            _warn(workspace, deployment, request.skill)
        process = attend(workspace, deployment.id)
    saved = f"{deployment.skill}@{deployment.skill_version}"
    if set_:
        screen.note(f"the skill with these caps is saved as {saved}")
    if json:
        document = {"deployment_id": deployment.id, "state": deployment.state, "run_id": deployment.run_id}
        screen.put_json({**document, "skill": saved})
        return 0
    screen.put(f"deployment {deployment.id} is {deployment.state} ({mode})")
    if process:
        screen.note(process)
    screen.put(f"next: {location.command_line(f'deployments show {deployment.id}')}")
    return 0


def _warn(workspace: "Workspace", deployment: "Deployment", skill: Any) -> None:
    """Print a warning if no passed preflight covers a deployment; with real money it was refused before."""
    from pitboss.bootstrap.trading_accounts import read_accounts
    from pitboss.runs.live_preflight import preflight_problem

    account = read_accounts(workspace.home).get(deployment.account)
    if account is None:  # an agent of a venue whose accounts are not ours
        return
    problem = preflight_problem(workspace, deployment.account, account, skill)
    if problem:
        screen.note(f"warning: {problem}; `pitboss live preflight --account {deployment.account}` checks everything")


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List deployments, newest first.

    For example:

        pitboss deployments list
    """
    from pitboss.runs.deployments import deployment_documents

    with location.existing_workspace() as workspace:
        rows = deployment_documents(workspace)
    if json:
        screen.put_json(rows)
        return 0
    if not rows:
        screen.note("there are no deployments; `pitboss deploy SKILL --mode paper` makes one")
        return 0
    headings = ("deployment", "skill", "venue", "mode", "state", "process", "reason")
    cells = [
        (
            row["deployment_id"],
            f"{row['skill']}@{row['skill_version']}",
            row["venue"],
            row["mode"],
            row["state"],
            "yes" if row["attended"] else "no",
            row["reason"] or row["code"] or "",
        )
        for row in rows
    ]
    screen.put_table(headings, cells, folds=(1, 6), drop=(2, 5))
    return 0


@app.command
def show(deployment: str, /, *, json: Json = False, location: Location) -> int:
    """Show a deployment: its state, its account after the last record, its caps and its commands.

    For example:

        pitboss deployments show 3f9a

    Parameters
    ----------
    deployment
        Its id, or its first characters.
    """
    from pitboss.runs.deployments import deployment_details

    with location.existing_workspace() as workspace:
        document = deployment_details(workspace, workspace.deployments.get(deployment))
    if json:
        screen.put_json(document)
        return 0
    for name in ("deployment_id", "run_id", "skill", "venue", "mode", "account", "model", "state", "code", "reason"):
        if document[name]:
            screen.put(f"{name.replace('_', ' '):<15}{document[name]}")
    screen.put(f"{'process':<15}{'works on it' if document['attended'] else 'none'}")
    if len(set(document["builds"].values())) > 1:
        screen.put(f"{'builds':<15}{', '.join(f'{role} {build}' for role, build in document['builds'].items())}")
    if document["error_text"]:
        screen.put(f"{'error':<15}{document['error_text']}")
    alarm = document["alarm"]
    if alarm is not None:
        read = f"read by {alarm['read_by']}" if alarm["read_at"] else "unread"
        screen.put(f"{'alarm':<15}{alarm['raised_at']} {alarm['text']} ({read})")
    after = document["account_after"] or {}
    for name in ("equity_usd", "equity", "cash_usd", "cash"):
        if name in after:
            screen.put(f"{name.replace('_', ' '):<15}{after[name]}")
    for name in ("positions", "orders"):
        if name in after:
            screen.put(f"{name:<15}{len(after[name])}")
    if document["commands"]:
        cells = [
            (
                each["sent_at"],
                each["command"],
                each["user_name"],
                each["state"] or "waits",
                each["reason"] or each["note"],
            )
            for each in document["commands"]
        ]
        screen.put_table(("sent", "command", "by", "state after", "reason"), cells, folds=(4,))
    return 0


@app.command
def acknowledge(
    deployment: str,
    /,
    *,
    reason: Annotated[str, option("--reason", "What you found. It is recorded.")] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Say that you have read the alarm of a deployment: the same as `pitboss command DEPLOYMENT acknowledge`.

    An alarm that is not acknowledged within a minute halts a live deployment.

    For example:

        pitboss deployments acknowledge 3f9a

    Parameters
    ----------
    deployment
        Its id, or its first characters.
    """
    return command(deployment, "acknowledge", reason=reason, json=json, location=location)


def command(
    deployment: str,
    name: Command,
    /,
    *,
    reason: Annotated[str, option("--reason", "Why; required to resume after a halt. It is recorded.")] = "",
    json: Json = False,
    location: Location,
) -> int:
    import asyncio

    from pitboss.core.instant import iso
    from pitboss.jobs.executors.live import attend
    from pitboss.runs.deployments import command as send

    with location.existing_workspace() as workspace:
        sent = asyncio.run(send(workspace, deployment, name, reason, LOCAL_USER))
        state = sent.state or workspace.deployments.get(sent.deployment_id).state
        process = attend(workspace, sent.deployment_id)
    acked_at = None if sent.acked_at is None else iso(sent.acked_at)
    if json:
        screen.put_json({"command_id": sent.id, "acked_at": acked_at, "state": state, "note": sent.note or None})
    elif acked_at is None:
        screen.put(f"{name} is stored, but not carried out yet")
    else:
        screen.put(f"{name}: the deployment is {state}" + (f" ({sent.note})" if sent.note else ""))
    if process:
        screen.note(process)
    return 0 if acked_at is not None else 1


command.__doc__ = f"""Tell a deployment what to do, and wait until it has done so.

    {MEANINGS}

    For example:

        pitboss command 3f9a pause
        pitboss command 3f9a resume --reason 'the feed was down; prices checked'

    Exit code 1 if no process has carried it out within ten seconds.

    Parameters
    ----------
    deployment
        Its id, or its first characters.
    name
        The command.
    """
