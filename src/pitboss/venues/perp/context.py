"""Builds the prompt of a tick: the system prompt of the skill and one user message made of sections.

The same observation always gives the same bytes, whatever was rendered before, so a run can be verified by its prompts.
Not here: the wording of the system prompt (`venues.perp.system_prompt`), the sections (`venues.perp.sections`), the
model call.
"""

from pitboss.agent.prompt import Prompt
from pitboss.core.instant import Instant
from pitboss.venues.perp.blind.anonymiser import Anonymiser
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, sections
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.system_prompt import compose_system

MOST_KEPT = 48
"""Prompts cached: more than any speculation window requests ahead."""


class PerpPrompts:
    """The prompts of one skill, created once per run.

    It caches formatted rows and prompts between ticks; the caches never change what is rendered.
    """

    __slots__ = ("_made", "_memo", "_sections", "_system", "anonymiser")

    def __init__(self, skill: PerpSkill, anonymiser: Anonymiser | None = None) -> None:
        self.anonymiser = anonymiser
        shown = skill if anonymiser is None else anonymiser.skill(skill)
        system = compose_system(shown.strategy.texts())
        self._system = system if anonymiser is None else anonymiser.header(system)
        self._sections = sections()
        self._memo = Memo(shown)
        self._made: dict[Instant, tuple[Observation, Prompt]] = {}

    def system(self) -> str:
        """Return the system prompt, the same at every tick."""
        return self._system

    def shown(self, observation: Observation) -> Observation:
        """Return the observation that the model sees, which is anonymised in a blind run."""
        return observation if self.anonymiser is None else self.anonymiser.observation(observation)

    def user(self, observation: Observation) -> str:
        """Return the user message of a tick."""
        memo, shown = self._memo, self.shown(observation)
        return "\n\n".join([text for section in self._sections if (text := section(shown, memo)) is not None])

    def prompt(self, observation: Observation) -> Prompt:
        """Return the prompt of a tick; one rendered ahead of its tick is reused if the facts are the same."""
        known = self._made.get(observation.at)
        if known is not None and _same(known[0], observation):
            return known[1]
        prompt = Prompt(self._system, self.user(observation))
        if len(self._made) >= MOST_KEPT:
            del self._made[next(iter(self._made))]
        self._made[observation.at] = observation, prompt
        return prompt


def _same(one: Observation, other: Observation) -> bool:
    """Return whether two observations of an instant hold the same facts, so that their prompts are the same bytes."""
    return (
        one.world == other.world
        and one.last == other.last
        and one.accepted_opens == other.accepted_opens
        and one.memory == other.memory
        and one.notes == other.notes
        and one.started_at == other.started_at
        and one.view.same_market(other.view)
        and one.terms == other.terms
        and one.limits == other.limits
        and one.skill is other.skill
    )
