"""A deadline for decisions: a decider that fails or takes too long gives a hold with a flag.

Wraps the decider of any venue's ports. Only the decision is bounded; checking and executing it are not, because an order
that is interrupted half way would be in an unknown state.
"""

import asyncio
from typing import Any, cast

from pitboss.agent.decider import Decider, Judge
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Decision
from pitboss.core.state import State
from pitboss.live.control import Control, Interrupted
from pitboss.tick import Ports

DEADLINE, BUDGET, MODEL_ERROR, INTERRUPTED = "deadline", "budget", "model_error", "interrupted"


class DeadlineDecider:
    """A decider with a time limit, which a command can end early."""

    __slots__ = ("_control", "_deadline_s", "_inner")

    def __init__(self, inner: Decider, deadline_s: float, control: Control) -> None:
        self._inner = inner
        self._deadline_s = deadline_s
        self._control = control

    @property
    def name(self) -> str:
        """The name of the inner decider."""
        return self._inner.name

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """The inner decision, or a hold that says why there is none. `InvariantError` and cancellation pass through."""
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._control.unless_abandoned(self._inner.decide(observation, judge))
        except Interrupted:
            return _hold(INTERRUPTED, "a person's command came before the decision")
        except TimeoutError:
            return _hold(DEADLINE, f"no decision within {self._deadline_s:g} s")
        except BudgetExceeded as error:
            return _hold(BUDGET, str(error))
        except TransientError as error:
            return _hold(MODEL_ERROR, str(error))
        except UserError as error:  # such as a revoked key: the user must act, and the run keeps recording meanwhile
            return _hold(MODEL_ERROR, error.message)


def _hold(flag: str, reason: str) -> Decision:
    return Decision(text=reason, flags=(flag,), finish_reason="error")


class DeadlinePorts:
    """The ports of a venue with a `DeadlineDecider`; with a `flag` the decider is not called."""

    def __init__(self, inner: Ports, deadline_s: float, control: Control, flag: str) -> None:
        self._inner = inner
        self._flag = flag
        self.decider = DeadlineDecider(inner.decider, deadline_s, control)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def skip_flag(self, state: State, observation: Any) -> str:
        """Why the decider is not called: the venue's reason, else the flag."""
        return self._inner.skip_flag(state, observation) or self._flag


def with_deadline(inner: Ports, deadline_s: float, control: Control, flag: str = "") -> Ports:
    """The ports with a deadline for decisions; with a flag, without a call to the decider."""
    return cast("Ports", DeadlinePorts(inner, deadline_s, control, flag))
