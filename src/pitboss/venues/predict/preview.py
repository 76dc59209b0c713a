"""Previews the exact model request of the first tick of a predict run that starts at a given instant.

It uses the same preparation, world, observation and prompts as a backtest, with a fresh account. No model is called.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.ports import ToolSpec
from pitboss.data.feed import check_symbols, choose_venue, load_market
from pitboss.data.lake import Lake
from pitboss.runs.preview import Preview, check_tick, offered
from pitboss.tools.registry import permit
from pitboss.venues.predict.agent import FALLBACK, read_predict_skill, tools
from pitboss.venues.predict.assembly import BASE, PredictRun
from pitboss.venues.predict.course import first_state
from pitboss.venues.predict.data.recorded import read_surfaces
from pitboss.venues.predict.intents import DECISION
from pitboss.venues.predict.request import PredictRequest


def preview(request: PredictRequest, lake: Lake, settings: Settings, at: Instant | None = None) -> Preview:
    """Return the request at tick `at`, by default the newest tick with data. The range of the request is ignored."""
    skill = read_predict_skill(request.skill)
    underlying, period = skill.context.underlying, skill.every_ms
    data_venue = choose_venue(request.data_venue or settings.data_venue, lake, (underlying,))
    if at is None:
        at = _newest(lake, data_venue, underlying) // period * period
    else:
        check_tick(at, period, skill.schedule.every)
    # The fallback heuristic replaces the model, so that a preview also works if the model is unreachable.
    quiet = replace(request, model=FALLBACK, decisions=None, prompts=True, from_at=at, to_at=at + period)
    run = PredictRun(
        request=quiet,
        skill=skill,
        data_venue=data_venue,
        data_digest="",
        synthetic=False,
        tick_at=np.array([at], dtype=np.int64),
        market=load_market(lake, data_venue, [underlying], [BASE], at, with_news=False),
        surfaces=read_surfaces(Path(request.surfaces)) if request.surfaces else None,
        commit_records=1,
        most_errors=settings.model_errors,
    )
    course = run.course()
    fresh = first_state(course)
    world = course.advance(fresh.world, 0, course.tick_offsets()[0]).world
    prompt = course.ports.context.prompt(course.ports.observe(fresh.after(world=world), at))
    listed = (
        permit(tools(), skill.tool_names, "write") if skill.max_steps > 1 else []
    )  # a single step is the final one, which offers no tools
    specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in listed]
    return Preview(at, prompt.system, prompt.user, offered([*specs, DECISION.spec]))


def _newest(lake: Lake, venue: str, underlying: str) -> Instant:
    """Return the instant of the last available price."""
    check_symbols(lake, venue, [underlying])
    extent = lake.extent(venue, underlying, BASE)
    if extent is None:
        raise UserError(f"no one-minute bars of {underlying}", "see `pitboss data list`")
    return extent[1] + MINUTE_MS
