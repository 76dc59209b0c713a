"""The prompts of a tick on the predict venue: the system prompt of the mandate and one user message made of sections.

Rendering is deterministic: the same observation always gives the same bytes. Its only side effect is that asks shown by
a section are recorded in the observation.
"""

from pitboss.agent.prompt import Prompts
from pitboss.venues.predict.sections import sections
from pitboss.venues.predict.system_prompt import compose_mandate


class PredictPrompts(Prompts):
    """Prompts of one mandate. Created once per run."""

    def __init__(self, mandate: str) -> None:
        Prompts.__init__(self, compose_mandate(mandate), sections())
