"""`Prompt`: the system and user text of one tick."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a model receives before its first reply."""

    system: str
    user: str
