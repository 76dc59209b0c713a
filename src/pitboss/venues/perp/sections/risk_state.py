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
    recent = risk(observation.memory, observation.world, observation.at)
    if recent.silent:
        return None
    lines = ["## Risk state"]
    if recent.refused:
        refused = [f"{code} {count}" for code, count in recent.refused[:_MOST_RULES]]
        others = sum(count for _, count in recent.refused[_MOST_RULES:])
        refused += [f"others {others}"] if others else []
        lines.append(f"- refused in the last hour: {', '.join(refused)}")
    if recent.latest:
        lines.append(f"- latest refusals, newest first: {', '.join(recent.latest)}")
    if recent.executed or recent.realised_pct:
        result = percent(recent.realised_pct)
        result = f"+{result}" if recent.realised_pct > 0 and result != NOT_A_NUMBER else result
        lines.append(
            f"- today (UTC): {recent.executed} orders executed, realised {result} of the day's starting equity"
        )
    if recent.losses:
        lines.append(f"- losing trades in a row: {recent.losses}")
    return "\n".join(lines)
