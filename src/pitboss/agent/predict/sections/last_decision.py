"""`## Last decision`: what was decided at the tick before and what the engine did with it, reductions included."""

from pitboss.agent.before import told
from pitboss.agent.predict.observation import PredictObservation

PLACE = 70


def render(observation: PredictObservation) -> str | None:
    """From the second tick on."""
    return told(observation.last, "decided", "hold")
