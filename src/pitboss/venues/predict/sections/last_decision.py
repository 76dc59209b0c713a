"""`## Last decision`: what was decided at the tick before and what the engine did with it, reductions included."""

from pitboss.agent.last_decision import told
from pitboss.venues.predict.observation import PredictObservation

PLACE = 70


def render(observation: PredictObservation) -> str | None:
    """From the second tick on."""
    return told(observation.last, "decided", "hold")
