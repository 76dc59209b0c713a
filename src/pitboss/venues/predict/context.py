"""The prompts of a tick on the predict venue: the system prompt of the mandate and one user message made of sections.

Rendering is deterministic: the same observation always gives the same bytes. Its only side effect is that asks shown by
a section are recorded in the observation.
"""

from pitboss.agent.prompt import Prompt
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.sections import sections
from pitboss.venues.predict.system_prompt import compose_mandate


class PredictPrompts:
    """Prompts of one mandate. Created once per run."""

    __slots__ = ("_sections", "_system", "anonymiser")

    def __init__(self, mandate: str) -> None:
        self.anonymiser = None
        """Always None: this venue has no blind mode."""
        self._system = compose_mandate(mandate)
        self._sections = sections()

    def system(self) -> str:
        """Return the system prompt; it is the same at every tick."""
        return self._system

    def shown(self, observation: PredictObservation) -> PredictObservation:
        """Return the observation unchanged."""
        return observation

    def user(self, observation: PredictObservation) -> str:
        """Return the user message of a tick."""
        return "\n\n".join(text for section in self._sections if (text := section(observation)) is not None)

    def prompt(self, observation: PredictObservation) -> Prompt:
        """Return the system prompt and the user message of a tick."""
        return Prompt(self._system, self.user(observation))
