"""`## Last decision`: the decision of the previous tick and the engine's verdict, reductions included."""

from pitboss.agent.last_decision import told
from pitboss.venues.predict.observation import PredictObservation

PLACE = 70


def render(observation: PredictObservation) -> str | None:
    """Return the section; None at the first tick."""
    return told(observation.last, "decided", "hold")
