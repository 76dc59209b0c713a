"""The user message of the predict venue, one file per section: `PLACE` is its position, `render(observation)` its text.

`render` returns the section's text with its title, or None to omit it. Adding a file here adds a section; nothing else
is needed. A section that shows an ask records it in the observation.
"""

from collections.abc import Callable
from functools import lru_cache

from pitboss.agent.prompt import sections_of
from pitboss.venues.predict.observation import PredictObservation

Section = Callable[[PredictObservation], str | None]


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """Return the `render` function of every section, in the order of the message."""
    return sections_of(__name__)
