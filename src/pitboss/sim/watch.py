"""Who looks on while a run is made. Nothing here changes what a run does, except that it may be asked to stop."""

from collections.abc import Callable
from dataclasses import dataclass


def nothing_asked() -> bool:
    """Nobody asks for a stop."""
    return False


def no_progress(done: float) -> None:
    """Nobody watches."""
    del done


def no_news(words: str) -> None:
    """Nobody listens."""
    del words


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on: told how far we are and what is worth a line, asked whether to stop."""

    progress: Callable[[float], None] = no_progress
    stop: Callable[[], bool] = nothing_asked
    told: Callable[[str], None] = no_news
