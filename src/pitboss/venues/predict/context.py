"""What the model is told at a tick of the predict venue: the mandate's system prompt and one message made of sections.

The same observation always gives the same bytes. Asks that a section shows are noted in the observation, which is all
that rendering leaves behind.
"""

from pitboss.agent.prompt import Prompt
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.sections import sections
from pitboss.venues.predict.system_prompt import compose_mandate


class PredictPrompts:
    """Prompts of one mandate. Made once for a run."""

    __slots__ = ("_sections", "_system", "disguise")

    def __init__(self, mandate: str) -> None:
        self.disguise = None
        """Runs of this venue are not blind."""
        self._system = compose_mandate(mandate)
        self._sections = sections()

    def system(self) -> str:
        """The system prompt; the same at every tick."""
        return self._system

    def shown(self, observation: PredictObservation) -> PredictObservation:
        """The observation itself."""
        return observation

    def user(self, observation: PredictObservation) -> str:
        """The user message of a tick."""
        return "\n\n".join(text for section in self._sections if (text := section(observation)) is not None)

    def prompt(self, observation: PredictObservation) -> Prompt:
        """Both halves of a tick."""
        return Prompt(self._system, self.user(observation))
