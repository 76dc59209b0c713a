"""Server-sent events of runs: one reader for each run and process, whatever the number of open connections.

A reader is a task that reads the database twice a second in a thread while it has listeners, and passes on what is new, encoded once for
all who listen. A listener has a bounded queue: one that does not keep up is disconnected, and its client connects again with
`Last-Event-ID`. Nothing is sent to the worker of the run, and nothing is stored.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, UserError
from pitboss.runs.live_progress import newest_ticks, progress_document, total_ticks
from pitboss.runs.stored import long_document
from pitboss.server.api.run_reader import is_left_to_worker
from pitboss.store.lifecycle import ENDED

LOG = logging.getLogger("pitboss.server")
POLL_S = 0.5
HEARTBEAT_S = 15.0
MOST_QUEUED = 64
"""Reads that a listener may be behind."""
RATE_READS = 10
"""The speed is that over so many reads."""
BEFORE_FIRST = -1


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event: `progress`, `tick` or `done`, as server-sent text. `seq` is the number of the record of a tick."""

    kind: str
    text: bytes
    seq: int | None = None


Events = tuple[StreamedEvent, ...]
"""What one read has found."""


def encoded(kind: str, data: dict[str, Any]) -> StreamedEvent:
    """An event as server-sent text. Ticks have the number of their record as id."""
    seq = data["seq"] if kind == "tick" else None
    number = b"" if seq is None else b"id: %d\n" % seq
    return StreamedEvent(kind, b"event: %b\n%bdata: %b\n\n" % (kind.encode(), number, orjson.dumps(data)), seq)


@dataclass(eq=False)
class EventListener:
    """The bounded queue of one connection. None ends it."""

    queue: "asyncio.Queue[Events | None]" = field(default_factory=lambda: asyncio.Queue(MOST_QUEUED))
    is_dropped: bool = False

    def put(self, events: Events | None) -> None:
        """Queue what a read has found; a listener whose queue is full is dropped."""
        if self.is_dropped:
            return
        if self.queue.full():
            self.is_dropped = True
            while not self.queue.empty():
                self.queue.get_nowait()
            events = None
        self.queue.put_nowait(events)


class RunFeed:
    """The reader of one run, and those who listen to it."""

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self._workspace = workspace
        self._run_id = run_id
        self._listeners: set[EventListener] = set()
        self._last_seq = BEFORE_FIRST
        self._total: int | None = None
        self._reads: deque[tuple[float, int]] = deque(maxlen=RATE_READS)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it has no listener."""
        return not self._listeners

    def add(self, listener: EventListener) -> None:
        """Begin to pass events to a listener; starts the reader if it is the first."""
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read_on())

    def remove(self, listener: EventListener) -> None:
        """Stop passing events to a listener; the reader ends with the last one."""
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()

    def read(self, after_seq: int, rate: Callable[[int], float | None] = lambda ticks: None) -> Events:
        """What is new since a record: ticks and progress, and `done` if the run has ended. Runs in a thread."""
        run = self._workspace.runs.get(self._run_id)
        if self._total is None:
            self._total = total_ticks(run)
        events = [encoded("tick", tick) for tick in newest_ticks(self._workspace, run, after_seq)]
        progress = progress_document(self._workspace, run, self._total)
        events.append(encoded("progress", {**progress, "ticks_per_s": rate(progress["ticks"])}))
        # after `done` clients open the page, so the worker must have written it
        if run.status in ENDED and not is_left_to_worker(self._workspace, run):
            events.append(encoded("done", long_document(self._workspace, run)))
        return tuple(events)

    async def past(self, after_seq: int) -> Events:
        """What a new listener has missed since a record; nothing if the run was deleted meanwhile."""
        try:
            return await asyncio.to_thread(self.read, after_seq)
        except UserError:
            return ()

    async def _read_on(self) -> None:
        loop = asyncio.get_running_loop()
        last_progress = b""
        try:
            while self._listeners:
                events = await asyncio.to_thread(
                    self.read, self._last_seq, lambda ticks: self._speed(ticks, loop.time())
                )
                self._last_seq = max([self._last_seq, *(event.seq for event in events if event.seq is not None)])
                events = tuple(event for event in events if event.text != last_progress)
                last_progress = next((event.text for event in events if event.kind == "progress"), last_progress)
                for listener in self._listeners if events else ():
                    listener.put(events)
                if events and events[-1].kind == "done":
                    break
                await asyncio.sleep(POLL_S)
        except (UserError, InvariantError) as error:  # the run was deleted, or the database is away
            LOG.info("events end", extra={"fields": {"run_id": self._run_id, "error": str(error)}})
        finally:
            for listener in self._listeners:
                listener.put(None)

    def _speed(self, ticks: int, now_s: float) -> float | None:
        self._reads.append((now_s, ticks))
        (first_s, first_ticks), (last_s, last_ticks) = self._reads[0], self._reads[-1]
        return round((last_ticks - first_ticks) / (last_s - first_s), 1) if last_s > first_s else None


class RunFeeds:
    """The feeds of this process, by owner and run; each exists while it has listeners."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[str, str], RunFeed] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no run has a listener."""
        return not self._feeds

    async def stream(
        self, workspace: Workspace, owner: str, run_id: str, after_seq: int = BEFORE_FIRST
    ) -> AsyncIterator[bytes]:
        """The events of a run from a record on, as server-sent text, until the run has ended."""
        key = (owner, run_id)
        feed = self._feeds.setdefault(key, RunFeed(workspace, run_id))
        listener = EventListener()
        try:
            # The past first: what is passed on meanwhile waits in the queue, and ticks that were sent are skipped.
            feed.add(listener)
            yield b"retry: 2000\n\n"
            events: Events | None = await feed.past(after_seq)
            while events is not None:
                # One chunk for all of them: sending costs more than what is sent.
                chunk = b"".join(event.text for event in events if event.seq is None or event.seq > after_seq)
                after_seq = max([after_seq, *(event.seq for event in events if event.seq is not None)])
                if chunk:
                    yield chunk
                if events and events[-1].kind == "done":
                    return
                try:
                    events = await asyncio.wait_for(listener.queue.get(), HEARTBEAT_S)
                except TimeoutError:
                    yield b": still here\n\n"
                    events = ()
        finally:
            feed.remove(listener)
            if feed.is_idle and self._feeds.get(key) is feed:
                del self._feeds[key]
