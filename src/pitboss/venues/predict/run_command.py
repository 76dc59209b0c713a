"""The command `pitboss predict run`: runs an agent of the predict venue live, on paper or on the chain."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.live_options import DEFAULT_LIVE_OPTIONS, LiveCommandOptions
from pitboss.terminal.options import Amount, Duration, Name, Override, WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions
from pitboss.venues.predict.writer_choice import Network, Writer

if TYPE_CHECKING:
    from pitboss.live.board import Board, Entry
    from pitboss.runs.live_session import RunStart
    from pitboss.venues.predict.deployment import PredictDeployment


def register(app: App) -> None:
    """Add the command to its group."""
    app.command(run)


def run(
    skill: Path,
    /,
    *,
    model: Annotated[
        Name, option("--model", "Model or policy in place of the skill's: policy/alternate, groq/…, llm.")
    ] = "",
    every: Annotated[
        Duration | None, option("--every", "Time between ticks, from 1s to 1h. Default: the skill's, 60s.")
    ] = None,
    equity: Annotated[Amount, option("--equity", "Paper money to start with, in DUSDC.")] = Decimal(100),
    set_: Override = (),
    port: Annotated[
        WholeNumber | None, option("--port", "Port of the status endpoint; 0 selects any free port. Default: 8083.")
    ] = None,
    ticks: Annotated[
        WholeNumber | None, option("--ticks", "Stop after this number of ticks; default: run until stopped.")
    ] = None,
    once: Annotated[bool, option("--once", "Stop after one tick.")] = False,
    scheduled: Annotated[
        bool,
        option(
            "--scheduled", "Trade the markets of the protocol's schedule, with fitted surfaces, without an indexer."
        ),
    ] = False,
    indexer: Annotated[
        str, option("--indexer", "Address of the protocol's indexer. Default: the setting predict_server_url.")
    ] = "",
    prices_url: Annotated[
        str, option("--prices-url", "Address of the price feed, prices and candles. Default: Pyth.")
    ] = "",
    writer: Annotated[
        Writer, option("--writer", "Where orders go: the paper venue, or signed transactions on Sui.")
    ] = "paper",
    network: Annotated[
        Network | None, option("--network", "Network of the Sui writer. Default: the setting sui_network, testnet.")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "With --writer sui: simulate every transaction on the chain, and sign and send none.")
    ] = False,
    live: LiveCommandOptions = DEFAULT_LIVE_OPTIONS,
    json: Annotated[bool, Parameter(name="--json", help="Print one JSON object a line for every tick.")] = False,
    place: Location,
) -> int:
    """Run an agent on the protocol's markets as its indexer reports them; on paper unless --writer says otherwise.

    Orders on paper are filled by the protocol's own pricing, nothing is signed and no real money is spent. --scheduled
    needs no indexer: the markets are those of the protocol's schedule, with surfaces fitted to the price's volatility.

    The agent ticks at multiples of the time between ticks until it is stopped (Ctrl-C or SIGTERM finish the current
    tick). Every tick is stored in a run, and a restart resumes that run. `/status` reports its state; `/health` reports
    that it is up. The environment variables AGENT_STRATEGY, AGENT_TRADE_DUSDC, AGENT_TICK_MS, AGENT_STATUS_PORT,
    AGENT_NAME and AGENT_PROMPT_FILE apply unless the matching option is given; with --writer sui also
    AGENT_PREDICT_MANAGER_ID and TRADE_AGENT_ID; the key is that of `pitboss signer run`. Mainnet has to be confirmed at
    a terminal. For example:

        pitboss predict run btc-brain.yaml --model policy/alternate --indexer https://indexer.example
        pitboss predict run btc-brain.yaml --model policy/alternate --scheduled
        pitboss predict run btc-brain.yaml --writer sui --dry-run --once
        pitboss predict run btc-brain.yaml --every 30s --max-cost-usd 5 --max-cost-usd-per-day 1

    Parameters
    ----------
    skill
        A .yaml or .json file of the predict venue.
    """
    import asyncio

    from pitboss.bootstrap.machine import environment
    from pitboss.runs.live_session import Listener
    from pitboss.venues.predict.chain_commands import changed_settings, confirm_mainnet
    from pitboss.venues.predict.deployment import LiveOptions, deployment
    from pitboss.venues.predict.live import run_live
    from pitboss.venues.predict.status import caps_line

    live.check()
    options = LiveOptions(
        overrides=set_,
        model=model,
        every_ms=every,
        equity=equity,
        host=live.host,
        port=port,
        ticks=1 if once else ticks,
        begin=live.begin,
        max_cost_usd=live.max_cost_usd,
        max_cost_usd_per_day=live.max_cost_usd_per_day,
        price_in=live.price_in,
        price_out=live.price_out,
        any_price=live.yes,
        scheduled=scheduled,
        indexer_url=indexer,
        prices_url=prices_url,
        writer=writer,
        network=network,
        dry_run=dry_run,
    )
    config = deployment(skill, options, environment)
    if config.writer == "sui":
        confirm_mainnet(changed_settings(place, network), dry_run, f"the agent {caps_line(config)}")
    listener = Listener(
        lambda start: _print_start(start, config, json), lambda entry, board: _print_entry(entry, board, json)
    )
    with place.workspace() as workspace:
        ended = asyncio.run(run_live(workspace, config, listener))
    return _print_end(place, ended.run.id, ended.how, ended.board)


def _print_start(start: "RunStart", config: "PredictDeployment", json: bool) -> None:
    from pitboss.venues.predict.status import WHERE, caps_line

    if json:
        screen.put_line(
            {
                "kind": "began",
                "run_id": start.run_id,
                "mode": config.mode,
                "markets": "scheduled" if config.scheduled else "indexer",
                "model": start.model,
                "every_ms": config.every_ms,
                "status": f"{start.address}/status",
                "ticks": start.ticks,
                "warnings": list(start.warnings),
            }
        )
    for warning in start.warnings:
        screen.note(f"note: {warning}")
    seconds = config.every_ms / 1000
    went = f", going on after {plural(start.ticks, 'tick')}" if start.ticks else ""
    markets = "the markets of the schedule" if config.scheduled else "the protocol's markets"
    screen.note(f"run {start.run_id}, {WHERE[config.mode]}, {markets} with live prices{went}")
    screen.note(f"{start.model} decides every {seconds:g} s; it {caps_line(config)}")
    screen.note(f"status: {start.address}/status   stop: Ctrl-C")


def _print_entry(entry: "Entry", board: "Board", json: bool) -> None:
    if json:
        screen.put_line(entry)
    else:
        screen.put(line_of(entry, board))


def line_of(entry: "Entry", board: "Board") -> str:
    """Format an entry as one line."""
    head = entry["at"][:19].replace("T", " ")
    happened = "; ".join(_event_text(event) for event in entry.get("events", ()) if _is_reported(event))
    if entry["kind"] == "tick":
        parts = [
            f"tick {entry['tick']}",
            _decision_text(entry),
            happened,
            f"equity {_amount(board.account.get('equity'))}",
        ]
    elif entry["kind"] == "missed":
        count = plural(entry["slots"], "tick")
        parts = [f"{count} missed, up to {entry['until']}"]
    elif entry["kind"] == "remark":
        parts = [entry["detail"]]
    else:
        parts = [happened or "markets settled" if entry["kind"] == "happened" else "the end"]
    return f"{head}  " + "  ".join(part for part in parts if part)


def _decision_text(entry: "Entry") -> str:
    flags = f" ({', '.join(entry['flags'])})" if entry["flags"] else ""
    decisions = [
        f"{_intent_text(intent)} {_verdict_text(verdict)}"
        for intent, verdict in zip(entry["intents"], entry["verdicts"], strict=False)
    ]
    why = f": {entry['reasoning'][:100]}" if entry["flags"] and entry["reasoning"] else ""
    return ("; ".join(decisions) or "hold") + flags + why


def _intent_text(intent: Any) -> str:
    if not isinstance(intent, dict):
        return "something that is no decision"
    parts = [intent.get("action"), intent.get("side"), intent.get("strike"), intent.get("market_id")]
    spend = f" for {_amount(intent['spend'])}" if intent.get("spend") is not None else ""
    return " ".join(str(part)[:40] for part in parts if part is not None) + spend


def _verdict_text(verdict: dict[str, Any]) -> str:
    code = f" by {verdict['code']}" if verdict["code"] else ""
    detail = f" ({verdict['detail'][:160]})" if verdict["outcome"] == "refused" and verdict["detail"] else ""
    return f"→ {verdict['outcome']}{code}{detail}"


def _is_reported(event: dict[str, Any]) -> bool:
    """Whether to print an event: the settlement of a market only if it had an open position."""
    return event["kind"] != "accepted" and (event["kind"] != "settled" or "payout" in event)


def _event_text(event: dict[str, Any]) -> str:
    parts = [event["kind"], event.get("action"), event.get("side"), event.get("strike")]
    text = " ".join(str(part) for part in parts if part)
    if "payout" in event:
        return f"{text} paid {_amount(event['payout'])}"
    if "cost" in event:
        return f"{text} at {_amount(event.get('price'))} for {_amount(event['cost'])}"
    return f"{text} by {event['code']}" if event.get("code") else text


def _amount(value: object) -> str:
    try:
        return f"{Decimal(str(value)):.4f}".rstrip("0").rstrip(".")
    except ArithmeticError:
        return str(value)[:40]


def _print_end(place: WorkspaceOptions, run_id: str, how: str, board: "Board") -> int:
    screen.note(
        f"run {run_id}: {plural(board.ticks, 'tick')}, {board.acted} acted, {plural(board.errors, 'error')}, {board.missed_slots} missed"
    )
    if how == "complete":
        screen.note(f"hint: check it with `{place.command_line(f'runs verify {run_id}')}`")
        return 0
    screen.note("stopped; start it again to continue this run, or with --new to start another")
    return 0 if how == "terminated" else INTERRUPTED
