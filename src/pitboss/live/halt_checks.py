"""Checks that halt or pause a deployment besides the limits of its account: refused orders, old data, a silent model. Pure.

Each check has a limit and counts since the last reset; a person's `resume` resets them. Losses and drawdown are halts of the
account itself and belong to the venue.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pitboss.core.instant import MINUTE_MS, Instant, duration_text

REJECT_RATE, STALE_DATA, MODEL_OUTAGE = "reject_rate", "stale_data", "model_outage"


@dataclass(frozen=True, slots=True)
class HaltLimits:
    """How much is tolerated. `broker_code` is the code of a refusal by the venue itself, such as `R13_VENUE`."""

    broker_code: str = ""
    most_rejects: int = 5
    """So many of the last `orders` orders refused by the venue halt the deployment."""
    orders: int = 10
    stale_ms: int | None = 10 * MINUTE_MS
    """Data that is unfit to decide on for longer than this halts it; None: never."""
    model_errors: int | None = 5
    """So many ticks in succession without an answer of the model pause it; None: never."""


@dataclass(slots=True)
class HaltChecks:
    """The counts of one deployment."""

    limits: HaltLimits = field(default_factory=HaltLimits)
    _rejects: deque[bool] = field(default_factory=deque[bool], init=False)
    _stale_since: Instant | None = field(default=None, init=False)

    def add_verdicts(self, verdicts: Iterable[Mapping[str, Any]]) -> None:
        """Count the orders of a tick that were sent: accepted, or refused by the venue."""
        for verdict in verdicts:
            rejected = verdict["outcome"] == "refused" and verdict["code"] == self.limits.broker_code
            if rejected or verdict["outcome"] in ("allowed", "reduced"):
                self._rejects.append(rejected)
        while len(self._rejects) > self.limits.orders:
            self._rejects.popleft()

    def halt_cause(self, at: Instant, stale: bool | None = None) -> tuple[str, str]:
        """The code and the cause of a halt; two empty texts if there is none.

        `stale` is whether the data is unfit to decide on now; None if that was not looked at.
        """
        if stale is not None:
            self._stale_since = (at if self._stale_since is None else self._stale_since) if stale else None
        rejects, limits = sum(self._rejects), self.limits
        if limits.broker_code and rejects >= limits.most_rejects:
            return REJECT_RATE, f"the venue refused {rejects} of the last {len(self._rejects)} orders"
        if self._stale_since is not None and limits.stale_ms is not None and at - self._stale_since > limits.stale_ms:
            return STALE_DATA, f"no data to decide on for {duration_text(at - self._stale_since)}"
        return "", ""

    def model_outage(self, errors: int) -> tuple[str, str]:
        """The code and the cause of a pause after `errors` ticks in succession without an answer."""
        most = self.limits.model_errors
        if most is not None and errors >= most:
            return MODEL_OUTAGE, f"the model gave no answer at {errors} ticks in succession"
        return "", ""

    def reset(self) -> None:
        """Begin counting again."""
        self._rejects.clear()
        self._stale_since = None
