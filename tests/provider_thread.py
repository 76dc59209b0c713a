"""`fake_provider`: the fake provider on a thread of its own, for clients in other processes or event loops."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pitboss.testing.provider import FakeProvider, Script

PATIENCE_S = 60


@contextmanager
def fake_provider(script: Script, latency_s: float = 0.0, **options: Any) -> Iterator[FakeProvider]:
    """A provider that answers by a script: a function of the request, or a sequence of plays."""
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    provider = FakeProvider(script=script, latency_s=latency_s, **options)

    async def serve() -> None:
        async with provider:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield provider
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()
