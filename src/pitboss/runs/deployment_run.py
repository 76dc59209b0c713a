"""The work on one deployment, inside a process that hosts it: from its lease to the moment that it stops or is given up.

The host (`jobs/live_host.py`) claims the lease, delivers commands and renews the heartbeat; this module opens the venue's side
and drives the run. How it ends:

    the command `stop`, `kill`    the deployment is stopped; after `stop` the run is complete
    the host leaves               the run is released; another process continues it from its last record
    an outage (TransientError)    the same, after a pause that grows
    a fault or a user's error     the deployment is halted with the text; it waits for a person
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from pitboss.bootstrap.live_process import StopCause
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core import codec
from pitboss.core.deployment import NEEDS_ACCOUNT, DeploymentState, OpenCommand
from pitboss.core.errors import InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS
from pitboss.core.ports import Clock
from pitboss.live.board import ALARM_MARK, Board, Entry
from pitboss.live.control import Control
from pitboss.runs.build_check import BUILD_MISMATCH, BuildCheck
from pitboss.runs.live_deployment import LiveDeployment, read_deployment
from pitboss.runs.live_session import Driving, Listener, StoredLiveRun, work_live
from pitboss.runs.venues import venue_named
from pitboss.store.deployment_alarms import overdue_alarms, raise_alarm
from pitboss.store.deployment_caps import caps_changes, caps_numbers
from pitboss.store.deployments import Deployment, SentCommand
from pitboss.store.lifecycle import ACTIVE, LeaseLost
from pitboss.store.watchdog_beats import watch_problem

LOG = logging.getLogger("pitboss.live")
FAULT = "fault"
UNREAD_ALARM = "unread_alarm"
LIQUIDATED = "liquidated"
"""The kind of the receipt of a liquidation, at every venue that has them."""
CAPS_CHANGED = "the caps have changed"
WATCHDOG_SILENT_MS = 15 * SECOND_MS
"""A watchdog that is demanded must have been heard within this time, or nothing opens."""

Outcome = Literal["stopped", "released", "outage", "halted", "lost"]
"""How the work of this process on a deployment ended."""

Notice = Callable[[Deployment, Entry], None]
"""Called with every entry of a deployment: ticks, fills, refusals, halts."""


class DeploymentStop:
    """The stop of the work on a deployment: requested by its host. The pause ends then."""

    def __init__(self) -> None:
        self.requested = False
        self._event = asyncio.Event()

    @property
    def cause(self) -> StopCause | None:
        """Why it stops: the host is told to end."""
        return "terminated" if self.requested else None

    def request(self) -> None:
        """Stop after the current tick."""
        self.requested = True
        self._event.set()

    async def pause(self, wait_ms: int) -> None:
        """Wait, at most until the stop is requested."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / SECOND_MS):
                await self._event.wait()


class StoredControl:
    """Implements `live.control.ControlStore` with the row of a deployment."""

    def __init__(
        self,
        workspace: Workspace,
        deployment_id: str,
        notify: Callable[[Deployment], None],
        on_command: Callable[[SentCommand], None] = lambda sent: None,
    ) -> None:
        self._deployments = workspace.deployments
        self._id = deployment_id
        self._database = workspace.database
        self._notify = notify
        self._on_command = on_command
        self.caps_number = 0
        """The change of caps that is in effect in this process."""

    def acknowledge(self, command: OpenCommand, note: str) -> DeploymentState:
        """Store that a command was carried out."""
        self._on_command(self._deployments.acknowledge(command, note))
        return self._changed(self._deployments.get(self._id))

    def acknowledged_since(self, number: int) -> Sequence[OpenCommand]:
        """The acknowledged commands after a number, oldest first."""
        sent = self._deployments.commands(self._id)
        return [
            OpenCommand(each.id, self._id, each.number, each.command, each.reason, each.user_name)
            for each in reversed(sent)
            if each.number > number and each.acked_at is not None
        ]

    def caps_since(self, number: int) -> Sequence[Mapping[str, str | int]]:
        """The changes of caps after a number, up to the one in effect here, as facts of receipts."""
        return [
            {
                "number": each.number,
                "by": each.user_name,
                "reason": each.reason,
                "caps": codec.dumps(codec.number_fragments(dict(each.caps))).decode(),
            }
            for each in caps_changes(self._database, self._id, number, self.caps_number)
        ]

    def halt(self, code: str, reason: str) -> DeploymentState:
        """Store a halt."""
        return self._changed(self._deployments.halt(self._id, code, REDACTOR.redact(reason)))

    def pause(self, code: str, reason: str) -> DeploymentState:
        """Store a pause."""
        return self._changed(self._deployments.pause(self._id, code, REDACTOR.redact(reason)))

    def _changed(self, deployment: Deployment) -> DeploymentState:
        self._notify(deployment)
        return deployment.state


