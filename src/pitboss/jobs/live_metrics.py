"""The figures of a host for Prometheus: `/metrics`, and `/health` for a supervisor. Read only, on loopback unless told otherwise.

Counts come from the board of each deployment, which is made from its records, so that they go on after a restart and never run
backwards. Reasons and other free text are in no label: the number of time series stays small, and no text of a stranger leaves.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args

from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import DeploymentState
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS
from pitboss.jobs.host_listener import HostListener
from pitboss.jobs.metrics_text import CONTENT_TYPE, LatencyHistogram, MetricKind, Sample, write_metric
from pitboss.live.status import HEADERS, is_local_name, is_loopback
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.store.deployments import SentCommand
from pitboss.store.retry import Unreachable
from pitboss.store.watchdog_beats import read_beat

if TYPE_CHECKING:
    from aiohttp import web

COMMAND_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STATES: tuple[DeploymentState, ...] = get_args(DeploymentState)
LONGEST_TURN_S = 10.0
"""An event loop that has not turned for longer hangs: the host is not healthy, and the heartbeat of its deployments ends."""

Figure = tuple[str, MetricKind, str, Callable[[DeploymentRun, Mapping[str, Any]], float | None]]


def _equity(run: DeploymentRun) -> float | None:
    account = run.board.account
    return _number(account.get("equity_usd", account.get("equity")))


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(Decimal(str(value)))
    except InvalidOperation:
        return None


FIGURES: tuple[Figure, ...] = (
    ("ticks_total", "counter", "Ticks executed.", lambda run, status: run.board.ticks),
    ("acted_total", "counter", "Ticks that ordered something.", lambda run, status: run.board.acted),
    ("errors_total", "counter", "Ticks without a decision because of a failure.", lambda run, status: run.board.errors),
    ("missed_slots_total", "counter", "Slots that were missed.", lambda run, status: run.board.missed_slots),
    ("fills_total", "counter", "Fills.", lambda run, status: _events(run, "filled")),
    ("rejections_total", "counter", "Orders that the venue rejected.", lambda run, status: _events(run, "rejected")),
    ("equity_usd", "gauge", "Value of the account after the newest record.", lambda run, status: _equity(run)),
    (
        "cost_usd_total",
        "counter",
        "Cost of model calls; absent if a price is unknown.",
        lambda run, status: _number(run.board.cost_usd),
    ),
    (
        "open_refused",
        "gauge",
        "1 if nothing may be opened now, whatever the reason.",
        lambda run, status: float(bool(run.open_refusal())),
    ),
    (
        "feed_age_seconds",
        "gauge",
        "Age of the oldest of the newest prices of its symbols.",
        lambda run, status: _number(status.get("data_age_s")),
    ),
)


def _events(run: DeploymentRun, kind: str) -> int:
    return sum(count for (each, _), count in run.board.events.items() if each == kind)


class MeasuredHost(Protocol):
    """A host as its figures see it."""

    @property
    def turned_s(self) -> float:
        """When its event loop was last seen to turn, by the stopwatch."""
        ...

    def runs(self) -> Sequence[DeploymentRun]:
        """The deployments that it works on."""
        ...


class HostMetrics:
    """The figures of one host."""

    def __init__(self, host: MeasuredHost, workspace: Workspace) -> None:
        self._host = host
        self._workspace = workspace
        self._latency = LatencyHistogram(COMMAND_BOUNDS_S)

    def observe_command(self, sent: SentCommand) -> None:
        """Count the time that a command took from being sent to being acknowledged."""
        if sent.acked_at is not None:
            self._latency.observe((sent.acked_at - sent.sent_at) / SECOND_MS)

    def listening(self, listener: HostListener) -> HostListener:
        """The listener, with the time of commands measured."""

        def command(sent: SentCommand) -> None:
            self.observe_command(sent)
            listener.command(sent)

        return replace(listener, command=command)

    def text(self) -> str:
        """All figures in the text format."""
        runs = list(self._host.runs())
        statuses = {run.deployment.id: _status(run) for run in runs}
        lines: list[str] = []
        for name, kind, meaning, figure in FIGURES:
            samples = [
                (_labels(run), value) for run in runs if (value := figure(run, statuses[run.deployment.id])) is not None
            ]
            lines += write_metric(f"pitboss_deployment_{name}", kind, meaning, samples)
        states = [
            ({**_labels(run), "state": state}, float(run.control.state == state)) for run in runs for state in STATES
        ]
        lines += write_metric("pitboss_deployment_state", "gauge", "1 for the state that it is in.", states)
        refusals = [
            ({**_labels(run), "code": code or "none"}, float(count))
            for run in runs
            for code, count in sorted(run.board.refusals.items())
        ]
        lines += write_metric(
            "pitboss_deployment_refusals_total", "counter", "Intents that the rules refused, by code.", refusals
        )
        lines += write_metric(
            "pitboss_deployment_heartbeat_age_seconds", "gauge", "Time since its last heartbeat.", self._beats(runs)
        )
        lines += write_metric(
            "pitboss_watchdog_age_seconds", "gauge", "Time since the last heartbeat of the watchdog.", self._watchdog()
        )
        lines += write_metric(
            "pitboss_host_deployments", "gauge", "Deployments on this host.", [({}, float(len(runs)))]
        )
        lines += self._latency.lines("pitboss_command_seconds", "Time from a command to its acknowledgement.")
        return "\n".join(lines) + "\n"

    def health(self) -> dict[str, Any]:
        """Whether the host works; `ok` is false if its loop hangs or the database does not answer."""
        problem = "the event loop hangs" if stopwatch() - self._host.turned_s > LONGEST_TURN_S else ""
        try:
            self._workspace.deployments.listing(1)
        except (Unreachable, UserError):
            problem = problem or "the database does not answer"
        return {"ok": not problem, "problem": problem or None, "deployments": len(self._host.runs())}

    def _beats(self, runs: list[DeploymentRun]) -> Iterator[Sample]:
        try:
            now, listed = self._workspace.deployments.heartbeats()
        except (Unreachable, UserError):
            return
        heard = {each.id: at for each, at in listed}
        for run in runs:
            at = heard.get(run.deployment.id)
            if at is not None:
                yield _labels(run), (now - at) / SECOND_MS

    def _watchdog(self) -> list[Sample]:
        try:
            beat, age_ms = read_beat(self._workspace.database)
        except (Unreachable, UserError):
            return []
        return [] if beat is None else [({}, age_ms / SECOND_MS)]


def _labels(run: DeploymentRun) -> dict[str, str]:
    deployment = run.deployment
    return {"deployment": deployment.id, "skill": deployment.skill, "venue": deployment.venue, "mode": deployment.mode}


def _status(run: DeploymentRun) -> Mapping[str, Any]:
    try:
        return run.status()
    except (RuntimeError, KeyError, ValueError):  # it is being opened or closed
        return {}


@asynccontextmanager
async def serving_metrics(metrics: HostMetrics, place: tuple[str, int] | None) -> AsyncIterator[str]:
    """Serve `/metrics` and `/health` at an address and port for the duration of the block; yields the URL, empty if at none."""
    if place is None:
        yield ""
        return
    host, port = place
    import orjson
    from aiohttp import web

    async def answer(request: "web.BaseRequest") -> "web.Response":
        if is_loopback(host) and not is_local_name(request.headers.get("Host", "")):
            return web.Response(status=403, text="this host name is not allowed\n", headers=HEADERS)
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET\n", headers={**HEADERS, "Allow": "GET, HEAD"})
        if request.path == "/metrics":
            return web.Response(body=metrics.text().encode(), headers={**HEADERS, "Content-Type": CONTENT_TYPE})
        if request.path == "/health":
            document = metrics.health()
            headers = {**HEADERS, "Content-Type": "application/json"}
            return web.Response(body=orjson.dumps(document), status=200 if document["ok"] else 503, headers=headers)
        return web.Response(status=404, text="there are /metrics and /health\n", headers=HEADERS)

    server = web.ServerRunner(web.Server(answer, access_log=None, keepalive_timeout=15.0), shutdown_timeout=1.0)
    await server.setup()
    try:
        try:
            await web.TCPSite(server, host, port).start()
        except OSError as error:
            raise UserError(
                f"metrics cannot be served on {host}:{port} ({error.strerror or error})",
                "choose another --metrics-port; 0 takes any that is free",
            ) from None
        listens = cast("tuple[str, int]", server.addresses[0][:2])
        yield f"http://{f'[{listens[0]}]' if ':' in listens[0] else listens[0]}:{listens[1]}"
    finally:
        await server.cleanup()
