"""`Control`: the state of a deployment and the commands to it, as the process that works on it sees them.

A command takes effect in two steps. When it is delivered, nothing can open any more if it says so (`open_refusal`), and a
decision in progress is abandoned; that takes no longer than the event loop needs. Then the runner records it between two
ticks and acknowledges it, which changes the stored state. What is stored is behind `ControlStore`; nothing here waits for a person.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from pitboss.core.deployment import Command, DeploymentState, OpenCommand, state_after

CLOSES: frozenset[Command] = frozenset({"pause", "flatten", "stop", "kill"})
"""Commands after which nothing may open, from the moment of their delivery."""
ENDS: frozenset[Command] = frozenset({"stop", "kill"})
"""Commands that end the deployment."""
ABANDONS: frozenset[Command] = frozenset({"pause", "flatten", "kill"})
"""Commands that do not wait for a decision in progress. `stop` does."""

Result = TypeVar("Result")


class Interrupted(Exception):
    """A decision was abandoned because of a command."""


class ControlStore(Protocol):
    """Where the state is stored. Each call is one transaction, made before the effect is relied on."""

    def acknowledge(self, command: OpenCommand, note: str) -> DeploymentState:
        """Store that a command was carried out; returns the state after it."""
        ...

    def acknowledged_since(self, number: int) -> Sequence[OpenCommand]:
        """The commands after this number that are acknowledged, oldest first: some while no process had the account."""
        ...

    def caps_since(self, number: int) -> Sequence[Mapping[str, str | int]]:
        """The changes of caps after this number that are in effect in this process, oldest first, as facts of receipts."""
        ...

    def halt(self, code: str, reason: str) -> DeploymentState:
        """Store a halt; returns the state after it."""
        ...

    def pause(self, code: str, reason: str) -> DeploymentState:
        """Store a pause that no person asked for; returns the state after it."""
        ...


class UnstoredControl:
    """The store of a run that is no deployment: its state is kept in memory only."""

    def __init__(self) -> None:
        self._state: DeploymentState = "running"

    def acknowledge(self, command: OpenCommand, note: str) -> DeploymentState:
        """The state after the command."""
        del note
        self._state = state_after(self._state, command.command, command.reason)
        return self._state

    def acknowledged_since(self, number: int) -> Sequence[OpenCommand]:
        """None: commands are carried out by the process that they are given to."""
        del number
        return ()

    def caps_since(self, number: int) -> Sequence[Mapping[str, str | int]]:
        """None: the caps of such a run do not change."""
        del number
        return ()

    def halt(self, code: str, reason: str) -> DeploymentState:
        """Halted."""
        del code, reason
        self._state = "halted"
        return self._state

    def pause(self, code: str, reason: str) -> DeploymentState:
        """Paused."""
        del code, reason
        self._state = "paused"
        return self._state


class Control:
    """The state and the commands of one deployment. It lives on the event loop of its runner."""

    def __init__(self, store: ControlStore | None = None, state: DeploymentState = "running", code: str = "") -> None:
        self._store: ControlStore = store or UnstoredControl()
        self.state: DeploymentState = state
        self.code = code
        """Why it is not running; of a halt, its cause."""
        self._commands: deque[OpenCommand] = deque()
        self._delivered: set[int] = set()
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._abandon = asyncio.Event()
        self._ending = ""

    @property
    def stopped(self) -> bool:
        """Whether the deployment has ended."""
        return self.state == "stopped"

    @property
    def pending(self) -> bool:
        """Whether a command waits to be carried out."""
        return bool(self._commands)

    @property
    def abandoned(self) -> bool:
        """Whether a decision in progress is abandoned, and none may begin."""
        return self._abandon.is_set()

    def end(self, cause: str) -> None:
        """Let nothing open any more and abandon a decision in progress, because this process is about to leave the deployment."""
        self._ending = cause
        self._abandon.set()

    def open_refusal(self) -> str:
        """Why nothing may open at this moment; empty if it may."""
        if self._ending:
            return self._ending
        closing = next((each.command for each in self._commands if each.command in CLOSES), None)
        if closing is not None:
            return f"{closing} was commanded"
        return "" if self.state == "running" else f"the deployment is {self.state}"

    @property
    def withdraws_opens(self) -> bool:
        """Whether orders that would open are cancelled: it is halted, or it ends, and then nothing would follow their fills."""
        return self.state in ("halted", "stopped") or any(each.command in ENDS for each in self._commands)

    def deliver(self, command: OpenCommand) -> bool:
        """Take a command. Returns False if it was delivered before."""
        if command.number in self._delivered:
            return False
        self._delivered.add(command.number)
        self._commands.append(command)
        self._wake.set()
        if command.command in ABANDONS:
            self._abandon.set()
        return True

    def next_command(self) -> OpenCommand | None:
        """The oldest command that is not carried out; it stays pending until `acknowledge`."""
        return self._commands[0] if self._commands else None

    def unrecorded(self, number: int) -> Sequence[OpenCommand]:
        """The commands after this number that were acknowledged without being recorded."""
        return self._store.acknowledged_since(number)

    def unrecorded_caps(self, number: int) -> Sequence[Mapping[str, str | int]]:
        """The changes of caps after this number that are in effect and not recorded, as facts of receipts."""
        return self._store.caps_since(number)

    def acknowledge(self, command: OpenCommand, note: str = "") -> DeploymentState:
        """Store that the oldest command was carried out, and take over the state after it."""
        self.state = self._store.acknowledge(command, note)
        self.code = "" if self.state == "running" else self.code or command.command
        self._commands.popleft()
        if not self._ending and not any(each.command in ABANDONS for each in self._commands):
            self._abandon.clear()
        if not self._commands:
            self._wake.clear()
        return self.state

    def halt(self, code: str, reason: str) -> None:
        """Halt: stored first, then in effect. A second cause does not replace the first."""
        if self.state not in ("halted", "stopped"):
            self.state = self._store.halt(code, reason)
            self.code = code

    def adopt_halt(self, code: str) -> bool:
        """Take over a halt that another process has stored, such as the watchdog. Returns whether it is new."""
        if self.state in ("halted", "stopped"):
            return False
        self.state, self.code = "halted", code
        return True

    def pause(self, code: str, reason: str) -> None:
        """Pause without a command, such as after an outage of the model."""
        if self.state == "running":
            self.state = self._store.pause(code, reason)
            self.code = code

    async def wait(self, inner: Callable[[int], Awaitable[object]], wait_ms: int) -> None:
        """Wait as `inner` does, but no longer than until a command is delivered or the account has news."""
        if self._commands:
            return
        waits = [asyncio.ensure_future(each) for each in (inner(wait_ms), self._wake.wait(), self._news.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._news.clear()
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def wake(self) -> None:
        """End the wait of the runner, or its next one: the account has news, and is updated at once."""
        self._news.set()

    async def command_delivered(self) -> None:
        """Return when a command waits to be carried out."""
        await self._wake.wait()

    async def unless_abandoned(self, work: Awaitable[Result]) -> Result:
        """The result of some work; raises `Interrupted` and cancels the work when a command says so."""
        task, abandon = asyncio.ensure_future(work), asyncio.ensure_future(self._abandon.wait())
        try:
            await asyncio.wait((task, abandon), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Interrupted
        finally:
            for each in (task, abandon):
                if not each.done():
                    each.cancel()
            await asyncio.gather(task, abandon, return_exceptions=True)