class DeploymentRun:
    """The work of one process on one deployment, under the lease `epoch`."""

    def __init__(
        self,
        workspace: Workspace,
        deployment: Deployment,
        epoch: int,
        on_entry: Notice = lambda deployment, entry: None,
        on_state: Callable[[Deployment], None] = lambda deployment: None,
        clock: Clock | None = None,
        stop: "DeploymentStop | None" = None,
        on_command: Callable[[SentCommand], None] = lambda sent: None,
    ) -> None:
        self.deployment = deployment
        self.epoch = epoch
        self.stop = stop or DeploymentStop()
        self._clock = clock
        self._workspace = workspace.owned_by(deployment.owner)
        self._on_entry = on_entry
        self._on_state = on_state
        self.builds = BuildCheck(self._workspace.database, deployment.id, build())
        self._store = StoredControl(self._workspace, deployment.id, self._state_changed, on_command)
        self.control = Control(self._store, deployment.state, deployment.code)
        self._is_open = False
        self.board = Board()
        self.status: Callable[[], dict[str, Any]] = dict

    async def work(self) -> Outcome:
        """Work until the deployment stops, the host leaves, or the work fails. Raises nothing but what the store raises."""
        outcome, error_text = await self._worked()
        if outcome != "lost":
            self._release(error_text)
        return outcome

    async def _worked(self) -> tuple[Outcome, str]:
        """How the work ended, with the text of an error."""
        fields = {"deployment": self.deployment.id}
        try:
            await self._drive()
        except LeaseLost:
            return "lost", ""
        except (RunCancelled, asyncio.CancelledError):  # a kill, or a host that does not wait
            pass
        except TransientError as error:
            LOG.warning("deployment outage", extra={"fields": {**fields, "error": REDACTOR.redact(str(error))}})
            return "outage", str(error)
        except (UserError, InvariantError) as error:
            return self._halted(_fault_text(error)), str(error)
        except Exception as error:  # noqa: BLE001 - a fault of one deployment must not end the others
            LOG.error("deployment fault", extra={"fields": {**fields, "error": REDACTOR.redact(repr(error))}})
            return self._halted(_fault_text(error)), repr(error)
        return "stopped" if self.control.stopped else "released", ""

    def _release(self, error_text: str) -> None:
        """Leave the run to the next process at once, if its end was not written: else it would wait for the lease to expire."""
        runs, run_id = self._workspace.runs, self.deployment.run_id
        run = runs.get_or_none(run_id)
        if run is None or run.lease_epoch != self.epoch or run.status not in ACTIVE:
            return
        with suppress(LeaseLost):
            if error_text:
                runs.fail(run_id, self.epoch, REDACTOR.redact(error_text))
            else:
                runs.set_status(run_id, "cancelled", self.epoch)

    async def _drive(self) -> None:
        workspace, deployment = self._workspace, self.deployment
        venue = venue_named(deployment.venue)
        run = workspace.runs.get(deployment.run_id)
        live: LiveDeployment = read_deployment(
            workspace,
            deployment,
            venue.skill_type(),
            venue.request_of(run.params),
            **self.ways(),
        )
        self._store.caps_number = live.caps_number
        self._is_open = True
        opening = asyncio.create_task(self._obey_while_opening(asyncio.current_task()))
        try:
            async with venue.open_live(live) as side:
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)
                self._check_builds()
                stored_run = StoredLiveRun(workspace, deployment.run_id, self.epoch, "", self.board, self._clock)
                listener = Listener(entry=lambda entry, board: self._entered(entry))
                driving = Driving(self.stop, self._never, self.control, self._show, listener, measures_stopped=False)
                try:
                    await work_live(stored_run, side, driving)
                except (LeaseLost, RunCancelled, TransientError):
                    raise
                except Exception as error:
                    self._halted(_fault_text(error))  # while the account is open, which then cancels what would open
                    raise
        finally:
            opening.cancel()  # also where the account could not be opened

    def ways(self) -> dict[str, Callable[..., Any]]:
        """The ways in which a venue reaches this process: fields of `LiveDeployment`."""
        return {
            "notify": self._remark,
            "open_refusal": self.open_refusal,
            "withdraws_opens": lambda: self.control.withdraws_opens,
            "halt": self.control.halt,
            "wake": self.control.wake,
            "alarm": self.alarm,
            "heard_signer": lambda build: self.builds.hear("signer", build),
        }

    def open_refusal(self) -> str:
        """Why nothing may open at this moment: a command, the stored state, a lost lease, processes of different builds, an
        overdue alarm, or a missing watchdog.

        With real orders the database is asked, directly before bytes leave: a process that was suspended must not open what
        the watchdog has halted or another process works on. What cannot be read is a refusal.
        """
        refusal = self.control.open_refusal()
        if refusal or self.deployment.mode != "live":
            return refusal
        try:
            state, code, epoch = self._workspace.deployments.state_and_lease(self.deployment.id)
            if epoch != self.epoch:
                return "another process works on the deployment"
            if state == "halted":
                self.control.adopt_halt(code)
            if state != "running":
                return f"the deployment is {state}"
            alarms = overdue_alarms(self._workspace.database, [self.deployment.id])
            if problem := self._check_builds() or self.halt_for_alarm(alarms.get(self.deployment.id, "")):
                return problem
            numbers = caps_numbers(self._workspace.database, [self.deployment.id])
            if numbers.get(self.deployment.id, 0) != self._store.caps_number:
                return CAPS_CHANGED
            if not self._workspace.settings.live_require_watchdog:
                return ""
            return watch_problem(self._workspace.database, self.deployment.id, WATCHDOG_SILENT_MS)
        except UserError as error:  # `Unreachable` is one
            return f"the state of the deployment cannot be read: {error.message}"

    def _check_builds(self) -> str:
        """Store the builds of the processes that take part; in mode live, halt where they differ, and say how."""
        problem = self.builds.problem(WATCHDOG_SILENT_MS)
        if not problem or self.deployment.mode != "live":
            return ""
        self.control.halt(BUILD_MISMATCH, problem)
        return problem

    def alarm(self, text: str) -> None:
        """Tell a person of something critical. If it is not acknowledged within a minute, a live deployment is halted."""
        self._remark(f"{ALARM_MARK}{text}")
        if self.deployment.mode == "live":
            try:
                raise_alarm(self._workspace.database, self.deployment.id, REDACTOR.redact(text))
            except UserError as error:  # nothing opens while the database cannot be read
                LOG.error("alarm not stored", extra={"fields": {"deployment": self.deployment.id, "alarm": text}})
                LOG.error(error.message)

    def halt_for_alarm(self, text: str) -> str:
        """Halt because of an alarm that was not read in time, and return why; nothing if its text is empty."""
        if not text:
            return ""
        problem = f"nobody has acknowledged within a minute: {text}"
        self.control.halt(UNREAD_ALARM, problem)
        return problem

    def follow_caps(self, number: int) -> None:
        """End the work if other caps are in effect than those it was begun with: from now on nothing opens, and the host begins
        it again with the new ones.
        """
        if self._is_open and number != self._store.caps_number and not self.stop.requested:
            self.control.end(CAPS_CHANGED)
            self.stop.request()

    async def _obey_while_opening(self, work: "asyncio.Task[Any] | None") -> None:
        """Carry out commands while the account is not open yet, which an outage can delay; `flatten` and `snapshot` wait."""
        control = self.control
        while True:
            await control.command_delivered()
            command = control.next_command()
            if command is None or command.command in NEEDS_ACCOUNT:
                return
            control.acknowledge(command, "before the account was open")
            if control.stopped and work is not None:
                work.cancel()
                return

    def _halted(self, text: str) -> Outcome:
        """Halt because of a fault that a restart would meet again."""
        self.control.halt(FAULT, text)
        return "halted"

    def _state_changed(self, deployment: Deployment) -> None:
        self.deployment = deployment
        if deployment.state == "running":
            self.builds.forget()
        self._on_state(deployment)

    def _entered(self, entry: Entry) -> None:
        self._on_entry(self.deployment, entry)
        if any(event["kind"] == LIQUIDATED for event in entry.get("events", ())):
            self.alarm("the exchange has liquidated positions of the account")

    def _remark(self, text: str) -> None:
        self._entered(self.board.remark(self._workspace.now(), text))

    def _show(self, tell: Callable[[], dict[str, Any]]) -> None:
        self.status = tell

    @staticmethod
    def _never() -> bool:
        return False


def _fault_text(error: Exception) -> str:
    return str(error) if isinstance(error, UserError | InvariantError) else f"unexpected fault: {error!r}"
