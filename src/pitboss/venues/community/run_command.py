"""The command `pitboss community run`: runs an agent on a forum server, heartbeat by heartbeat."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.live_options import DEFAULT_LIVE_OPTIONS, LiveCommandOptions
from pitboss.terminal.options import Duration, Name, Override, WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions
from pitboss.venues.community.runner_token import TOKEN_NAME, runner_token

if TYPE_CHECKING:
    from pitboss.live.board import Board, Entry
    from pitboss.runs.live_session import RunStart
    from pitboss.venues.community.live import CommunityDeployment

FAILURES = frozenset({"model_error", "deadline", "feed_timeout", "no_decision", "malformed"})
"""Flags of heartbeats that failed."""


def register(app: App) -> None:
    """Add the command to its group."""
    app.command(run)


def run(
    skill: Path,
    /,
    *,
    server: Annotated[str, option("--server", "Address of the forum server, for example http://127.0.0.1:8710.")],
    agent_id: Annotated[str, option("--agent-id", "Id of the agent that this runner acts for.")],
    token_env: Annotated[
        str, option("--token-env", "Environment variable, or name in `pitboss secrets`, of the runner token.")
    ] = TOKEN_NAME,
    protocol: Annotated[
        Literal["1", "2"], option("--protocol", "Protocol of requests; with 2 the token never leaves this machine.")
    ] = "2",
    model: Annotated[
        Name, option("--model", "Model or policy in place of the skill's: policy/silent, groq/…, llm.")
    ] = "",
    every: Annotated[
        Duration | None, option("--every", "Time between heartbeats, from 1s to 24h. Default: the skill's, 60s.")
    ] = None,
    set_: Override = (),
    cycles: Annotated[
        WholeNumber | None, option("--cycles", "Stop after this number of heartbeats; default: run until stopped.")
    ] = None,
    once: Annotated[bool, option("--once", "Stop after one heartbeat.")] = False,
    port: Annotated[WholeNumber, option("--port", "Port of the status endpoint; 0 selects any free port.")] = 0,
    live: LiveCommandOptions = DEFAULT_LIVE_OPTIONS,
    json: Annotated[bool, Parameter(name="--json", help="Print one JSON object a line for every heartbeat.")] = False,
    place: Location,
) -> int:
    """Run an agent in its community: at every heartbeat it reads, decides, is checked against its limits, and acts.

    The runner token is taken from the environment variable that --token-env names, else from `pitboss secrets`; it is
    never an argument. Transactions need an Ethereum node (setting community_rpc_url) and `pitboss signer run`, which
    holds the key. A stopped run goes on where it was, and posts nothing twice.

    For example:

        pitboss community run contract-auditor.yaml --server http://127.0.0.1:8710 --agent-id ID --once
        pitboss community run contract-auditor.yaml --server https://forum.example --agent-id ID --every 10m --max-cost-usd 5

    Parameters
    ----------
    skill
        A .yaml or .json file of the community venue.
    """
    import asyncio

    from pitboss.runs.live_session import Listener
    from pitboss.venues.community.live import CommunityDeployment, run_live

    live.check()
    if cycles is not None and cycles < 1:
        raise UserError("--cycles: must be at least 1", "omit it to run until you stop it")
    if not 0 <= port <= 65_535:
        raise UserError(f"--port: {port} is not from 0 to 65535", "0 selects any free port")
    document, every_ms = _skill(skill, set_, every)
    _check_server(server, place)
    deployment = CommunityDeployment(
        skill=document,
        model=model or document.model,
        every_ms=every_ms,
        server_url=server.rstrip("/"),
        agent_id=agent_id,
        token=runner_token(token_env, place.settings().home),
        protocol=int(protocol),
        host=live.host,
        port=port,
        cycles=1 if once else cycles,
        begin=live.begin,
        max_cost_usd=live.max_cost_usd,
        max_cost_usd_per_day=live.max_cost_usd_per_day,
        price_in=live.price_in,
        price_out=live.price_out,
        any_price=live.yes,
    )
    listener = Listener(
        lambda start: _print_start(start, deployment), lambda entry, board: _print_entry(entry, board, json)
    )
    with place.workspace() as workspace:
        ended = asyncio.run(run_live(workspace, deployment, listener))
    return _print_end(place, ended.run.id, ended.how, ended.board)


def _skill(file: Path, overrides: tuple[str, ...], every: int | None) -> tuple[Any, int]:
    from pitboss.core.instant import DAY_MS, SECOND_MS
    from pitboss.skill.load import check_text, read_text, summary
    from pitboss.venues.community.skill import CommunitySkill

    check = check_text(read_text(file), file.suffix, CommunitySkill, overrides=overrides, folder=file.parent)
    if check.skill is None:
        raise summary(file.name, check.errors)
    every_ms = every or check.skill.every_ms
    if not SECOND_MS <= every_ms <= DAY_MS:
        raise UserError("--every: not from 1s to 24h", "for example --every 60s")
    return check.skill, every_ms


def _check_server(server: str, place: WorkspaceOptions) -> None:
    from pitboss.core.plain_http import check_plain_http
    from pitboss.venues.community.addresses import split_address

    parts = split_address(server, "--server")
    check_plain_http(parts.scheme, parts.hostname, "--server", place.settings().http_hosts)


def _print_start(start: "RunStart", deployment: "CommunityDeployment") -> None:
    for warning in start.warnings:
        screen.note(f"note: {warning}")
    earlier = f", going on after {start.ticks} heartbeats" if start.ticks else ""
    screen.note(f"run {start.run_id}, agent {deployment.agent_id} on {deployment.server_url}{earlier}")
    screen.note(f"{start.model} decides every {deployment.every_ms / 1000:g} s")
    screen.note(f"status: {start.address}/status   stop: Ctrl-C")


def cycle_document(entry: "Entry") -> dict[str, Any]:
    """A heartbeat as one JSON object."""
    results = entry.get("results", [])
    rows = zip(entry["intents"], entry["verdicts"], [*results, *[None] * len(entry["verdicts"])], strict=False)
    return {
        "cycle": entry["tick"],
        "at": entry["at"],
        "actions": [
            {
                "type": intent.get("action") if isinstance(intent, dict) else None,
                "verdict": verdict["outcome"],
                "code": verdict["code"],
                "detail": verdict["detail"],
                "result": result,
                "intent": intent,
            }
            for intent, verdict, result in rows
        ],
        "failed": not FAILURES.isdisjoint(entry["flags"]),
        "flags": entry["flags"],
        "cost_usd": None if entry["costUsd"] is None else float(entry["costUsd"]),
    }


def _print_entry(entry: "Entry", board: "Board", json: bool) -> None:
    del board
    if json:
        if entry["kind"] == "tick":
            screen.put_line(cycle_document(entry))
        elif entry["kind"] == "remark":
            screen.note(entry["detail"])
        return
    screen.put(line_of(entry))


def line_of(entry: "Entry") -> str:
    """An entry as one line, or several for a heartbeat with several actions."""
    head = entry["at"][:19].replace("T", " ")
    if entry["kind"] == "remark":
        return f"{head}  {entry['detail']}"
    if entry["kind"] == "missed":
        return f"{head}  {entry['slots']:,} heartbeats missed, up to {entry['until']}"
    if entry["kind"] != "tick":
        events = ", ".join(str(event.get("action", event["kind"])) for event in entry.get("events", ()))
        return f"{head}  {events or 'the end'}"
    cycle = cycle_document(entry)
    flags = f" ({', '.join(entry['flags'])})" if entry["flags"] else ""
    lines = [f"{head}  heartbeat {cycle['cycle']}{flags}" + ("" if cycle["actions"] else ": nothing done")]
    if entry["flags"] and entry["reasoning"]:
        lines[0] += f": {entry['reasoning'][:100]}"
    for action, intent in zip(cycle["actions"], entry["intents"], strict=False):
        code = f" by {action['code']}" if action["code"] else ""
        detail = f" ({action['detail'][:160]})" if action["verdict"] == "refused" and action["detail"] else ""
        lines.append(f"    {_intent_text(intent)} → {action['verdict']}{code}{detail}")
    return "\n".join(lines)


def _intent_text(intent: Any) -> str:
    if not isinstance(intent, dict):
        return "something that is no action"
    parts = [
        intent.get(name) for name in ("action", "threadType", "title", "functionName", "contractAddress", "threadId")
    ]
    return " ".join(str(part)[:60] for part in parts if part)


def _print_end(place: WorkspaceOptions, run_id: str, how: str, board: "Board") -> int:
    screen.note(
        f"run {run_id}: {plural(board.ticks, 'heartbeat')}, {board.acted} acted, {plural(board.errors, 'error')}, {board.missed_slots} missed"
    )
    if how == "complete":
        screen.note(f"hint: check it with `{place.command_line(f'runs verify {run_id}')}`")
        return 0
    screen.note("stopped; start it again to continue this run, or with --new to start another")
    return 0 if how == "terminated" else INTERRUPTED
