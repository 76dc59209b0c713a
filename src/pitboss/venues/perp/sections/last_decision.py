"""`## Last decision`: what was proposed at the tick before and what the engine did with it."""

from pitboss.agent.last_decision import told
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 110


def render(observation: Observation, memo: Memo) -> str | None:
    """From the second tick on."""
    return told(observation.last, "proposed", "noop")
