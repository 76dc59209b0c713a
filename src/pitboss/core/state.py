"""Everything one tick carries to the next. Storing it is resume; copying it is speculation."""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.snapshot import GENESIS
from pitboss.core.verdict import Verdict


@noun
class LastDecision:
    """What the `## Last decision` section tells: of a no-op nothing but its flag."""

    tick_at: Instant
    outcome: str
    flag: str = ""
    proposal: str = ""
    code: str = ""
    detail: str = ""


@noun
class Trip:
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
class Refusal:
    """A proposal that the engine refused: when, and by which rule."""

    at: Instant
    code: str


@noun
class Reason:
    """The thesis of an order that may still open a position."""

    order_id: str
    thesis: str


@noun
class Notes:
    """Lessons from closed trades in five named slots: a model's words, bounded, shown as data only."""

    entry_timing: str = ""
    sizing: str = ""
    symbol_selection: str = ""
    exit_timing: str = ""
    regime_fit: str = ""


@noun
class Memory:
    """What an agent remembers. Written by code from typed facts only (`agent.memory`), bounded, and never from text alone.

    `trades` in the order in which they closed, `going` by symbol. `refusals` oldest first. `executed` and `realised_usd`
    count for the UTC day `day`. `closed` counts all closed trades, `losses` the losing ones in a row; `learnt` and `tried`
    are the values of `closed` when notes were last written and last asked for.
    """

    trades: tuple[ClosedTrade, ...] = ()
    notes: Notes | None = None
    refusals: tuple[Refusal, ...] = ()
    going: tuple[Trip, ...] = ()
    reasons: tuple[Reason, ...] = ()
    part_filled: tuple[str, ...] = ()
    day: int = 0
    executed: int = 0
    realised_usd: Decimal = ZERO
    losses: int = 0
    closed: int = 0
    learnt: int = 0
    tried: int = 0


NO_MEMORY = Memory()


@noun
class State:
    """The carried-over value of `tick(state, ports) -> state, record`.

    `world` is the venue's own frozen value. `seen` keeps the verdicts of the current tick's intent keys only: a key
    contains its tick, so older ones can never come again.
    """

    world: Any
    seq: int = 0
    prev_digest: str = GENESIS
    tick_at: Instant | None = None
    accepted_opens: tuple[Instant, ...] = ()
    seen: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    last: LastDecision | None = None
    memory: Memory = NO_MEMORY
    asked_close: Mapping[str, float] = field(default_factory=dict[str, float])
    news_seen: int = 0
    model_errors: int = 0
