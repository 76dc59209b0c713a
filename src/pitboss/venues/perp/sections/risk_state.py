"""`## Risk state`: facts about the account's recent risk, computed by code."""

from pitboss.prompt.render import NOT_A_NUMBER, percent
from pitboss.venues.perp.memory import risk
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 80

_MOST_RULES = 5
"""Maximum number of rules named; rule names are long and the section is short."""


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section if memory is enabled and there is anything to show."""
    if not memo.memory_enabled:
        return None
    found = risk(observation.memory, observation.world, observation.at)
    if found.silent:
        return None
    lines = ["## Risk state"]
    if found.refused:
        named = [f"{code} {count}" for code, count in found.refused[:_MOST_RULES]]
        rest = sum(count for _, count in found.refused[_MOST_RULES:])
        named += [f"others {rest}"] if rest else []
        lines.append(f"- refused in the last hour: {', '.join(named)}")
    if found.latest:
        lines.append(f"- latest refusals, newest first: {', '.join(found.latest)}")
    if found.executed or found.realised_pct:
        result = percent(found.realised_pct)
        result = f"+{result}" if found.realised_pct > 0 and result != NOT_A_NUMBER else result
        lines.append(f"- today (UTC): {found.executed} orders executed, realised {result} of the day's starting equity")
    if found.losses:
        lines.append(f"- losing trades in a row: {found.losses}")
    return "\n".join(lines)
