"""`Watch`: the callbacks that observe a run. They do not affect the run, except that they may request a stop."""

from collections.abc import Callable
from dataclasses import dataclass


def nothing_asked() -> bool:
    """Never request a stop."""
    return False


def no_progress(done: float) -> None:
    """Ignore progress."""
    del done


def no_news(words: str) -> None:
    """Ignore messages."""
    del words


@dataclass(frozen=True, slots=True)
class Watch:
    """Callbacks for progress and messages, and a check whether to stop."""

    progress: Callable[[float], None] = no_progress
    stop: Callable[[], bool] = nothing_asked
    told: Callable[[str], None] = no_news
