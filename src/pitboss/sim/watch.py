"""`Watch`: the callbacks that observe a run. They do not affect the run, except that they may request a stop."""

from collections.abc import Callable
from dataclasses import dataclass


def never_stop() -> bool:
    """Never request a stop."""
    return False


def no_progress(share: float) -> None:
    """Ignore progress."""
    del share


def no_message(text: str) -> None:
    """Ignore messages."""
    del text


@dataclass(frozen=True, slots=True)
class Watch:
    """Callbacks for progress, messages and the cost so far as text, and a check whether to stop."""

    progress: Callable[[float], None] = no_progress
    stop: Callable[[], bool] = never_stop
    message: Callable[[str], None] = no_message
    cost: Callable[[str], None] = no_message
