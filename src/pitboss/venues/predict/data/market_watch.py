"""Polls the protocol's indexer for the markets of a live run: prices, surfaces, settlements, settings, vault and fills.

What is read at one time is queued as one `MarketSnapshot` until it is consumed. It does not raise if the indexer is
down: `trouble` describes the problem, and the next poll tries again. What snapshots are used for is not decided here.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.data.indexer import AT_ONCE, Indexer, Unknown
from pitboss.venues.predict.data.wire import IndexedFill
from pitboss.venues.predict.desk import Fill
from pitboss.venues.predict.schedule import TIERS, listed_slots
from pitboss.venues.predict.state import MarketTerms, Oracle, Vault, contracts, status, usd

TERMS_MS = 10 * SECOND_MS
"""How often the protocol's settings and the vault are read."""
LIST_MS = MINUTE_MS
"""How often the list of markets is read: it is long, and a market is listed an hour or more before its expiry."""
FILLS_MS = 15 * SECOND_MS
FILLS = 100
"""Fills kept for each market."""
PER_MARKET_S = 0.125
"""Least time between two polls for each market followed, which keeps requests within the client's rate limit."""
MOST_WAITING = 64


@noun
class MarketSnapshot:
    """The markets as read at one time. `at` is that time or, if a push is stamped later, the time of the newest push."""

    at: Instant
    oracles: tuple[Oracle, ...]
    terms: MarketTerms
    vault: Vault


class MarketWatch:
    """The markets of one underlying in the selected tiers, read again and again."""

    def __init__(self, indexer: Indexer, underlying: str, tiers: Iterable[str], now: Callable[[], Instant]) -> None:
        self.underlying = underlying
        self.newest: MarketSnapshot | None = None
        self.unsettled: frozenset[str] = frozenset()
        """Ids of markets that are followed until they settle, open or not."""
        self._indexer = indexer
        self._tiers = frozenset(tiers)
        self._now = now
        self._listed: tuple[Oracle, ...] = ()
        self._listed_at: Instant | None = None
        self._terms = MarketTerms()
        self._terms_at: Instant | None = None
        self._vault = Vault(0)
        self._fills: dict[str, tuple[IndexedFill, ...]] = {}
        self._fills_at: Instant | None = None
        self._waiting: list[MarketSnapshot] = []
        self._trouble = ""

    def before(self, at: Instant) -> Sequence[MarketSnapshot]:
        """Return the unconsumed snapshots from before an instant, oldest first."""
        return self._waiting[: bisect_left(self._waiting, at, key=lambda snapshot: snapshot.at)]

    def remove(self, count: int) -> None:
        """Remove the first `count` snapshots as consumed."""
        del self._waiting[:count]

    def trouble(self) -> str:
        """Describe the current problem; empty if there is none."""
        return self._trouble

    def tape(self, market_id: str, at: Instant) -> Sequence[Fill]:
        """Return the fills of all accounts in a market up to an instant, oldest first."""
        fills = self._fills.get(market_id, ())
        return [_fill(fill) for fill in reversed(fills) if fill.at <= at]

    def open_markets(self) -> list[Oracle]:
        """Return the listed markets that are open and of a selected tier."""
        now = self._now()
        slots = {slot.expiry_at: slot.tiers for slot in listed_slots(now, TIERS)}
        return [
            oracle
            for oracle in self._listed
            if oracle.underlying == self.underlying
            and status(oracle, now) == "active"
            # A market that is not on the operator's schedule belongs to no tier and is shown.
            and self._tiers.intersection(slots.get(oracle.expiry_at, self._tiers))
        ]

    async def watch(self, every_s: float) -> NoReturn:
        """Poll forever."""
        while True:
            await self.look()
            await asyncio.sleep(max(every_s, PER_MARKET_S * len(self._followed())))

    async def look(self) -> None:
        """Read everything that is due and queue it as a snapshot."""
        try:
            await self._read_lists()
            read_at = self._now()
            oracles = await self._states(self._followed())
            await self._read_fills()
        except TransientError as error:
            self._trouble = str(error)
            return
        except UserError as error:
            self._trouble = error.message
            return
        self._trouble = "" if oracles else f"the indexer lists no open market of {self.underlying}"
        stamps = [stamp for oracle in oracles for stamp in (oracle.priced_at, oracle.surfaced_at) if stamp is not None]
        snapshot = MarketSnapshot(max([read_at, *stamps]), oracles, self._terms, self._vault)
        if self.newest is not None and snapshot.at <= self.newest.at:
            return  # the clock was set back
        self.newest = snapshot
        self._waiting.append(snapshot)
        del self._waiting[:-MOST_WAITING]

    async def start(self) -> None:
        """Read everything once. Raises if the indexer cannot be read or never had a market of the underlying."""
        await self._read_lists()
        if not any(oracle.underlying == self.underlying for oracle in self._listed):
            await self._check_underlying()
        await self.look()

    async def _check_underlying(self) -> None:
        underlyings = await self._indexer.underlyings()
        if self.underlying not in underlyings:
            raise UserError(
                f"the indexer lists no market of {self.underlying}, so nothing could be quoted",
                f"set context.underlying in the skill to one of {', '.join(underlyings) or 'its underlyings'}",
            )

    def _followed(self) -> list[str]:
        return sorted({oracle.id for oracle in self.open_markets()} | self.unsettled)

    async def _read_lists(self) -> None:
        now = self._now()
        if _is_due(self._terms_at, TERMS_MS, now):
            protocol, vault = await asyncio.gather(self._indexer.protocol(), self._indexer.vault())
            self._terms, self._vault, self._terms_at = protocol.terms, vault.vault, now
        if _is_due(self._listed_at, LIST_MS, now):
            self._listed, self._listed_at = await self._indexer.oracles(), now

    async def _read_fills(self) -> None:
        now = self._now()
        if not _is_due(self._fills_at, FILLS_MS, now):
            return
        names = [oracle.id for oracle in self.open_markets()]
        fills: dict[str, tuple[IndexedFill, ...]] = {}
        for start in range(0, len(names), AT_ONCE):
            part = names[start : start + AT_ONCE]
            rows = await asyncio.gather(*(self._indexer.fills(name, FILLS) for name in part))
            fills |= dict(zip(part, rows, strict=True))
        self._fills, self._fills_at = fills, now

    async def _states(self, names: Sequence[str]) -> tuple[Oracle, ...]:
        oracles: list[Oracle] = []
        for start in range(0, len(names), AT_ONCE):
            requests = (self._state(name) for name in names[start : start + AT_ONCE])
            oracles += [oracle for oracle in await asyncio.gather(*requests) if oracle is not None]
        return tuple(oracles)

    async def _state(self, name: str) -> Oracle | None:
        try:
            return await self._indexer.oracle(name)
        except Unknown:
            return None  # listed, but removed before this request


def _is_due(read_at: Instant | None, every_ms: int, now: Instant) -> bool:
    """Whether something must be read again: also after the clock was set back."""
    return read_at is None or not 0 <= now - read_at < every_ms


def _fill(fill: IndexedFill) -> Fill:
    contract = fill.contract
    quantity, amount = contracts(fill.quantity), contracts(fill.amount)
    price, strike = usd(fill.price), usd(contract.strikes[0])
    return Fill(fill.kind, fill.at, contract.market_id, contract.side, strike, quantity, price, amount, fill.digest)
