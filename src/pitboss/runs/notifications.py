"""Notifications about deployments: what is worth telling a person, how often, and a queue that delivers without delaying a tick.

The same event of a deployment is told once, and then at most once a minute with a count. Each channel has a bounded queue and a
task of its own, repeats what fails for a while, and drops the oldest if it falls behind. Nothing here can fail a deployment.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pitboss.bootstrap.notification_channels import Message, NotificationChannel
from pitboss.bootstrap.owner_channels import LOCAL
from pitboss.bootstrap.redact import REDACTOR
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, Instant, iso
from pitboss.core.noun import noun
from pitboss.core.suggestion import suggestion
from pitboss.live.board import ALARM_MARK, Entry, display_text
from pitboss.store.deployments import Deployment

LOG = logging.getLogger("pitboss.notify")
EventName = Literal["fills", "refusals", "halts", "pauses", "outages", "watchdog", "alarms", "test"]
EVENTS: tuple[EventName, ...] = get_args(EventName)
WINDOW_MS = MINUTE_MS
MOST_WINDOWS = 2_000
MOST_QUEUED = 100
"""Messages that wait in one channel; the oldest is dropped for a newer one."""
RETRIES_S = (1.0, 5.0, 25.0, 120.0)
"""The pauses before further attempts."""
DRAIN_S = 5.0
MAX_TITLE_CHARS, MAX_TEXT_CHARS = 120, 500
OUTAGE_FLAGS = frozenset({"model_error", "deadline", "no_feed", "feed_timeout", "stale_prices", "account_unread"})


@noun
class Notification:
    """One thing to tell. `count` is how often it happened since it was last told."""

    event: EventName
    title: str
    text: str
    at: Instant
    deployment_id: str = ""
    skill: str = ""
    mode: str = ""
    account: str = ""
    count: int = 1
    owner: str = LOCAL
    """Whose channels it goes to; no part of the message."""

    def message(self) -> Message:
        """The notification as channels send it: redacted, on one line each, bounded."""
        text = self.text if self.count == 1 else f"{self.text} ({self.count} times in the last minute)"
        fields = {
            "event": self.event,
            "title": _clean(self.title, MAX_TITLE_CHARS),
            "text": _clean(text, MAX_TEXT_CHARS),
            "deployment_id": self.deployment_id,
            "skill": _clean(self.skill, MAX_TITLE_CHARS),
            "mode": self.mode,
            "account": self.account,
            "count": self.count,
            "at": iso(self.at),
        }
        return {name: value for name, value in fields.items() if value != ""}


def _clean(text: str, most: int) -> str:
    return display_text(REDACTOR.redact(text), most)  # redacted first: half a key must not remain


@dataclass(slots=True)
class _Window:
    """What happened since an event was last told."""

    told_at: Instant
    waiting: Notification | None = None


class NotificationLimiter:
    """Lets the same event of a deployment pass once, and then at most once a minute with a count. Pure."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def offer(self, notification: Notification) -> Notification | None:
        """Return the notification if it is told now; else it is counted."""
        key = (notification.deployment_id, notification.event)
        window = self._windows.get(key)
        if window is None or not 0 <= notification.at - window.told_at < WINDOW_MS:
            waiting = None if window is None else window.waiting
            self._windows[key] = _Window(notification.at)
            self._windows.move_to_end(key)
            while len(self._windows) > MOST_WINDOWS:
                self._windows.popitem(last=False)
            return replace(notification, count=notification.count + (waiting.count if waiting else 0))
        count = notification.count + (window.waiting.count if window.waiting else 0)
        window.waiting = replace(notification, count=count)
        return None

    def due(self, now: Instant) -> Iterator[Notification]:
        """Return what was counted in windows that are over."""
        for key, window in list(self._windows.items()):
            if 0 <= now - window.told_at < WINDOW_MS:
                continue
            if window.waiting is None:
                del self._windows[key]
                continue
            yield window.waiting
            self._windows[key] = _Window(now)

    def rest(self) -> Iterator[Notification]:
        """Return all that was counted, at the end of a process."""
        for window in self._windows.values():
            if window.waiting is not None:
                yield window.waiting
                window.waiting = None


