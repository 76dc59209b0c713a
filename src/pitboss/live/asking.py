"""Asking within bounds: who decides has until a deadline, and whatever keeps them from answering is a hold with a flag.

Around the decider of any venue's ports. Only deciding is bounded: what has been decided is judged and carried out whole,
for an order that was cut off half way would be neither sent nor not sent.
"""

import asyncio
from typing import Any, cast

from pitboss.agent.decider import Decider, Judge
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Decision
from pitboss.core.state import State
from pitboss.tick import Ports

DEADLINE, BUDGET, FAILED = "deadline", "budget", "model_error"


class Patient:
    """A decider that is waited for no longer than so many seconds."""

    __slots__ = ("_deadline_s", "_inner")

    def __init__(self, inner: Decider, deadline_s: float) -> None:
        self._inner = inner
        self._deadline_s = deadline_s

    @property
    def name(self) -> str:
        """Who decides."""
        return self._inner.name

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """Their decision, or a hold that says why there is none. What must stop everything goes through."""
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._inner.decide(observation, judge)
        except TimeoutError:
            return _none(DEADLINE, f"no decision within {self._deadline_s:g} s")
        except BudgetExceeded as error:
            return _none(BUDGET, str(error))
        except TransientError as error:
            return _none(FAILED, str(error))
        except UserError as error:  # a key that was withdrawn, say: a person must act, and the books are kept meanwhile
            return _none(FAILED, error.message)


def _none(flag: str, words: str) -> Decision:
    return Decision(text=words, flags=(flag,), finish_reason="error")


class Bounded:
    """The ports of a venue with a patient decider; with a `flag` nobody is asked at all."""

    def __init__(self, inner: Ports, deadline_s: float, flag: str = "") -> None:
        self._inner = inner
        self._flag = flag
        self.decider = Patient(inner.decider, deadline_s)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def unasked(self, state: State, observation: Any) -> str:
        """Why nobody is asked: the venue's own reason comes first."""
        return self._inner.unasked(state, observation) or self._flag


def bounded(inner: Ports, deadline_s: float, flag: str = "") -> Ports:
    """Ports that never wait longer than this, and with a flag ask nobody."""
    return cast("Ports", Bounded(inner, deadline_s, flag))
