"""Ports whose decision was made by a person's command or by a loss limit: the same tick, guard and broker, without the agent."""

from collections.abc import Sequence
from typing import Any, cast

from pitboss.agent.decider import Judge
from pitboss.core.intent import Decision
from pitboss.core.state import State
from pitboss.tick import Ports

LOSS_LIMIT = "loss_limit"
"""The flag of a tick at which a loss limit closed what was open."""


class PersonDecider:
    """Gives the intents of a command, or those that a limit demands."""

    def __init__(self, intents: Sequence[Any], command: str, name: str) -> None:
        self.name = name
        self._decision = Decision(tuple(intents), flags=(command,))

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """The intents, whatever is observed."""
        del observation, judge
        return self._decision


class PersonPorts:
    """The ports of a venue with a `PersonDecider`; nothing skips it, and no prompt is built."""

    build_prompts = False
    reflector = None

    def __init__(self, inner: Ports, decider: PersonDecider) -> None:
        self._inner = inner
        self.decider = decider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def skip_flag(self, state: State, observation: Any) -> str:
        """Always decided."""
        del state, observation
        return ""

    def with_shown(self, state: State, observation: Any, decision: Decision) -> State:
        """The agent was shown nothing."""
        del observation, decision
        return state

    def wake_reference(self, state: State, observation: Any) -> Any:
        """The agent was asked nothing."""
        del observation
        return state.asked_close, state.news_seen


def decided_by_person(inner: Ports, intents: Sequence[Any], command: str) -> Ports:
    """The ports of a tick whose decision is these intents."""
    return cast("Ports", PersonPorts(inner, PersonDecider(intents, command, f"person/{command}")))


def decided_by_limit(inner: Ports, intents: Sequence[Any]) -> Ports:
    """The ports of a tick whose decision is to close what a loss limit no longer allows."""
    return cast("Ports", PersonPorts(inner, PersonDecider(intents, LOSS_LIMIT, f"engine/{LOSS_LIMIT}")))
