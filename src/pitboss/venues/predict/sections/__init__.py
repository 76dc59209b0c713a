"""The user message of the predict venue, one file a section: a `PLACE` in the message and `render(observation)`.

`render` gives the section's text, title included, or None to leave it out. A new section is a new file here and nothing
else. A section that shows an ask notes it in the observation.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import lru_cache

from pitboss.venues.predict.observation import PredictObservation

Section = Callable[[PredictObservation], str | None]


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """Every section's `render`, in the order of the message."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(module.render for module in sorted(modules, key=lambda module: module.PLACE))
