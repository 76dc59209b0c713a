"""Notifications of a host and of a watchdog: what happens to their deployments is told through the channels of their owner."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pitboss.bootstrap.notification_channels import NotificationChannel, open_channels
from pitboss.bootstrap.owner_channels import LOCAL, read_owners
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
    """The notifier of the channels of all owners; without those that cannot be used, for deployments must go on."""
    channels: dict[str, list[NotificationChannel]] = {}
    for owner in _owners(workspace):
        try:
            channels[owner] = open_channels(workspace.settings, owner)
        except UserError as error:
            fields = {"owner": owner, "error": error.message, "hint": error.hint}
            LOG.error("no notifications", extra={"fields": fields})
    try:
        events = events_of(workspace.settings.notify_events)
    except UserError as error:
        LOG.error("no notifications", extra={"fields": {"error": error.message, "hint": error.hint}})
        events = frozenset[str]()
    return Notifier(channels, events, workspace.now)


def _owners(workspace: Workspace) -> list[str]:
    try:
        return [LOCAL, *read_owners(workspace.home)]
    except UserError as error:
        LOG.error("no notifications", extra={"fields": {"error": error.message, "hint": error.hint}})
        return [LOCAL]


def check_channels(workspace: Workspace) -> None:
    """Raise `UserError` if a channel of an owner, or the events, cannot be used."""
    for owner in (LOCAL, *read_owners(workspace.home)):
        open_channels(workspace.settings, owner)
    events_of(workspace.settings.notify_events)


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

    def tell_everywhere(event: "WatchdogEvent") -> None:
        tell(event)
        if event.kind == "watching":
            return
        if event.deployment is None:
            notifier.tell(Notification("watchdog", f"watchdog: {event.kind}", event.text, workspace.now()))
        else:
            notifier.tell(about(event.deployment, "watchdog", f"watchdog: {event.kind}", event.text, workspace.now()))

    return tell_everywhere
