"""The request that a model would receive at a tick, as `skill preview` shows it, with a token estimate."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pitboss.core import codec
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant, duration_text, iso
from pitboss.core.ports import ToolSpec
from pitboss.core.state import State
from pitboss.data.feed import check_symbols, choose_venue
from pitboss.data.lake import Lake
from pitboss.models import standin
from pitboss.sim.connections import NO_SERVER_TOOLS, ServerTools
from pitboss.sim.course import Course
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument
from pitboss.tools.registry import Registry, permit

R = TypeVar("R", bound=BacktestRequest)
CHARS_PER_TOKEN = 4
ANY_GAP = 10**9
"""A preview reads the past of one tick: gaps in the data do not matter to it."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The complete request: system prompt, user message, and tools in the order in which they are offered."""

    at: Instant
    system: str
    user: str
    tools: tuple[dict[str, Any], ...]

    @property
    def tokens_estimate(self) -> int:
        """An estimate of the request's tokens; providers count differently."""
        chars = len(self.system) + len(self.user) + len(codec.dumps(self.tools))
        return -(-chars // CHARS_PER_TOKEN)


def offered(specs: Iterable[ToolSpec]) -> tuple[dict[str, Any], ...]:
    """Tools in the form in which a preview shows them."""
    return tuple(
        {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)} for spec in specs
    )


def preview_of(
    course: Course,
    state: State,
    at: Instant,
    skill: SkillDocument,
    tools: Registry,
    decision: DecisionFormat,
    server_tools: ServerTools = NO_SERVER_TOOLS,
) -> Preview:
    """The preview of the tick at `at` with the account of `state`. Nothing is sent."""
    prompt = course.ports.context.prompt(course.ports.observe(state, at))
    specs: list[ToolSpec] = []
    if skill.max_steps > 1:  # with a single step only the decision is offered
        listed = permit(tools, skill.tool_names, "write")
        specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in listed]
        specs += server_tools.specs
    return Preview(at, prompt.system, prompt.user, offered([*specs, decision.spec]))


def first_tick_request(request: R, at: Instant, period_ms: int) -> R:
    """The request of a run of one tick at `at`, for its preview.

    The stand-in replaces the model, so that a preview also works if the model is unreachable; it is not called.
    """
    check_tick(at, period_ms)
    return replace(
        request, from_at=at, to_at=at + period_ms, model=standin.NAME, decisions=None, prompts=True, max_gap=ANY_GAP
    )


def newest_tick(lake: Lake, requested_venue: str, symbols: tuple[str, ...], period: int, interval: str = "") -> Instant:
    """The newest tick at which the last bar of every symbol has closed, of those from which the interval can be built.

    Without an interval it is the period.
    """
    if not symbols:
        raise UserError("the newest tick is not known on this venue", "give a tick with --at")
    venue = choose_venue(requested_venue, lake, symbols)
    check_symbols(lake, venue, symbols)
    length = INTERVALS[interval] if interval else period
    ends: list[Instant] = []
    for symbol in symbols:
        closes = [
            extent[1] + INTERVALS[name]
            for name in lake.intervals(venue, symbol)
            if length % INTERVALS[name] == 0 and (extent := lake.extent(venue, symbol, name))
        ]
        if not closes:
            raise UserError(f"no bars of {symbol} fit the schedule", "see `pitboss data list`")
        ends.append(max(closes))
    return min(ends) // period * period


def check_tick(at: Instant, period_ms: int) -> None:
    """Refuse an instant that is not a tick of a schedule."""
    if at % period_ms:
        before = at - at % period_ms
        raise UserError(
            f"{iso(at)} is not a tick of a {duration_text(period_ms)} schedule",
            f"the nearest are {iso(before)} and {iso(before + period_ms)}",
        )
