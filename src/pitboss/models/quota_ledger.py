"""`QuotaLedger`: everything that counts against the quotas of one key at one host, and how long the next call must wait.

It combines the quotas that replies report with the limits that a person has set. Pure bookkeeping: `lane` decides which
call goes next and waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelRequest
from pitboss.models.quota_headers import read_quotas
from pitboss.models.quotas import FixedQuota, QuotaLoad, QuotaNeed, ReportedQuota
from pitboss.models.token_bounds import most_input_tokens, token_limit

BYTES_PER_TOKEN = 3
"""Rather few: an estimate that is too high only waits a little, one that is too low is refused."""
FIRST_OUTPUT_TOKENS = 512
ONE_CALL = QuotaNeed()


@dataclass(eq=False, slots=True)
class CallPermit:
    """A call that was let through. `is_reported`: a response has reported a remainder that includes this call."""

    need: QuotaNeed
    number: int
    is_reported: bool = False


class QuotaLedger:
    """The quotas of one lane and the calls that count against them."""

    def __init__(self, rpm: int | None, tpm: int | None) -> None:
        limits = (("requests", rpm), ("tokens", tpm))
        self._fixed = [FixedQuota(unit, limit) for unit, limit in limits if limit is not None]
        self._reported: dict[str, ReportedQuota] = {}
        self._load, self._unreported = QuotaLoad(), QuotaLoad()
        self._under_way: set[CallPermit] = set()
        self._output_tokens = FIRST_OUTPUT_TOKENS
        self.issued = 0

    @property
    def under_way(self) -> int:
        """The number of calls under way."""
        return len(self._under_way)

    def need(self, request: ModelRequest) -> QuotaNeed:
        """What a request will probably take. Nothing is estimated while no quota counts tokens."""
        if not any(quota.unit != "requests" for quota in (*self._fixed, *self._reported.values())):
            return ONE_CALL
        return QuotaNeed(
            most_input_tokens(request) // BYTES_PER_TOKEN, min(self._output_tokens, token_limit(request.settings))
        )

    def wait_ms(self, need: QuotaNeed, now: Instant) -> float:
        """How long until the quotas allow a call; infinite where only the end of another call can help."""
        wait = 0.0
        for quota in self._fixed:
            wait = max(wait, quota.wait_ms(need.of(quota.unit), self._load.of(quota.unit), now))
        for quota in self._reported.values():
            wait = max(wait, quota.wait_ms(need.of(quota.unit), self._unreported.of(quota.unit), now))
        return wait

    def admit(self, need: QuotaNeed) -> CallPermit:
        """Count a call that begins."""
        self.issued += 1
        permit = CallPermit(need, self.issued)
        self._under_way.add(permit)
        self._load.add(need)
        self._unreported.add(need)
        return permit

    def cancel(self, permit: CallPermit) -> bool:
        """Stop counting a call, as if it had never been sent. False where it is not under way."""
        if permit not in self._under_way:
            return False
        self._under_way.discard(permit)
        self._load.add(permit.need, -1)
        if not permit.is_reported:
            self._unreported.add(permit.need, -1)
        return True

    def end(self, permit: CallPermit, usage: Usage, attempts: int, now: Instant) -> bool:
        """Count a call that has ended, with what it really took. False where it was not under way."""
        if not self.cancel(permit):
            return False
        need = permit.need
        tokens = need.input_tokens, need.output_tokens
        if usage != NO_USAGE:
            tokens = usage.input_tokens, usage.output_tokens
            self._output_tokens = max(usage.output_tokens, self._output_tokens * 31 // 32, 1)
        amount = QuotaNeed(*tokens, max(attempts, 1))
        for quota in self._fixed:
            quota.end(amount.of(quota.unit), now)
        if not permit.is_reported:
            for quota in self._reported.values():
                quota.end_unreported(amount.of(quota.unit), now)
        return True

    def learn(self, headers: Mapping[str, str], permit: CallPermit | None, now: Instant) -> None:
        """Take the quotas that a response reports. `permit` is the call that it answers, where that is known."""
        readings = read_quotas(headers, now)
        for reading in readings:
            self._reported.setdefault(reading.name, ReportedQuota(reading.unit)).learn(reading, now)
        if permit is not None and readings and not permit.is_reported:
            permit.is_reported = True
            if permit in self._under_way:
                self._unreported.add(permit.need, -1)
