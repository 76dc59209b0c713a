"""The hard limits of a community agent, and what it has used of them today. Amounts of wei are exact."""

from dataclasses import replace
from decimal import Decimal

from pitboss.core.instant import Instant, day_of
from pitboss.core.money import ZERO
from pitboss.core.noun import noun


@noun
class CommunityCaps:
    """The limits of one agent. A transaction is possible only on a pinned chain."""

    threads_per_tick: int = 1
    posts_per_day: int = 50
    transactions_per_day: int = 20
    value_wei: Decimal = ZERO
    """Most wei that one transaction may send."""
    spend_wei_per_day: Decimal = ZERO
    """Most wei that a UTC day may cost: values sent, and fees at their cap."""
    gas: int = 500_000
    fee_wei_per_gas: Decimal = Decimal(50_000_000_000)
    approval_above_wei: Decimal | None = None
    """A transaction that sends more needs the approval of a person; None if none does."""
    chain: str = ""
    """The only chain on which transactions are sent, as contracts name it; empty if none are sent."""
    contracts: tuple[str, ...] = ()
    """Addresses that may be called, in lower case; empty for all contracts of the community."""
    functions: tuple[str, ...] = ()
    """Full signatures that may be called; empty for all of the ABI that are not denied."""
    allowed_denied: tuple[str, ...] = ()
    """Names from the deny list that may be called nevertheless."""

    @property
    def most_fee_wei(self) -> Decimal:
        """The most that the fees of one transaction can cost."""
        return self.gas * self.fee_wei_per_gas


@noun
class AgentDayUse:
    """What an agent did on one UTC day. Counted before it is sent, so a crash can only count too much."""

    day: int = 0
    posts: int = 0
    transactions: int = 0
    spend_wei: Decimal = ZERO

    def on(self, at: Instant) -> "AgentDayUse":
        """The use of the day of an instant. A clock that goes back over midnight does not give a new day."""
        day = day_of(at)
        return AgentDayUse(day) if day > self.day else self

    def plus(self, posts: int = 0, transactions: int = 0, spend_wei: Decimal = ZERO) -> "AgentDayUse":
        """The use after some more."""
        return replace(
            self,
            posts=self.posts + posts,
            transactions=self.transactions + transactions,
            spend_wei=self.spend_wei + spend_wei,
        )
