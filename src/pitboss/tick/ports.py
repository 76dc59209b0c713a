"""`Ports`: everything a tick needs besides its state, with a default for each step that a venue need not change.

A venue derives a `@noun` from it, adds its own fields and implements `observe`, `rule_book` and `summary`; the other
methods say what a venue without memory, wake conditions and halts does.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.agent.prompt import Prompts
from pitboss.agent.reflection import Reflector
from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.rulebook import RuleBook
from pitboss.core.state import State
from pitboss.core.trace import SILENT, Tracer
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Broker
from pitboss.engine.guard import Judgement, guard


@noun
class Ports(ABC):
    """The decider, the broker, and the venue's part of each step of a tick."""

    _: KW_ONLY
    decider: Decider
    broker: Broker
    context: Prompts
    keep_prompts: bool = True
    build_prompts: bool = True
    tracer: Tracer = SILENT
    notes: Callable[[], tuple[str, ...]] = tuple
    """Returns the notes about the agent's own tools that the prompt of this tick shows."""
    reflector: Reflector | None = None
    """Writes lessons; None if nothing is learned, or if the run has no model to call."""
    reread: Callable[[Any], Awaitable[tuple[Any, Sequence[Receipt]]]] | None = None
    """Reads the account again after a decision and before its verdict, with what has happened meanwhile; None where nothing
    happens while a model thinks, as in a simulation."""

    @abstractmethod
    def observe(self, state: State, at: Instant) -> Any:
        """What the agent may know now."""

    @abstractmethod
    def rule_book(self, observation: Any, state: State, at: Instant) -> RuleBook:
        """The rules, bound to the current state."""

    @abstractmethod
    def summary(self, world: Any) -> dict[str, Any]:
        """The account in the form that records store; `equity` or `equity_usd` is one of its keys."""

    def is_over(self, world: Any) -> bool:
        """Whether nothing is left to decide, such as an account without money and positions. By default never."""
        del world
        return False

    def skip_flag(self, state: State, observation: Any) -> str:
        """The flag of the no-op if the decider is not called at this tick; empty if it is called."""
        del observation
        return "ruined" if self.is_over(state.world) else ""

    def with_shown(self, state: State, observation: Any, decision: Decision) -> State:
        """The state after the decider was shown an observation; a decision with `model_error` means it was not.

        By default nothing of that is stored.
        """
        del observation, decision
        return state

    def with_verdict(self, state: State, intent: Any, verdict: Verdict) -> State:
        """The state after an intent was judged and, if allowed, executed; by default the same."""
        del intent, verdict
        return state

    def guard(self, observation: Any, state: State, intent: Any, at: Instant) -> Judgement:
        """Judge one intent against the rules, on the current state."""
        return guard(self.rule_book(observation, state, at), state.seen, intent, at)

    def halt(self, world: Any, at: Instant) -> tuple[Any, Sequence[Receipt]]:
        """Halt the account after a rule failed: no position is opened any more. By default the run ends."""
        raise InvariantError("a rule itself failed, and this venue cannot halt an account")

    def standing_halt(self, world: Any, at: Instant) -> tuple[str, str]:
        """The code and the cause of a halt of the account that only a person lifts; two empty texts if there is none."""
        del world, at
        return "", ""

    def lift_halts(self, world: Any, at: Instant) -> tuple[Any, Sequence[Receipt]]:
        """The account without its halts, after a person has resumed the deployment; by default it has none."""
        del at
        return world, ()

    def closing_intents(self, world: Any) -> tuple[Any, ...]:
        """The intents that cancel every order and close every position; none if the venue has no such thing."""
        del world
        return ()

    def summary_after(self, world: Any, world_before: Any, summary_before: dict[str, Any]) -> dict[str, Any]:
        """`summary(world)`; `summary_before` is that of `world_before`, the world at the beginning of the tick."""
        return summary_before if world is world_before else self.summary(world)

    def remember(self, state: State, observation: Any, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]) -> Any:
        """The memory after these receipts and verdicts; by default nothing is added."""
        del observation, receipts, verdicts
        return state.memory

    def wake_reference(self, state: State, observation: Any) -> tuple[Mapping[str, float], int]:
        """The closes and the number of news items that the model has seen, for wake conditions; unchanged by default."""
        del observation
        return state.asked_close, state.news_seen
