"""The agent's memory of its trading as frozen values: closed trades, open round trips, refusals, lessons.

Values only; `venues.perp.memory` updates them from receipts and verdicts. They are stored with the state of every run,
so field names must not change.
"""

from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun


@noun
class RoundTrip:
    """An open round trip of one symbol, as sums into which `venues.perp.trades` folds fills and funding.

    `way` is the side of its first fill, `left` the size still open, `grown` and `shrunk` the totals added and removed.
    `regime` and `thesis` are recorded when it opens and do not change.
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
    """One closed round trip, as facts; the sections format them as text.

    `pnl_usd` is net of all costs, prices are size-weighted averages, `notional_usd` is the largest size at the entry
    price. The excursions are in % of the entry price and not negative: `mfe_pct` is the best move, `mae_pct` the worst.
    `reason` is how it ended, in the venue's terms; `thesis` is the model's text at entry, truncated.
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
    """The thesis of a working order that may still open a position."""

    order_id: str
    thesis: str


@noun
class LessonNotes:
    """Lessons from closed trades in five named slots: text of a model, bounded in length, shown only as data."""

    entry_timing: str = ""
    sizing: str = ""
    symbol_selection: str = ""
    exit_timing: str = ""
    regime_fit: str = ""


@noun
class PerpMemory:
    """The agent's memory, bounded in size and derived from typed facts by `venues.perp.memory`, never from text alone.

    `trades` are in closing order, `going` by symbol, `refusals` oldest first. `executed` and `realised_usd` are for the
    UTC day `day`. `closed` counts all closed trades, `losses` the newest consecutive losing ones; `learnt` and `tried`
    are the values of `closed` when notes were last written and last requested.
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
