"""Everything one tick carries to the next. Storing it is resume; copying it is speculation."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pitboss.core.instant import Instant
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
class ClosedTrade:
    """One round trip, for the trade history."""

    symbol: str
    side: str
    opened_at: Instant
    closed_at: Instant
    pnl_usd: str
    reason: str


@noun
class Memory:
    """What an agent remembers: risk facts, closed trades, lessons. Written by code from typed facts only."""

    risk: tuple[str, ...] = ()
    trades: tuple[ClosedTrade, ...] = ()
    lessons: tuple[str, ...] = ()


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
