"""`Retried`: asks again where that helps, so often and so long as was said. `SingleAttempt`: one try of a client, at the very bottom.

Budget, price and limiter stand between the two, so that every try waits for its turn and has its worst case set aside; a
try that may have been charged stays counted even if a later one succeeds. What a failure means is judged in `failures`.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.failures import Failure

LOG = logging.getLogger("pitboss.models")
ATTEMPTS = 4
DEADLINE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0
MOST_LEARNT = 4
"""More forms of asking than this are not tried out on one question: some servers complain about either of two."""


@noun
class Learnt:
    """A try that was refused over its form, by which its client has learnt: it would ask in another one now."""

    failure: Failure


class Client(Protocol):
    """Something that can make one try, within `left_s` seconds."""

    name: str

    async def once(self, request: ModelRequest, left_s: float) -> ModelReply | Failure | Learnt: ...


@dataclass(slots=True)
class _Patience:
    """Seconds that a question may still take. Waiting for a turn is not counted: that is other people's time."""

    left_s: float


_PATIENCE: ContextVar[_Patience | None] = ContextVar("pitboss_patience", default=None)
"""Of the question that is being asked: the wrappers in between only know the port."""


@dataclass(slots=True)
class Interest:
    """Between who may give a question up and who makes the tries at it.

    While a try is at the provider it will be paid for, so it is worth waiting for even if nobody wants it; another try then
    is not made.
    """

    wanted: bool = True
    sent: bool = False


INTEREST: ContextVar[Interest | None] = ContextVar("pitboss_interest", default=None)
"""In the question that is being asked, where somebody may lose it."""


class SingleAttempt:
    """A client behind the Model port that asks once. Its errors carry the `failure` that they came of."""

    def __init__(self, client: Client) -> None:
        self.name = client.name
        self.client = client

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one try in the time that is left."""
        patience, interest = _PATIENCE.get(), INTEREST.get()
        time = asyncio.get_running_loop().time
        began = time()
        if interest is not None:
            interest.sent = True
        try:
            found = await self.client.once(request, math.inf if patience is None else patience.left_s)
        finally:
            if interest is not None:
                interest.sent = False
        if patience is not None:
            patience.left_s -= time() - began
        if isinstance(found, ModelReply):
            return found
        failure = found.failure if isinstance(found, Learnt) else found
        error = failure.error()
        setattr(error, "failure", found)  # noqa: B010 – for `Retried`, wherever it stands
        raise error


class Retried:
    """Asks until there is an answer, no point in asking, or no try or time left."""

    def __init__(
        self,
        inner: Model,
        *,
        random: Callable[[], float],
        attempts: int = ATTEMPTS,
        deadline_s: float = DEADLINE_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`random` gives numbers from 0 to 1 for the jitter."""
        self.name = inner.name
        self.inner = inner
        self.attempts = attempts
        self.deadline_s = deadline_s
        self._random = random
        self._sleep = sleep

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask, and ask again."""
        patience = _Patience(self.deadline_s)
        mark = _PATIENCE.set(patience)
        interest = INTEREST.get()
        tried = learnt = 0
        try:
            while True:
                try:
                    return await self.inner.complete(request)
                except (TransientError, UserError) as error:
                    failed = getattr(error, "failure", None)
                    if isinstance(failed, Learnt):
                        learnt += 1
                        pause_s, again = 0.0, learnt <= MOST_LEARNT
                    elif isinstance(failed, Failure):
                        tried += 1
                        pause_s = self._pause(tried, failed.wait_s)
                        again = failed.reaction == "retry" and tried < self.attempts
                    else:
                        raise  # nobody was asked
                    if not again or pause_s >= patience.left_s or not (interest is None or interest.wanted):
                        raise
                    LOG.info("model call is tried again", extra=_line(self.name, failed, pause_s))
                if pause_s:
                    patience.left_s -= pause_s
                    await self._sleep(pause_s)
        finally:
            _PATIENCE.reset(mark)

    def _pause(self, tried: int, wanted_s: float | None) -> float:
        """Full jitter; where the provider says how long, that long and a little more, so that not all come at once."""
        most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tried - 1, 16))
        if wanted_s is None:
            return self._random() * most
        return wanted_s + self._random() * min(1.0, most)


def _line(model: str, failed: Failure | Learnt, pause_s: float) -> dict[str, Any]:
    """Why, in a word: what a provider says is not for the log."""
    failure = failed.failure if isinstance(failed, Learnt) else failed
    return {"fields": {"model": model, "error": failure.code, "status": failure.status, "pause_s": round(pause_s, 3)}}
