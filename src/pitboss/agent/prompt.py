"""`Prompt`: the system and user text of one tick; `Prompts`: how they are built from a venue's sections."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from pitboss.core.discovery import modules_of


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a model receives before its first reply."""

    system: str
    user: str


Section = Callable[[Any], str | None]
"""A section of the user message, with its title; None to leave it out."""


def sections_of(package: str) -> tuple[Callable[..., str | None], ...]:
    """The `render` functions of a package's modules, in the order of their `PLACE` in the message."""
    return tuple(module.render for module in sorted(modules_of(package), key=lambda module: module.PLACE))


class Prompts:
    """The prompts of one run: a system prompt that is the same at every tick, and one user message made of sections.

    The same observation must always give the same bytes. `anonymiser` is None unless the run is blind.
    """

    anonymiser: Any = None

    def __init__(self, system: str, sections: Sequence[Section]) -> None:
        self._system = system
        self._sections = sections

    def system(self) -> str:
        """The system prompt."""
        return self._system

    def blind(self, anonymiser: Any) -> Self:
        """The same prompts with everything anonymised, or unchanged without an anonymiser."""
        if anonymiser is None:
            return self
        blind = copy(self)
        blind.anonymiser, blind._system = anonymiser, anonymiser.system(self._system)
        return blind

    def shown(self, observation: Any) -> Any:
        """The observation that the model sees; a blind run anonymises it."""
        return observation if self.anonymiser is None else self.anonymiser.observation(observation)

    def user(self, observation: Any) -> str:
        """The user message of a tick."""
        visible = self.shown(observation)
        return "\n\n".join([text for section in self._sections if (text := section(visible)) is not None])

    def prompt(self, observation: Any) -> Prompt:
        """The system prompt and the user message of a tick."""
        return Prompt(self._system, self.user(observation))
