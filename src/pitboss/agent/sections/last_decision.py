"""`## Last decision`: what was proposed at the tick before and what the engine did with it."""

from pitboss.agent.before import told
from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo

PLACE = 110


def render(observation: Observation, memo: Memo) -> str | None:
    """From the second tick on."""
    return told(observation.last, "proposed", "noop")
