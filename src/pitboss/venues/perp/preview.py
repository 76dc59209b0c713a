"""What a model would be given at the first tick of a run that starts at an instant: `skill preview`.

It goes through the same assembly, observation and context as a backtest, so it is the same text byte for byte. No
model is needed or asked.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pitboss.bootstrap.mcp_tools import Offered
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.data.feed import check_symbols
from pitboss.data.lake import Lake
from pitboss.data.listings import run_listings
from pitboss.skill.schema import Skill
from pitboss.tools.registry import permit
from pitboss.venues.perp.assembly import Assembly, PerpRequest, assemble, choose_venue, read_skill
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.intents import TERMINAL

CHARS_PER_TOKEN = 4
ANY_GAP = 10**9


@dataclass(frozen=True, slots=True)
class Preview:
    """The whole question: system prompt, user message, tools in the order in which they are offered."""

    at: Instant
    system: str
    user: str
    tools: tuple[dict[str, Any], ...]

    @property
    def tokens_estimate(self) -> int:
        """Roughly how many tokens it is; providers count differently."""
        chars = len(self.system) + len(self.user) + len(codec.dumps(self.tools))
        return -(-chars // CHARS_PER_TOKEN)


def preview(
    request: PerpRequest, lake: Lake, settings: Settings, at: Instant | None = None, outside: Offered | None = None
) -> Preview:
    """The question at tick `at`, else at the newest tick that has data. The request's own range does not matter.

    `outside` is what the skill's MCP servers offer.
    """
    skill, at, script = script_at(request, lake, settings, at)
    if outside is not None:
        script = replace(script, ports=replace(script.ports, notes=outside.notes))
    built = script.ports.context.prompt(script.ports.observe(first_state(script), at))
    looks = [name for name in skill.tools.built_in if name != TERMINAL]
    offered = permit([*looks, TERMINAL] if skill.max_steps > 1 else [TERMINAL], "write")  # one step is the last step
    others = outside.specs if outside is not None and skill.max_steps > 1 else ()
    tools = tuple(
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in (*offered[:-1], *others, offered[-1])
    )
    return Preview(at, built.system, built.user, tools)


def script_at(
    request: PerpRequest, lake: Lake, settings: Settings, at: Instant | None = None
) -> tuple[Skill, Instant, PerpCourse]:
    """The script of one tick of a skill, with a flat account and nobody to ask; at the newest tick unless `at` says."""
    skill = read_skill(request.skill)
    period = interval_ms(skill.schedule.every)
    if at is None:
        at = newest_tick(lake, request.data_venue or settings.data_venue, skill.context.sorted_symbols, period)
    elif at % period:
        before = at - at % period
        raise UserError(
            f"{iso(at)} is not a tick of a {skill.schedule.every} schedule",
            f"the nearest are {iso(before)} and {iso(before + period)}",
        )
    # A policy stands in for the model: nobody is asked, and a model that cannot be reached is no reason to fail.
    quiet = replace(request, model="policy/hold", decisions=None, prompts=True, max_gap=ANY_GAP)
    assembly = _assemble(quiet, lake, settings, at, period)
    script = assembly.script
    # Any hole may pass here; how long one may be in a run still says when a symbol is gone.
    bars = {symbol: script.market.bars[symbol, script.base_interval] for symbol in skill.context.sorted_symbols}
    listings = run_listings(lake.listings(assembly.venue), bars, at, at + period, request.max_gap)
    market = replace(script.market, listings=listings)
    ports = replace(script.ports, started_at=at, wakes=False, view=market.view)
    return skill, at, replace(script, market=market, tick_at=np.array([at], dtype=np.int64), ports=ports)


def _assemble(request: PerpRequest, lake: Lake, settings: Settings, at: Instant, period: int) -> Assembly:
    try:
        return assemble(replace(request, from_at=at, to_at=at + period), lake, settings)
    except UserError as error:
        # At the end of the data nothing comes after the tick yet; what the model sees is all before it.
        try:
            return assemble(replace(request, from_at=at - period, to_at=at), lake, settings)
        except UserError:
            raise error from None


def newest_tick(lake: Lake, asked_venue: str, symbols: tuple[str, ...], period: int) -> Instant:
    """The newest tick by which every symbol's last bar had closed."""
    venue = choose_venue(asked_venue, lake, symbols)
    check_symbols(lake, venue, symbols)
    ends: list[Instant] = []
    for symbol in symbols:
        closes = [
            extent[1] + interval_ms(interval)
            for interval in lake.intervals(venue, symbol)
            if period % interval_ms(interval) == 0 and (extent := lake.extent(venue, symbol, interval))
        ]
        if not closes:
            raise UserError(f"no bars of {symbol} fit the schedule", "see `pitboss data list`")
        ends.append(max(closes))
    return min(ends) // period * period
