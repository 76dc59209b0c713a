"""Everything one tick carries to the next. Storing it makes a run resumable; copying it makes speculation possible."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.snapshot import GENESIS
from pitboss.core.verdict import Verdict

_SAME: Any = object()
"""Stands for a field that does not change."""


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

    def after(
        self,
        *,
        world: Any = _SAME,
        seq: int = _SAME,
        prev_digest: str = _SAME,
        tick_at: Instant | None = _SAME,
        accepted_opens: tuple[Instant, ...] = _SAME,
        seen: Mapping[str, Verdict] = _SAME,
        last: LastDecision | None = _SAME,
        memory: Any = _SAME,
        asked_close: Mapping[str, float] = _SAME,
        news_seen: int = _SAME,
        model_errors: int = _SAME,
    ) -> "State":
        """A copy with these fields changed; the only way a state is derived from another, so that no field is lost.

        The same as `dataclasses.replace`, written out: 0.9 µs instead of 3, and a tick makes three.
        """
        return State(
            self.world if world is _SAME else world,
            self.seq if seq is _SAME else seq,
            self.prev_digest if prev_digest is _SAME else prev_digest,
            self.tick_at if tick_at is _SAME else tick_at,
            self.accepted_opens if accepted_opens is _SAME else accepted_opens,
            self.seen if seen is _SAME else seen,
            self.last if last is _SAME else last,
            self.memory if memory is _SAME else memory,
            self.asked_close if asked_close is _SAME else asked_close,
            self.news_seen if news_seen is _SAME else news_seen,
            self.model_errors if model_errors is _SAME else model_errors,
        )


def parse_state(plain: object, world_type: type[Any], memory_type: type[Any] | None = None) -> State:
    """Read a stored state, with its world, and its memory if it has one, as the venue's types."""
    state = codec.parse(State, plain)
    memory: Any = state.memory if memory_type is None else codec.parse(memory_type, state.memory or {})
    return state.after(world=codec.parse(world_type, state.world), memory=memory)
