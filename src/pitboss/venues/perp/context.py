"""Builds the prompt of a tick: the system prompt of the skill and one user message made of sections.

The same observation always gives the same bytes, whatever was rendered before, so a run can be verified by its prompts.
Not here: the wording of the system prompt (`venues.perp.system_prompt`), the sections (`venues.perp.sections`), the
model call.
"""

from collections.abc import Callable

from pitboss.agent.prompt import Prompt, Prompts
from pitboss.core.instant import Instant
from pitboss.venues.perp.blind.anonymiser import PerpAnonymiser
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, Section, sections
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.system_prompt import compose_system

MAX_CACHED_PROMPTS = 48
"""Prompts cached: more than any speculation window requests ahead."""


class PerpPrompts(Prompts):
    """The prompts of one skill, created once per run.

    It caches formatted rows and prompts between ticks; the caches never change what is rendered.
    """

    def __init__(self, skill: PerpSkill, anonymiser: PerpAnonymiser | None = None) -> None:
        self.anonymiser = anonymiser
        visible_skill = skill if anonymiser is None else anonymiser.skill(skill)
        system = compose_system(visible_skill.strategy.texts())
        memo = Memo(visible_skill)
        Prompts.__init__(
            self,
            system if anonymiser is None else anonymiser.header(system),
            [_with_memo(section, memo) for section in sections()],
        )
        self._prompts: dict[Instant, tuple[Observation, Prompt]] = {}

    def prompt(self, observation: Observation) -> Prompt:
        """Return the prompt of a tick; one rendered ahead of its tick is reused if the facts are the same."""
        cached = self._prompts.get(observation.at)
        if cached is not None and _same(cached[0], observation):
            return cached[1]
        prompt = Prompts.prompt(self, observation)
        newest = next(reversed(self._prompts.values()), None)
        if newest is not None and not newest[0].view.same_market(observation.view):
            self._prompts.clear()  # of a live feed, which has a new market at every tick and never returns to an old one
        if len(self._prompts) >= MAX_CACHED_PROMPTS:
            del self._prompts[next(iter(self._prompts))]
        self._prompts[observation.at] = observation, prompt
        return prompt


def _with_memo(section: Section, memo: Memo) -> Callable[[Observation], str | None]:
    return lambda observation: section(observation, memo)


def _same(first: Observation, second: Observation) -> bool:
    """Return whether two observations of an instant hold the same facts, so that their prompts are the same bytes."""
    return (
        first.world == second.world
        and first.last == second.last
        and first.accepted_opens == second.accepted_opens
        and first.memory == second.memory
        and first.notes == second.notes
        and first.started_at == second.started_at
        and first.view.same_market(second.view)
        and first.terms == second.terms
        and first.limits == second.limits
        and first.skill is second.skill
    )
