"""`## Last decision`: the proposal of the previous tick and the engine's verdict on it."""

from pitboss.agent.last_decision import last_decision_section
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 110


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section from the second tick on."""
    return last_decision_section(observation.last, "proposed", "noop")
