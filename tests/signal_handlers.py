"""Avoids an error inside `signal` of Python 3.11 that holds the text of each handler.

`asyncio.run` does so three times, and once its handler holds a finished task, whose text holds the whole result: in a test
that calls it for every tick of a world that takes longer than the tick. Later versions look up numbers alone.
"""

import signal
from typing import Any

_look_up: Any = signal._int_to_enum  # type: ignore[attr-defined]


def _look_up_numbers(value: Any, enumeration: Any) -> Any:
    return _look_up(value, enumeration) if isinstance(value, int) else value


def install() -> None:
    """Do as later versions do, from now on."""
    signal._int_to_enum = _look_up_numbers  # type: ignore[attr-defined]
