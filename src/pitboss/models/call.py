"""A call to a model: `CallContext` goes in, `CallResult` comes out, through every client and wrapper (`ModelClient`).

Clients (`chat`, `native`, `local`) and wrappers (`Limited`, `Priced`, `Budgeted`, `Retried`, `Cached`, `Traced`) return a
failure as a value, with what it cost and what remains uncertain. Only `complete`, the public `Model` port that the agent
loop calls, turns a failure into an exception. Exceptions that pass through `call` are bugs, cancellation, or a problem on
this machine (a full disk, a missing file).
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.failures import NO_HEADERS, Failure


@noun
class CallResult:
    """What a call came to: exactly one of `reply` and `failure`, and what it took.

    `attempts` counts the requests that were sent. `uncertain_usd` is the most that attempts without a known cost may have
    been charged. `is_adapted` marks an attempt that was refused because of its form, after which the client uses another
    form. `status` and `headers` are those of the last HTTP response, from which the limiter learns quotas.
    """

    reply: ModelReply | None = None
    failure: Failure | None = None
    attempts: int = 0
    uncertain_usd: Decimal = ZERO
    is_adapted: bool = False
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)

    @property
    def cost_usd(self) -> Decimal | None:
        """The known cost; None where the call may have been charged an unknown amount."""
        if self.reply is not None:
            return self.reply.cost_usd
        return None if self.failure is not None and self.failure.may_be_charged else ZERO

    @property
    def is_transient(self) -> bool:
        """Whether the call failed in a way that concerns this call alone: the same request may succeed later."""
        return self.failure is not None and self.failure.reaction in ("retry", "give_up")

    def reply_or_raise(self) -> ModelReply:
        """The reply, or the exception that stands for the failure."""
        if self.reply is not None:
            return self.reply
        assert self.failure is not None
        raise self.failure.error()


@dataclass(slots=True, eq=False)
class CallContext:
    """What the layers of one call share while it is under way.

    `left_s` is the time that attempts and pauses may still take; waiting for the limiter is not counted. `is_wanted` is
    cleared when no caller waits for the result any longer: an attempt at the provider is still awaited, because it will
    be charged, but no further attempt is made.

    `on_text` asks for a stream where the client can have one: it is called with the text of the reply so far, as often as
    more of it arrives. Another attempt begins with an empty text again. The result is the same with and without it.
    """

    left_s: float = math.inf
    is_wanted: bool = True
    is_sent: bool = False
    attempts: int = 0
    on_text: Callable[[str], None] | None = None

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Mark the time in which a request is at the provider, and count it."""
        time = asyncio.get_running_loop().time
        started_s = time()
        self.attempts += 1
        self.is_sent = True
        try:
            yield
        finally:
            self.is_sent = False
            self.left_s -= time() - started_s


class ModelClient(ABC):
    """A model that reports what each call came to. Also a `Model`, for the agent loop."""

    name: str

    @abstractmethod
    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Make the call. A failure is a value."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make the call and raise its failure as `TransientError`, `UserError` or `BudgetExceeded`."""
        return (await self.call(request, CallContext())).reply_or_raise()


class DirectClient(ModelClient):
    """A plain `Model` behind the client interface: one attempt per call."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self.model = model

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Ask the model once. A `TransientError` of a plain model may have been charged.

        The call is not marked as sent: cancelling a plain model saves its work.
        """
        context.attempts += 1
        try:
            return CallResult(await self.model.complete(request), attempts=1)
        except TransientError as error:
            return CallResult(failure=Failure("give_up", "failed", str(error)), attempts=1)
        except UserError as error:
            return CallResult(failure=Failure("user", "unreachable", error.message, error.hint))
        except BudgetExceeded as error:
            return CallResult(failure=Failure("budget", "budget", str(error)))
