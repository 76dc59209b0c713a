"""What a model would be given at the first tick of a predict run that starts at an instant, byte for byte.

The same assembly, world, observation and context as a backtest's, with a fresh account; no model is needed or asked. The
perp venue's is `venues/perp/preview.py`, whose `Preview` this gives too.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, Instant, iso
from pitboss.data.feed import check_symbols, load_market
from pitboss.data.lake import Lake
from pitboss.tools.registry import lookup, permit
from pitboss.venues.perp.assembly import choose_venue
from pitboss.venues.perp.preview import Preview
from pitboss.venues.predict.agent import FALLBACK, VENUE, read_predict_skill
from pitboss.venues.predict.assembly import BASE, make_script
from pitboss.venues.predict.course import first_state
from pitboss.venues.predict.data.recorded import read_surfaces
from pitboss.venues.predict.form import PredictRequest
from pitboss.venues.predict.intents import TERMINAL


def preview(request: PredictRequest, lake: Lake, settings: Settings, at: Instant | None = None) -> Preview:
    """The question at tick `at`, else at the newest tick that has data. The request's own range does not matter."""
    skill = read_predict_skill(request.skill)
    underlying, every = skill.context.underlying, skill.schedule.every_ms
    venue = choose_venue(request.data_venue or settings.data_venue, lake, (underlying,))
    if at is None:
        at = _newest(lake, venue, underlying) // every * every
    elif at % every:
        before = at - at % every
        raise UserError(
            f"{iso(at)} is not a tick of a {skill.schedule.every} schedule",
            f"the nearest are {iso(before)} and {iso(before + every)}",
        )
    # A heuristic stands in for the model: one that cannot be reached is no reason to fail.
    quiet = replace(request, model=FALLBACK, decisions=None, prompts=True, from_at=at, to_at=at + every)
    market = load_market(lake, venue, [underlying], [BASE], at, with_news=False)
    surfaces = read_surfaces(Path(request.surfaces)) if request.surfaces else None
    script = make_script(quiet, skill, market, np.array([at], dtype=np.int64), 1, surfaces)
    fresh = first_state(script)
    world = script.advance(fresh.world, 0, script.places()[0]).world
    built = script.ports.context.prompt(script.ports.observe(replace(fresh, world=world), at))
    looks = permit(skill.tools.built_in, "write", venue=VENUE) if skill.max_steps > 1 else []  # one step is the last
    tools = tuple(
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in (*looks, lookup(TERMINAL, VENUE))
    )
    return Preview(at, built.system, built.user, tools)


def _newest(lake: Lake, venue: str, underlying: str) -> Instant:
    """When the last price was known."""
    check_symbols(lake, venue, [underlying])
    extent = lake.extent(venue, underlying, BASE)
    if extent is None:
        raise UserError(f"no one-minute bars of {underlying}", "see `pitboss data list`")
    return extent[1] + MINUTE_MS
