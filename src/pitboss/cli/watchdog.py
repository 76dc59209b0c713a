"""`pitboss watchdog`: the process that cancels, and closes if told to, when the process of a live deployment is silent."""

from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Duration, option
from pitboss.terminal.workspace_options import Location


def watchdog(
    *deployments: str,
    silent: Annotated[
        Duration, option("--silent", "Act when the process of a deployment is silent for longer, such as 13s.")
    ] = 13_000,
    flatten: Annotated[bool, option("--flatten", "Also close the positions, with orders that only reduce.")] = False,
    location: Location,
) -> int:
    """Watch live deployments in the foreground until stopped, from another machine or process than the one that trades.

    A deployment whose process is silent is halted, and its open orders are cancelled; stops that protect positions stay. Only a
    person resumes it. The watchdog needs a signer of its own, whose policy opens nothing (see docs/live.md, Watchdog).

    For example:

        pitboss watchdog
        pitboss watchdog 3f9a --silent 13s --flatten

    Parameters
    ----------
    deployments
        Watch only these; default: all that are live.
    """
    import asyncio
    import signal
    from contextlib import suppress

    from pitboss.core.errors import UserError
    from pitboss.jobs.live_notices import check_channels, open_notifier, watchdog_teller
    from pitboss.jobs.watchdog import Watchdog, WatchdogEvent, WatchdogSettings

    if silent < 10_000:
        raise UserError("--silent is shorter than two heartbeats", "give 10s or more; 13s is the default")

    received: set[int] = set()

    def show_event(event: WatchdogEvent) -> None:
        name = "" if event.deployment is None else f"{event.deployment.id[:8]} "
        screen.note(f"{name}{event.kind}: {event.text}")

    async def work() -> None:
        notifier = open_notifier(workspace)
        dog = Watchdog(workspace, settings, watchdog_teller(notifier, workspace, show_event))

        def stop(number: int) -> None:
            received.add(number)
            dog.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # only the main thread may catch signals
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
        async with notifier:
            await dog.run()

    with location.workspace() as workspace:
        check_channels(workspace)
        only = frozenset(workspace.deployments.get(each).id for each in deployments)
        settings = WatchdogSettings(silent, flatten, only)
        screen.note(
            f"watching: acts after {silent / 1_000:g} s of silence" + (", and closes positions" if flatten else "")
        )
        asyncio.run(work())
    return INTERRUPTED if signal.SIGINT in received else 0