class Notifier:
    """Delivers notifications to the channels of their owner for the duration of an `async with` block. `tell` returns at once and
    never raises.
    """

    def __init__(
        self,
        channels: Mapping[str, Sequence[NotificationChannel]],
        events: frozenset[str],
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._channels = [(owner, each) for owner, listed in channels.items() for each in listed]
        self._events = events
        self._now = now
        self._sleep = sleep
        self._limiter = NotificationLimiter()
        self._queues: list[asyncio.Queue[Message]] = [asyncio.Queue(MOST_QUEUED) for _ in self._channels]
        self._tasks: list[asyncio.Task[None]] = []
        self.delivered = 0
        self.dropped = 0

    async def __aenter__(self) -> "Notifier":
        self._tasks = [
            asyncio.create_task(self._deliver(channel, queue))
            for (_, channel), queue in zip(self._channels, self._queues, strict=True)
        ]
        if self._channels:
            self._tasks.append(asyncio.create_task(self._flush()))
        return self

    async def __aexit__(self, *error: object) -> None:
        for notification in self._limiter.rest():
            self._put(notification)
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(queue.join() for queue in self._queues))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def tell(self, notification: Notification) -> None:
        """Queue a notification, unless it is not wanted or was told a moment ago."""
        has_channel = any(owner == notification.owner for owner, _ in self._channels)
        if not has_channel or (notification.event not in self._events and notification.event != "test"):
            return
        passed = self._limiter.offer(notification)
        if passed is not None:
            self._put(passed)

    def _put(self, notification: Notification) -> None:
        message = notification.message()
        for (owner, _), queue in zip(self._channels, self._queues, strict=True):
            if owner != notification.owner:
                continue
            if queue.full():
                queue.get_nowait()
                queue.task_done()
                self.dropped += 1
            queue.put_nowait(message)

    async def _flush(self) -> None:
        """Tell what was counted once its minute is over."""
        while True:
            await asyncio.sleep(1.0)
            for notification in self._limiter.due(self._now()):
                self._put(notification)

    async def _deliver(self, channel: NotificationChannel, queue: "asyncio.Queue[Message]") -> None:
        while True:
            message = await queue.get()
            try:
                await self._attempt(channel, message)
            finally:
                queue.task_done()

    async def _attempt(self, channel: NotificationChannel, message: Message) -> None:
        for pause_s in (*RETRIES_S, None):
            try:
                await channel.send(message)
            except TransientError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 - a channel must not end the others, or the host
                problem, pause_s = str(error) if isinstance(error, UserError) else repr(error), None
            else:
                self.delivered += 1
                return
            if pause_s is None:
                self.dropped += 1
                fields = {"channel": channel.name, "event": message["event"], "error": REDACTOR.redact(problem)}
                LOG.error("notification not delivered", extra={"fields": fields})
                return
            await self._sleep(pause_s)


def events_of(text: str) -> frozenset[str]:
    """The events that a setting names. Raises `UserError` for one that does not exist."""
    names = frozenset(each.strip() for each in text.split(",") if each.strip())
    unknown = sorted(names - set(EVENTS))
    if unknown:
        events = [event for event in EVENTS if event != "test"]
        raise UserError(
            f"notify_events: there is no event {unknown[0][:40]!r}", suggestion(unknown[0], events, "events:")
        )
    return names


# What is worth telling ------------------------------------------------------------------------------------------------


def about(deployment: Deployment, event: EventName, what: str, text: str, at: Instant) -> Notification:
    """A notification about a deployment."""
    title = f"{deployment.skill} ({deployment.mode}) {what}"
    about = (deployment.id, deployment.skill, deployment.mode, deployment.account)
    return Notification(event, title, text, at, *about, owner=deployment.owner)


def of_entry(deployment: Deployment, entry: Entry, at: Instant) -> Iterator[Notification]:
    """What an entry tells: fills, refusals and outages. Its texts may come from anyone; they are data."""
    fills, refusals = list[str](), list[str]()
    for event in _rows(entry, "events"):
        kind, symbol = str(event.get("kind", "")), str(event.get("symbol", ""))
        if kind in ("filled", "liquidated"):
            words = (kind, symbol, event.get("side"), event.get("size"), event.get("price") and f"at {event['price']}")
            fills.append(" ".join(str(word) for word in words if word))
        elif kind == "rejected":
            refusals.append(f"rejected {symbol} {event.get('reason') or event.get('text') or ''}".strip())
    for verdict in _rows(entry, "verdicts"):
        if verdict.get("outcome") == "refused":
            refusals.append(f"{verdict.get('code') or ''} {verdict.get('detail') or ''}".strip())
    if fills:
        yield replace(about(deployment, "fills", "filled", "; ".join(fills), at), count=len(fills))
    if refusals:
        yield replace(about(deployment, "refusals", "was refused", "; ".join(refusals), at), count=len(refusals))
    flags = entry.get("flags")
    failures = sorted(OUTAGE_FLAGS & {str(flag) for flag in flags}) if isinstance(flags, list) else []
    detail = str(entry.get("detail", "")) if entry["kind"] == "remark" else ""
    if failures:
        yield about(deployment, "outages", "had no decision", ", ".join(failures), at)
    elif entry["kind"] == "missed":
        yield about(deployment, "outages", "missed ticks", f"{entry.get('slots')} until {entry.get('until')}", at)
    elif detail.startswith(ALARM_MARK):
        text = f"{detail.removeprefix(ALARM_MARK)}; acknowledge it: pitboss deployments acknowledge {deployment.id}"
        yield about(deployment, "alarms", "raises an alarm", text, at)
    elif detail.startswith("feed: "):
        yield about(deployment, "outages", "data", detail, at)


def of_state(deployment: Deployment, at: Instant) -> Notification:
    """What a change of state tells."""
    event: EventName = "halts" if deployment.state in ("halted", "stopped") else "pauses"
    text = " ".join(part for part in (deployment.code, deployment.reason) if part) or f"it is {deployment.state}"
    return about(deployment, event, f"is {deployment.state}", text, at)


def _rows(entry: Entry, name: str) -> Sequence[dict[str, Any]]:
    rows = entry.get(name)
    return rows if isinstance(rows, list) else ()


def trial_notification(at: Instant) -> Notification:
    """A notification that shows that a channel works."""
    return Notification("test", "test", "This is a test of the notifications.", at)


async def send_test(channels: Sequence[NotificationChannel], at: Instant) -> list[tuple[str, str]]:
    """Send a test through every channel, once; returns by channel what went wrong, empty if it was taken."""
    results: list[tuple[str, str]] = []
    for channel in channels:
        try:
            await channel.send(trial_notification(at).message())
        except UserError as error:
            results.append((channel.name, REDACTOR.redact(error.message)))
        except TransientError as error:
            results.append((channel.name, REDACTOR.redact(str(error))))
        else:
            results.append((channel.name, ""))
    return results
