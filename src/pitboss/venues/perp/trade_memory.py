"""What an agent remembers of its trading, as frozen values: closed trades, open round trips, refusals, lessons.

The values only; `venues.perp.memory` updates them from receipts and verdicts. Stored with the state of every run, so field
names do not change.
"""

from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun


@noun
class RoundTrip:
    """A round trip of one symbol while it goes on, as sums: what `venues.perp.trades` folds fills and funding into.

    `way` is the side of its first fill, `left` what is still held, `grown` and `shrunk` all that was added and taken off.
    `regime` and `thesis` were noted at its opening and are only carried along.
    """

    symbol: str
    way: str
    opened_at: Instant
    left: Decimal = ZERO
    max_size: Decimal = ZERO
    grown: Decimal = ZERO
    grown_notional: Decimal = ZERO
    shrunk: Decimal = ZERO
    shrunk_notional: Decimal = ZERO
    flow: Decimal = ZERO
    fees: Decimal = ZERO
    funding: Decimal = ZERO
    penalties: Decimal = ZERO
    fills: int = 0
    regime: str = ""
    thesis: str = ""


@noun
class ClosedTrade:
    """One round trip that is over. Facts, not text: symbol, instants and prices are put into words where they are shown.

    `pnl_usd` is net of all costs, prices are averages by size, `notional_usd` the largest size at the entry price. The
    excursions are in % of the entry price, both from zero up: how far it went our way, and how far against us. `reason`
    is how it ended (the venue's word), `thesis` a model's words at entry, cut.
    """

    symbol: str
    side: str
    opened_at: Instant
    closed_at: Instant
    pnl_usd: Decimal
    reason: str
    entry_price: Decimal = ZERO
    exit_price: Decimal = ZERO
    notional_usd: Decimal = ZERO
    mfe_pct: float = 0.0
    mae_pct: float = 0.0
    regime: str = "unknown"
    thesis: str = ""


@noun
class RefusedProposal:
    """A proposal that the engine refused: when, and by which rule."""

    at: Instant
    code: str


@noun
class OrderThesis:
    """The thesis of an order that may still open a position."""

    order_id: str
    thesis: str


@noun
class LessonNotes:
    """Lessons from closed trades in five named slots: a model's words, bounded, shown as data only."""

    entry_timing: str = ""
    sizing: str = ""
    symbol_selection: str = ""
    exit_timing: str = ""
    regime_fit: str = ""


@noun
class PerpMemory:
    """What an agent remembers. Written by code from typed facts only (`agent.memory`), bounded, and never from text alone.

    `trades` in the order in which they closed, `going` by symbol. `refusals` oldest first. `executed` and `realised_usd`
    count for the UTC day `day`. `closed` counts all closed trades, `losses` the losing ones in a row; `learnt` and `tried`
    are the values of `closed` when notes were last written and last asked for.
    """

    trades: tuple[ClosedTrade, ...] = ()
    notes: LessonNotes | None = None
    refusals: tuple[RefusedProposal, ...] = ()
    going: tuple[RoundTrip, ...] = ()
    reasons: tuple[OrderThesis, ...] = ()
    part_filled: tuple[str, ...] = ()
    day: int = 0
    executed: int = 0
    realised_usd: Decimal = ZERO
    losses: int = 0
    closed: int = 0
    learnt: int = 0
    tried: int = 0


NO_MEMORY = PerpMemory()
