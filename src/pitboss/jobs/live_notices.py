"""Notifications of a host and of a watchdog: what happens to their deployments is told through the channels of the workspace."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pitboss.bootstrap.notification_channels import NotificationChannel, open_channels
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.host_listener import HostListener
from pitboss.live.board import Entry
from pitboss.runs.deployment_run import Outcome
from pitboss.runs.notifications import Notification, Notifier, about, events_of, of_entry, of_state
from pitboss.store.deployments import Deployment

if TYPE_CHECKING:
    from pitboss.jobs.watchdog import WatchdogEvent

LOG = logging.getLogger("pitboss.notify")


def open_notifier(workspace: Workspace) -> Notifier:
    """The notifier of the channels that the settings name; without any if they cannot be used, for deployments must go on."""
    try:
        channels, events = check_channels(workspace)
    except UserError as error:
        LOG.error("no notifications", extra={"fields": {"error": error.message, "hint": error.hint}})
        channels, events = [], frozenset[str]()
    return Notifier(channels, events, workspace.now)


def check_channels(workspace: Workspace) -> tuple[list[NotificationChannel], frozenset[str]]:
    """The channels and events that the settings name. Raises `UserError` if one of them cannot be used."""
    return open_channels(workspace.settings), events_of(workspace.settings.notify_events)


def notifying(listener: HostListener, notifier: Notifier, workspace: Workspace) -> HostListener:
    """The listener, with a notification for what a person should know."""
    now = workspace.now

    def entry(deployment: Deployment, entry: Entry) -> None:
        listener.entry(deployment, entry)
        for notification in of_entry(deployment, entry, now()):
            notifier.tell(notification)

    def state(deployment: Deployment) -> None:
        listener.state(deployment)
        notifier.tell(of_state(deployment, now()))

    def ended(deployment: Deployment, outcome: Outcome) -> None:
        listener.ended(deployment, outcome)
        if outcome == "outage":
            notifier.tell(about(deployment, "outages", "is interrupted", "its process tries again later", now()))

    return replace(listener, ended=ended, entry=entry, state=state)


def watchdog_teller(
    notifier: Notifier, workspace: Workspace, tell: "Callable[[WatchdogEvent], None]"
) -> "Callable[[WatchdogEvent], None]":
    """Tell what the watchdog does, here and through the channels. That it begins to watch is told here only."""

    def told(event: "WatchdogEvent") -> None:
        tell(event)
        if event.kind == "watching":
            return
        if event.deployment is None:
            notifier.tell(Notification("watchdog", f"watchdog: {event.kind}", event.text, workspace.now()))
        else:
            notifier.tell(about(event.deployment, "watchdog", f"watchdog: {event.kind}", event.text, workspace.now()))

    return told
