"""Injects a fault into any call of any port: before the call, after it, or by delaying it.

The calls are recorded from a run without faults, so that new steps of the writer are covered too.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pitboss.core.errors import TransientError, UserError
from simulated_kill import Killed

KINDS = ("crash_before", "crash_after", "lost_before", "lost_after", "late")
PORTS = ("chain", "outbox", "signer")


@dataclass
class FaultInjector:
    """Counts the calls of the ports that it wraps and injects faults by the number of the call."""

    faults: Mapping[int, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda name: None

    def wrap(self, target: Any, port: str) -> Any:
        return _FaultyPort(self, target, port)

    def next(self, name: str) -> str:
        self.before(name)
        fault = self.faults.get(len(self.calls), "")
        self.calls.append(name)
        return fault


class _FaultyPort:
    def __init__(self, injector: FaultInjector, target: Any, port: str) -> None:
        self._injector, self._target, self._port = injector, target, port

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value
        label = f"{self._port}.{name}"
        if inspect.iscoroutinefunction(value):

            async def ask(*args: Any) -> Any:
                fault = self._injector.next(label)
                self._break(fault, "before", label)
                if fault == "late":
                    if name == "execute":
                        self._target.delay(*args)
                    raise TransientError(f"no answer from {label}")
                found = await value(*args)
                self._break(fault, "after", label)
                return found

            return ask

        def call(*args: Any) -> Any:
            fault = self._injector.next(label)
            self._break(fault, "before", label)
            found = value(*args)
            self._break(fault, "after", label)
            return found

        return call

    def _break(self, fault: str, when: str, label: str) -> None:
        if fault == f"crash_{when}":
            raise Killed(label)
        if fault == f"lost_{when}":
            if self._port in ("chain", "signer"):
                raise TransientError(f"no answer from {label}")
            raise UserError(f"{label} cannot be used", "try again")


def possible_faults(calls: list[str]) -> list[tuple[int, str]]:
    """Every fault that can be injected into a run with these calls."""
    return [
        (number, kind)
        for number, name in enumerate(calls)
        for kind in KINDS
        if kind != "late" or name == "chain.execute"
    ]
