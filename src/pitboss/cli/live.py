"""`pitboss live …`: the process that hosts deployments, the accounts they trade on, and the checks before real money."""

from typing import Annotated

from cyclopts import App

from pitboss.cli.live_accounts import app as accounts
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Duration, Json, WholeNumber, option
from pitboss.terminal.workspace_options import Location

app = App(name="live", help="Host deployments, and check that everything is ready for real money.")
app.command(accounts)


@app.command
def host(
    *deployments: str,
    idle_exit: Annotated[
        Duration | None,
        option("--idle-exit", "Exit after this time without a deployment, such as 30s. Default: never."),
    ] = None,
    metrics_port: Annotated[
        WholeNumber | None,
        option("--metrics-port", "Serve /metrics for Prometheus, and /health, on this port; 0 takes any that is free."),
    ] = None,
    metrics_host: Annotated[str, option("--metrics-host", "Address on which they are served.")] = "127.0.0.1",
    expose: Annotated[
        bool, option("--expose", "Let other machines read the metrics, which have no authentication.")
    ] = False,
    location: Location,
) -> int:
    """Work on deployments in the foreground until stopped. Others continue them if this process is lost.

    The first Ctrl-C or SIGTERM finishes the current ticks and leaves the deployments to another host, the second does not
    wait. Stopping a host stops no deployment: `pitboss command` does.

    For example:

        pitboss live host
        pitboss live host --metrics-port 9464
        pitboss live host 3f9a --db postgresql://user@host/pitboss

    Parameters
    ----------
    deployments
        Work only on these; default: on all that no other process works on.
    """
    import asyncio

    from pitboss.core.errors import UserError
    from pitboss.jobs.host_listener import HostListener
    from pitboss.jobs.live_host import HostSettings
    from pitboss.jobs.live_host import host as run_host
    from pitboss.jobs.live_notices import check_channels
    from pitboss.live.board import Entry
    from pitboss.live.status import is_loopback
    from pitboss.store.deployments import Deployment

    if not is_loopback(metrics_host) and not expose:
        raise UserError(f"--metrics-host {metrics_host}: other machines could read the metrics", "add --expose")

    def show_entry(deployment: Deployment, entry: Entry) -> None:
        screen.note(f"{deployment.id[:8]} {_line(entry)}")

    with location.workspace() as workspace:
        check_channels(workspace)
        only = frozenset(workspace.deployments.get(each).id for each in deployments)
        settings = HostSettings(
            only=only,
            idle_exit_s=None if idle_exit is None else idle_exit / 1_000,
            metrics=None if metrics_port is None else (metrics_host, metrics_port),
        )
        listener = HostListener(
            begun=lambda each: screen.note(f"{each.id[:8]} begins: {each.skill} on {each.venue}, {each.mode}"),
            ended=lambda each, outcome: screen.note(f"{each.id[:8]} ends here: {outcome}"),
            entry=show_entry,
            state=lambda each: screen.note(f"{each.id[:8]} is {each.state} {each.reason}".rstrip()),
        )
        screen.note("hosting deployments: Ctrl-C leaves them to another host")
        interrupted = asyncio.run(run_host(workspace, settings, listener))
    return INTERRUPTED if interrupted else 0


@app.command
def preflight(
    *,
    account: Annotated[str, option("--account", "Account to check. Default: the only one.")] = "",
    skill: Annotated[
        str, option("--skill", "Skill to check: a file, or the name of a saved one. Default: the newest on trial.")
    ] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Check everything that real money needs, without ordering anything; exit status 1 if something fails.

    A test goes to every notification channel. If all checks pass, the skill may be deployed on the account for 24 hours; on
    mainnet `pitboss deploy --mode live` is refused without that.

    For example:

        pitboss live preflight --account main --skill trend-thesis.yaml
        pitboss live preflight --json
    """
    import asyncio

    from pitboss.runs.documents import read_file_or_saved
    from pitboss.runs.live_preflight import preflight as run_checks
    from pitboss.runs.venues import venue_of
    from pitboss.skill.load import read_skill
    from pitboss.terminal.checklist import put_checklist

    with location.workspace() as workspace:
        document = None
        if skill:
            plain = read_file_or_saved(workspace, skill)
            document = read_skill(plain, venue_of(plain).skill_type())
        checks = asyncio.run(run_checks(workspace, account, document))
    return put_checklist(checks, json)


@app.command
def notify(
    *,
    test: Annotated[bool, option("--test", "Send a test through every channel.")] = False,
    owner: Annotated[str, option("--owner", "Whose channels: those of `notifications.toml`.")] = "local",
    json: Json = False,
    location: Location,
) -> int:
    """List the channels by which you are told of fills, refusals, halts and outages; exit status 1 if a test does not arrive.

    For example:

        pitboss live notify --test
    """
    import asyncio

    from pitboss.bootstrap.notification_channels import open_channels
    from pitboss.runs.notifications import events_of, send_test

    with location.existing_workspace() as workspace:
        channels = open_channels(workspace.settings, owner)
        events = sorted(events_of(workspace.settings.notify_events))
        problems = dict(asyncio.run(send_test(channels, workspace.now()))) if test else {}
    ok = not any(problems.values())
    rows = [
        {
            "name": each.name,
            "ok": not problems.get(each.name),
            "detail": problems.get(each.name) or ("sent" if test else ""),
        }
        for each in channels
    ]
    if json:
        screen.put_json({"ok": ok and bool(rows or not test), "events": events, "channels": rows})
    elif not rows:
        screen.note(
            "no channel is set; `pitboss settings` lists notify_webhook_url, notify_telegram_chat, notify_email_to"
        )
    else:
        screen.put_table(
            ("channel", "ok", "detail"), [(row["name"], "yes" if row["ok"] else "no", row["detail"]) for row in rows]
        )
    return 0 if ok and (rows or not test) else 1


def _line(entry: "dict[str, object]") -> str:
    """An entry on one line."""
    if entry["kind"] == "remark":
        return f"{entry['at']} {entry['detail']}"
    parts = [str(entry["at"]), str(entry["kind"])]
    flags = entry.get("flags")
    if isinstance(flags, list) and flags:
        parts.append(",".join(map(str, flags)))
    verdicts = entry.get("verdicts")
    for verdict in verdicts if isinstance(verdicts, list) else []:
        parts.append(f"{verdict['outcome']} {verdict['code'] or ''} {verdict['detail']}".strip())
    events = entry.get("events")
    for event in events if isinstance(events, list) else []:
        parts.append(f"{event['kind']} {event['symbol']}".strip())
    return " ".join(parts)
