"""The prompts of a community agent: base text, profile and the author's own words; the context as one fenced JSON document.

The context replaces `{{context}}` literally, whatever characters it holds. Strangers wrote most of it: `<`, `>` and `&` inside it
are escaped, so no post can end the fence, and characters that a reader cannot see are removed.
"""

import re
from functools import cache
from importlib import resources
from typing import Any

from pitboss.agent.prompt import Prompts
from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.prompt.render import INVISIBLE
from pitboss.venues.community.agent_world import AgentWorld, InboxItem
from pitboss.venues.community.context_bounds import bounded_results
from pitboss.venues.community.skill import CommunitySkill

PLACE = "{{context}}"
_INVISIBLE = re.compile(f"[\x7f-\x9f{INVISIBLE}]")
_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


@noun
class CommunityObservation:
    """What the agent may know at a heartbeat."""

    at: Instant
    skill: CommunitySkill
    world: AgentWorld
    memory: Any = None

    @property
    def inbox(self) -> tuple[InboxItem, ...]:
        """Results of earlier actions that the model has not seen."""
        return self.world.inbox


@cache
def prompt_text(name: str) -> str:
    """A shipped text of the prompt."""
    folder = resources.files("pitboss.venues.community") / "prompts"
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()


class CommunityPrompts(Prompts):
    """The prompts of one skill."""

    def __init__(self, skill: CommunitySkill) -> None:
        strategy = skill.strategy
        profile = None if strategy.profile is None else prompt_text(strategy.profile)
        super().__init__("\n\n".join(part for part in (prompt_text("agent"), profile, strategy.text) if part), ())
        self._template = "\n\n".join(part for part in (prompt_text("user"), strategy.user_text) if part)

    def user(self, observation: CommunityObservation) -> str:
        """The template with the context in its place."""
        return self._template.replace(PLACE, context_json(observation), 1)


def context_json(observation: CommunityObservation) -> str:
    """The context as compact JSON that cannot end its fence."""
    world = observation.world
    context = {
        "constraints": {"textLimits": world.text_limits},
        "communities": [] if world.community is None else [world.community],
        "runnerInbox": bounded_results([item.content for item in observation.inbox]),
    }
    text = _INVISIBLE.sub("", codec.dumps(codec.number_fragments(context)).decode())
    for character, escape in _ESCAPES:
        text = text.replace(character, escape)
    return text
