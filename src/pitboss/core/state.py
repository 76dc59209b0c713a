"""Everything one tick carries to the next. Storing it makes a run resumable; copying it makes speculation possible."""

from collections.abc import Mapping
from dataclasses import field, fields
from operator import attrgetter
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.snapshot import GENESIS
from pitboss.core.verdict import Verdict


@noun
class LastDecision:
    """The decision of the tick before, as the `## Last decision` section shows it: of a no-op only its flag."""

    tick_at: Instant
    outcome: str
    flag: str = ""
    proposal: str = ""
    code: str = ""
    detail: str = ""


@noun
class State:
    """The carried-over value of `tick(state, ports) -> state, record`.

    `world` and `memory` are frozen values of the venue. `seen` holds the verdicts of the current tick by intent key; a key
    contains its tick, so verdicts of earlier ticks are never needed again. `asked_close` and `news_seen` are what the
    model saw when it was last asked, for skills that wake on changes.
    """

    world: Any
    seq: int = 0
    prev_digest: str = GENESIS
    tick_at: Instant | None = None
    accepted_opens: tuple[Instant, ...] = ()
    seen: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    last: LastDecision | None = None
    memory: Any = None
    asked_close: Mapping[str, float] = field(default_factory=dict[str, float])
    news_seen: int = 0
    model_errors: int = 0

    def after(self, **changes: Any) -> "State":
        """A copy with these fields changed; the only way a state is derived from another, so that no field is lost."""
        values = list(_values(self))
        for name, value in changes.items():
            values[_FIELD_INDEX[name]] = value
        return State(*values)


_FIELD_INDEX = {state_field.name: index for index, state_field in enumerate(fields(State))}
_values = attrgetter(*_FIELD_INDEX)


def parse_state(plain: object, world_type: type[Any], memory_type: type[Any] | None = None) -> State:
    """Read a stored state, with its world, and its memory if it has one, as the venue's types."""
    state = codec.parse(State, plain)
    memory: Any = state.memory if memory_type is None else codec.parse(memory_type, state.memory or {})
    return state.after(world=codec.parse(world_type, state.world), memory=memory)
