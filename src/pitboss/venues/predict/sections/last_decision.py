"""`## Last decision`: the decision of the previous tick and the engine's verdict, reductions included."""

from pitboss.agent.last_decision import last_decision_section
from pitboss.venues.predict.observation import PredictObservation

PLACE = 70


def render(observation: PredictObservation) -> str | None:
    """Return the section; None at the first tick."""
    return last_decision_section(observation.last, "decided", "hold")
