"""When a request may be repeated: after a failure all wait with exponential backoff, and each purpose has its own pause."""

from collections.abc import Callable, Hashable

from pitboss.core.backoff import backoff_s

FIRST_PAUSE_S, LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 1.0, 30.0, 0.5


class RequestPacer:
    """Pauses of requests. `elapsed` is a monotonic clock in seconds, `random` gives numbers from 0 to 1."""

    def __init__(self, elapsed: Callable[[], float], random: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._random = random
        self._from_s = 0.0
        self._purposes: dict[Hashable, tuple[int, float]] = {}
        self.failures = 0
        """Failures in a row."""
        self.problem = ""
        """What the newest failure was; empty after a success."""

    def may_ask(self) -> bool:
        """Whether the backoff after failures is over."""
        return self._elapsed() >= self._from_s

    def may_repeat(self, purpose: Hashable) -> bool:
        """Whether the pause of a purpose is over."""
        return self._elapsed() >= self._purposes.get(purpose, (0, 0.0))[1]

    def is_time(self, purpose: Hashable, every_s: float) -> bool:
        """Whether a regular request is due: the first time after one period."""
        if purpose in self._purposes and not self.may_repeat(purpose):
            return False
        is_first = purpose not in self._purposes
        self.postpone(purpose, every_s)
        return not is_first

    def postpone(self, purpose: Hashable, pause_s: float) -> None:
        """Do not ask for a purpose before a pause is over."""
        self._purposes[purpose] = 0, self._elapsed() + pause_s

    def on_progress(self, purpose: Hashable) -> None:
        """Forget the pauses of a purpose: a reply had what was asked for."""
        self._purposes.pop(purpose, None)

    def on_request(self, purpose: Hashable) -> None:
        """Pause a purpose after a request, twice as long as after the one before, until there is progress."""
        count = self._purposes.get(purpose, (0, 0.0))[0] + 1
        self._purposes[purpose] = count, self._elapsed() + min(LONGEST_PAUSE_S, 2.0**count)

    def on_success(self) -> None:
        """End the backoff."""
        self.failures, self.problem = 0, ""

    def on_failure(self, problem: str) -> None:
        """Begin or extend the backoff."""
        self.failures += 1
        self.problem = problem
        pause = backoff_s(self.failures, self._random(), FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._from_s = self._elapsed() + max(SHORTEST_PAUSE_S, pause)
