"""The bars that the prompts of a skill show: previews begin at their end, and audits ask a model about them."""

from dataclasses import dataclass

from pitboss.core.instant import INTERVALS
from pitboss.skill.schema import SkillDocument

BARS = 48


@dataclass(frozen=True, slots=True)
class Charts:
    """Whose bars are shown, and how many of each interval, the shortest first. No symbols: any of the data."""

    tables: tuple[tuple[str, int], ...]
    symbols: tuple[str, ...] = ()
    news: bool = False
    """Whether news is shown too."""


def default_charts(skill: SkillDocument) -> Charts:
    """Bars as long as the time between two ticks, or the longest that are shorter."""
    fitting = [name for name, length in INTERVALS.items() if length <= skill.every_ms]
    return Charts(((fitting[-1] if fitting else next(iter(INTERVALS)), BARS),))
