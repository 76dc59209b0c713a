"""A pass of the watchdog over several deployments: one whose venue hangs delays none of the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pitboss.jobs import watchdog
from pitboss.jobs.watchdog import Watchdog, WatchdogSettings
from pitboss.runs.account_guardian import GuardianReport
from pitboss.store.deployments import Deployment

NOW = 1_700_000_000_000


class CountingGuardian:
    """An account whose orders are cancelled once it is answered."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.cancelled = 0
        self.checks = asyncio.Event()
        self.checks.set()

    async def problem(self) -> str:
        await self.checks.wait()
        return ""

    async def cancel_orders(self) -> GuardianReport:
        await self.answers.wait()
        self.cancelled += 1
        return GuardianReport(1, 0)

    async def flatten(self) -> GuardianReport:
        return GuardianReport(0, 0)


def deployment(name: str) -> Deployment:
    return Deployment(name, f"run-{name}", "skill", 1, "stub", "live", "main", "running", "", "", 0, 0)


def test_a_venue_that_hangs_for_one_deployment_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        guardians = {"a": CountingGuardian(), "b": CountingGuardian()}
        guardians["b"].answers.set()
        heard_at = {"a": NOW - 14_000, "b": NOW}
        halted: list[str] = []

        @asynccontextmanager
        async def open_guardian(_: Any, deployment: Deployment) -> AsyncIterator[CountingGuardian]:
            yield guardians[deployment.id]

        stored = SimpleNamespace(
            heartbeats=lambda mode: (NOW, [(deployment(name), at) for name, at in heard_at.items()]),
            halt=lambda name, *_: halted.append(name),
        )
        monkeypatch.setattr(watchdog, "venue_named", lambda _: SimpleNamespace(open_guardian=open_guardian))
        workspace: Any = SimpleNamespace(deployments=stored)
        active_watchdog = Watchdog(workspace, WatchdogSettings(poll_s=0.01), elapsed=lambda: 100.0)
        await active_watchdog.watch()  # `a` is silent, and its venue does not answer
        heard_at["b"] = NOW - 14_000
        for _ in range(1_000):
            await active_watchdog.watch()
            if guardians["b"].cancelled:
                break
        assert (halted, guardians["a"].cancelled, guardians["b"].cancelled) == (["a", "b"], 0, 1)
        guardians["a"].answers.set()
        for _ in range(1_000):
            await active_watchdog.watch()
            if guardians["a"].cancelled:
                break
        assert (halted, guardians["a"].cancelled) == (["a", "b"], 1)
        await active_watchdog.close()

    asyncio.run(story())


def test_closing_ends_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        guardian = CountingGuardian()
        closed: list[str] = []

        @asynccontextmanager
        async def open_guardian(_: Any, deployment: Deployment) -> AsyncIterator[CountingGuardian]:
            yield guardian
            closed.append(deployment.id)

        stored = SimpleNamespace(heartbeats=lambda mode: (NOW, [(deployment("a"), NOW - 14_000)]), halt=lambda *_: None)
        monkeypatch.setattr(watchdog, "venue_named", lambda _: SimpleNamespace(open_guardian=open_guardian))
        workspace: Any = SimpleNamespace(deployments=stored)
        active_watchdog = Watchdog(workspace, WatchdogSettings(poll_s=0.01), elapsed=lambda: 100.0)
        await active_watchdog.watch()
        await active_watchdog.close()
        assert (guardian.cancelled, closed, len(asyncio.all_tasks())) == (0, ["a"], 1)

    asyncio.run(story())


def test_a_silence_does_not_wait_for_the_check_that_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        guardian, opened = CountingGuardian(), list[str]()
        guardian.checks.clear()
        heard_at = {"a": NOW}

        @asynccontextmanager
        async def open_guardian(_: Any, deployment: Deployment) -> AsyncIterator[CountingGuardian]:
            opened.append(deployment.id)
            yield guardian

        stored = SimpleNamespace(
            heartbeats=lambda mode: (NOW, [(deployment("a"), heard_at["a"])]), halt=lambda name, *_: halted.append(name)
        )
        halted: list[str] = []
        monkeypatch.setattr(watchdog, "venue_named", lambda _: SimpleNamespace(open_guardian=open_guardian))
        workspace: Any = SimpleNamespace(deployments=stored)
        active_watchdog = Watchdog(workspace, WatchdogSettings(poll_s=0.01), elapsed=lambda: 100.0)
        await active_watchdog.watch()  # the check does not end
        await active_watchdog.watch()
        assert halted == []
        heard_at["a"] = NOW - 14_000
        for _ in range(5):
            await active_watchdog.watch()
        assert (halted, opened) == (["a"], ["a"])
        guardian.answers.set()  # what is being done in the silence goes on over passes
        for _ in range(5):
            await active_watchdog.watch()
        assert (halted, guardian.cancelled) == (["a"], 1)
        await active_watchdog.close()

    asyncio.run(story())
