"""The ports of the live driver: where a venue's world comes from during a live run, and what keeps its past."""

from collections.abc import Sequence
from typing import Any, Protocol

from pitboss.core.curve import Curve
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record


@noun
class WorldUpdate:
    """The updated world, with the receipts of what happened, and the equity points since the last update if it has any."""

    world: Any
    receipts: tuple[Receipt, ...] = ()
    equity: Curve = ()


class WorldSource(Protocol):
    """Supplies a venue's world during a live run."""

    async def update(self, world: Any, before: Instant) -> WorldUpdate:
        """The world updated with all known events before an instant, since the last update.

        May be cancelled: events that were not returned must be returned by the next call.
        """
        ...

    def hold_flag(self, world: Any, at: Instant) -> str:
        """Why no decision may be made on this world, as the flag of a no-op; empty if one may."""
        ...

    def pending(self, world: Any) -> bool:
        """Whether an executed intent still awaits its outcome."""
        ...

    def equity(self, world: Any, at: Instant, period_ms: int) -> Curve:
        """The account's equity at a tick."""
        ...

    def trouble(self) -> str:
        """The current problem of the feed, as text; empty if there is none."""
        ...


class History(Protocol):
    """The run's own past, for tools that look back; it gets every record after its commit."""

    def add_receipts(self, receipts: Sequence[Receipt]) -> None: ...

    def add_tick(self, record: Record, receipts: Sequence[Receipt], flags: Sequence[str]) -> None: ...
