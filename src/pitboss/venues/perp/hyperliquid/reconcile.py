"""`Reconciler`: makes stored orders and the world agree with the exchange. Runs at every start, after every gap, and between ticks.

One pass reads the exchange's time, the whole account, and then every order in doubt; it matches orders by client id, names those
that are not ours foreign and never touches them, applies fills, protects positions, and gives the new world with its receipts.
A pass over an account that has not changed gives no receipt and sends nothing. While the last pass has failed, nothing is opened.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.hyperliquid.account_news import AccountNews
from pitboss.venues.perp.hyperliquid.account_reader import (
    FILL_OVERLAP_MS,
    AccountReader,
    Mark,
    ReportedOrder,
    VenueAccount,
    VenueClock,
    read_marks,
)
from pitboss.venues.perp.hyperliquid.info_client import HyperliquidInfo
from pitboss.venues.perp.hyperliquid.live_world import AccountStep, OrderIndex, first_world, index_orders, world_after
from pitboss.venues.perp.hyperliquid.order_building import AccountSetup
from pitboss.venues.perp.hyperliquid.order_fence import discard, on_fill, on_listed
from pitboss.venues.perp.hyperliquid.order_sender import FencedSender, StepLabel, no_step
from pitboss.venues.perp.hyperliquid.order_store import LiveOrder
from pitboss.venues.perp.hyperliquid.protection import Protector
from pitboss.venues.perp.hyperliquid.rate_budget import RequestClass
from pitboss.venues.perp.state import ReportedWorld

READS = 3
"""How often the account is read in one pass until sizes and fills agree: they are not read at one instant."""
ADOPT_AFTER_MS = MINUTE_MS
"""A difference that stays the same for so long is no torn read and no late report: the account's own sizes are taken over."""
READ_PAUSE_S = 0.5
WHOLE_READ_MS = 20 * SECOND_MS
"""How often orders and fills are read where nothing has changed."""
WHOLE_GAP_MS = 3 * SECOND_MS
"""How long after one whole read the next is tried at the earliest: otherwise failures would use up the rate budget."""
STOPS_MS = 5 * SECOND_MS
"""How often the exchange is asked whether stops still rest: this is when one that was taken away is noticed."""
URGENT_TIMEOUT_S = 0.8
"""How long the sizes are waited for where a position may be without a stop; then they are asked for once more."""
MARKS_MS = 10 * SECOND_MS
"""How often marks are read for the world; an open reads its own."""


@noun
class Reconciled:
    """The world after a pass, and what happened since the world before."""

    world: ReportedWorld
    receipts: tuple[Receipt, ...] = ()


class MarkSource:
    """Reads marks by request; a stream that keeps them may stand in its place."""

    def __init__(self, info: HyperliquidInfo, setup: AccountSetup, now: Callable[[], Instant]) -> None:
        self._info = info
        self._setup = setup
        self._now = now

    async def read(self, symbols: Sequence[str], purpose: RequestClass = "read") -> Mapping[str, Mark]:
        """Return the marks of symbols; those without a usable price are missing. Raises `TransientError`."""
        asked_at = self._now()
        reply = await self._info.post({"type": "metaAndAssetCtxs"}, purpose)
        return read_marks(reply, self._setup.universe, symbols, asked_at)


class Reconciler:
    """Brings one account up to date. A broker and a source share it; the lock keeps their work apart."""

    def __init__(
        self,
        setup: AccountSetup,
        sender: FencedSender,
        protector: Protector,
        marks: MarkSource,
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_step: Callable[[StepLabel], None] = no_step,
        withdraws_opens: Callable[[], bool] = lambda: False,
    ) -> None:
        """`withdraws_opens` says whether orders that would open are cancelled, besides during a halt of the account."""
        self.lock = asyncio.Lock()
        self.foreign: tuple[ReportedOrder, ...] = ()
        """Open orders of the account that are not ours."""
        self.problem = "the account was not read yet"
        """Why nothing may be opened; empty after a pass that succeeded."""
        self.alarm = ""
        """What a person has to look at: a contradiction, or sizes that no fill explains."""
        self.news = AccountNews(now)
        """What the streams of the account report; without streams there is none."""
        self._setup = setup
        self._sender = sender
        self._protector = protector
        self._marks = marks
        self._now = now
        self._sleep = sleep
        self._on_step = on_step
        self._withdraws_opens = withdraws_opens
        self._mismatch = ""
        self._mismatch_at: Instant = 0
        self._read_at: Instant | None = None
        self._last_marks: Mapping[str, Mark] = {}
        self._marks_at: Instant = 0
        self._stops_at: Instant = 0
        self._tried_at: Instant = 0
        self._sizes_at: Instant = 0
        self._everything_seen = 0
        self._world: ReportedWorld | None = None

    @property
    def reader(self) -> AccountReader:
        """The reader of the account."""
        return self._sender.reader

    @property
    def clock(self) -> VenueClock:
        """The exchange's time."""
        return self._sender.clock

    async def run(self, world: ReportedWorld | None) -> Reconciled:
        """Do one pass; None is the world of an account that has none yet. Raises `TransientError` if it fails."""
        async with self.lock:
            return await self.run_locked(world)

    async def run_locked(self, world: ReportedWorld | None) -> Reconciled:
        """Do one pass. The caller holds the lock."""
        self.problem = "the account is being read"
        self._world = world
        try:
            step = await self._pass(world)
        except TransientError as error:
            self.problem = f"the account cannot be read: {error}"
            self._read_at = None
            raise
        assert step.world is not None
        self.problem = ""
        self._world = step.world
        return Reconciled(step.world, step.receipts)

    async def protect(self, since: Instant) -> None:
        """Protect positions by their sizes of now, unless these were read after an instant. Leaves the world to the next pass."""
        async with self.lock:
            if self._world is not None and not self._has_sizes_after(since):
                await self._protect_sizes(self._world)

    def _has_sizes_after(self, at: Instant) -> bool:
        """Return whether sizes were read after an instant; a time ahead of the clock, which was set back, proves nothing."""
        return at < self._sizes_at <= self._now()

    async def _protect_sizes(self, world: ReportedWorld) -> VenueAccount:
        """Do what is cheap and urgent: a position without a stop does not wait for the rest of a pass."""
        account = await self._protect_once(world)
        if self._unstopped(account.positions):  # its stop could not be placed, and a close was sent: did it arrive?
            account = await self._protect_once(world)
        if await self._ask_for_orders(account):
            await self._protector.protect(world, account.positions, self._last_marks, agrees=False)
        return account

    async def _protect_once(self, world: ReportedWorld) -> VenueAccount:
        asked_at = self._now()
        account = await self.reader.summary("resolve", URGENT_TIMEOUT_S)
        await self._protector.protect(world, account.positions, self._last_marks, agrees=False)
        self._sizes_at = asked_at
        return account

    def _unstopped(self, positions: Collection[str]) -> set[str]:
        """Return the symbols of positions that have no resting stop, as far as the store knows."""
        orders = self._sender.store.open_orders()
        stopped = {order.symbol for order in orders if order.leg == "stop" and order.state == "resting"}
        return (set(positions) & set(self._setup.symbols)) - stopped

    async def protect_reported(self) -> None:
        """Protect positions if a stream has reported a change since sizes were read. The caller holds the lock."""
        if self._world is not None and not self._has_sizes_after(self.news.news_at):
            with suppress(TransientError):
                await self._protect_sizes(self._world)

    async def _pass(self, world: ReportedWorld | None) -> AccountStep:
        for order in self._sender.store.open_orders():
            if order.state == "new":  # the lock is ours, so the process that stored it has ended
                self._sender.change(order, discard(order.fence, "it was given up before it was sent"))
        if self._everything_seen != self.news.everything:
            self._everything_seen = self.news.everything
            self.look_closely()
        account = None if world is None else await self._protect_sizes(world)
        marks = await self._newest_marks()
        await self.protect_reported()
        if world is not None and account is not None:
            is_early = 0 <= self._now() - self._tried_at < WHOLE_GAP_MS
            if is_early or not self._is_whole_read_due():
                sizes = {symbol: position.size for symbol, position in account.positions.items()}
                is_same = sizes == {symbol: position.size for symbol, position in world.positions.items()}
                if self._read_at is not None and account.value and is_same:
                    orders = index_orders(self._sender.store.open_orders())
                    step = self._step(world, account, orders, marks)
                    return await self._settle(world, account, step, orders, marks)
                if is_early:
                    raise TransientError("orders and fills are read shortly")
        if world is not None:  # what was filled before this process began is read at once after its first look
            self._tried_at = self._now()
        turn = 1
        account, orders, step = await self._look(world, marks)
        while step.mismatch and turn < READS:
            turn += 1
            await self._sleep(READ_PAUSE_S)
            account, orders, step = await self._look(world, marks)
        if step.mismatch:
            return await self._adopt(world, account, step, orders, marks)
        self._mismatch, self._read_at = "", self._now()
        step = await self._settle(world, account, step, orders, marks)
        await self._sender.read_actions()
        return step

    def _is_whole_read_due(self) -> bool:
        """Return whether orders and fills must be read too: in doubt, after a failure, and at intervals."""
        read_at = self._read_at
        if read_at is None or not 0 <= self._now() - read_at < WHOLE_READ_MS:
            return True
        if self.news.has_unread_fills():
            return True
        return any(order.fence.is_in_doubt or order.fence.unreported for order in self._sender.store.open_orders())

    async def _ask_for_orders(self, account: VenueAccount) -> bool:
        """Ask for orders that a stream says have changed, and at intervals for stops; return whether any is not what it was."""
        statuses = self.news.take_statuses()
        are_stops_due = not 0 <= self._now() - self._stops_at < STOPS_MS
        if are_stops_due:
            self._stops_at = self._now()
        elif not statuses:
            return False
        has_changed = False
        for order in self._sender.store.open_orders():
            is_stop = order.leg == "stop" and order.state == "resting" and order.symbol in account.positions
            status = statuses.get(order.cloid)
            is_changed = status is not None and (status != "open" or order.state != "resting")
            if (is_stop and are_stops_due) or is_changed:
                has_changed |= (await self._sender.ask(order)).state != order.state
        return has_changed

    def look_closely(self) -> None:
        """Read everything at the next pass: something has happened, or messages were lost."""
        self._read_at, self._tried_at = None, 0

    async def _newest_marks(self) -> Mapping[str, Mark]:
        """Return the marks, read at intervals. Where they cannot be read they get old, and nothing is opened on them."""
        if not 0 <= self._now() - self._marks_at < MARKS_MS:
            try:
                marks = await self._marks.read(self._setup.symbols)
            except TransientError:
                return self._last_marks
            self._last_marks, self._marks_at = marks, self._now()
        return self._last_marks

    async def _look(
        self, world: ReportedWorld | None, marks: Mapping[str, Mark]
    ) -> tuple[VenueAccount, OrderIndex, AccountStep]:
        """Read the account once. Positions are protected even if its parts do not agree yet."""
        await self.protect_reported()
        await self._sender.clock.read()  # first: an order in doubt is asked for after it
        account = await self._read(world)
        orders = await self._match(account)
        return account, orders, self._step(world, account, orders, marks)

    async def _adopt(
        self,
        world: ReportedWorld | None,
        account: VenueAccount,
        step: AccountStep,
        orders: OrderIndex,
        marks: Mapping[str, Mark],
    ) -> AccountStep:
        """Take over a difference that stays the same, with an alarm; any other is a torn read."""
        if step.mismatch != self._mismatch:
            self._mismatch, self._mismatch_at = step.mismatch, self._now()
        if world is None or self._now() - self._mismatch_at < ADOPT_AFTER_MS:
            raise TransientError(step.mismatch)
        self.alarm = f"no fill explains what the account has: {step.mismatch}"
        self._mismatch = ""
        adopted = world_after(world, account, orders, self._setup.terms, marks, adopt=True)
        return await self._settle(world, account, adopted, orders, marks)

    async def _read(self, world: ReportedWorld | None) -> VenueAccount:
        """Read the account. Positions are protected by its sizes before orders and fills are read."""
        if world is None:
            account = await self.reader.read(self._sender.clock.newest - FILL_OVERLAP_MS, 0)
        else:
            purpose, asked_at = self._purpose(world), self._now()
            account = await self.reader.summary(purpose)
            await self._protector.protect(world, account.positions, self._last_marks, agrees=False)
            self._sizes_at = asked_at
            since = world.fills_from - FILL_OVERLAP_MS
            account = await self.reader.with_history(account, since, world.funded_until, purpose)
        self.news.on_fills_read(fill.id for fill in account.fills)
        self._on_step("account_read")
        return account

    def _purpose(self, world: ReportedWorld) -> RequestClass:
        """Return whether a read serves to reduce risk: an order is in doubt, or a position may be without its stop."""
        is_in_doubt = any(order.fence.is_in_doubt for order in self._sender.store.open_orders())
        is_urgent = self._mismatch or is_in_doubt or self._unstopped(world.positions)
        return "resolve" if is_urgent else "read"

    def _step(
        self, world: ReportedWorld | None, account: VenueAccount, orders: OrderIndex, marks: Mapping[str, Mark]
    ) -> AccountStep:
        if world is None:
            return first_world(account, self._setup.terms, marks)
        if account.value == 0 and world.last_equity > 0 and not account.positions:
            return AccountStep(None, mismatch="the account is reported empty")
        return world_after(world, account, orders, self._setup.terms, marks)

    async def _match(self, account: VenueAccount) -> OrderIndex:
        """Apply the account's lists of orders and fills to the stored orders, and ask for those that stay in doubt."""
        stored = {order.cloid: order for order in self._sender.store.open_orders()}
        listed = {order.cloid: order for order in account.orders if order.cloid}
        foreign: list[ReportedOrder] = []
        for reported in account.orders:
            order = stored.get(reported.cloid) or (self._sender.store.get(reported.cloid) if reported.cloid else None)
            if order is None:
                foreign.append(reported)
                continue
            stored[order.cloid] = self._sender.change(order, on_listed(order.fence, reported.oid))
        self.foreign = tuple(foreign)
        by_oid = {order.fence.oid: order.cloid for order in stored.values() if order.fence.oid is not None}
        for fill in account.fills:
            cloid = fill.cloid or by_oid.get(fill.oid, "")
            order = stored.get(cloid) or (self._sender.store.get(cloid) if cloid else None)
            if order is not None:
                order = self._sender.change(order, on_fill(order.fence, fill.id, fill.size))
                stored[order.cloid] = order
                self._note_contradiction(order)
        for order in list(stored.values()):
            if order.is_open and order.cloid not in listed:
                stored[order.cloid] = await self._sender.ask(order)
        return index_orders(tuple(stored.values()))

    def _note_contradiction(self, order: LiveOrder) -> None:
        if order.fence.contradiction:
            self.alarm = f"order {order.order_id}: {order.fence.contradiction}"

    async def _settle(
        self,
        world: ReportedWorld | None,
        account: VenueAccount,
        step: AccountStep,
        orders: OrderIndex,
        marks: Mapping[str, Mark],
    ) -> AccountStep:
        """Protect what is open, cancel opens during a halt, and give the world with the stops that rest now."""
        after = step.world
        assert after is not None
        # A first read knows less of its positions than the stored world, by which the next pass cancels what is not needed.
        changed = await self._protector.protect(after, account.positions, marks, agrees=world is not None)
        opens = [order for order in orders.by_cloid.values() if order.opens and order.state == "resting"]
        if opens and (after.halts or self._withdraws_opens()):
            await self._sender.cancel(opens)
            changed = True
        ended = self._ended(world, orders)
        if not changed and not ended:
            return step
        newest = {order.cloid: order for order in (*orders.by_cloid.values(), *ended)}
        newest |= {order.cloid: order for order in self._sender.store.open_orders()}
        refreshed = [self._sender.store.get(cloid) or order for cloid, order in newest.items()]
        index = index_orders(refreshed)
        if world is None:
            return step
        return world_after(world, account, index, self._setup.terms, marks, adopt=True)

    def _ended(self, world: ReportedWorld | None, orders: OrderIndex) -> tuple[LiveOrder, ...]:
        """Return the orders of the world before that are neither open nor among those just looked at."""
        if world is None or not world.orders:
            return ()
        ids = {order.order_id for order in orders.by_cloid.values()}
        missing = [order for order in world.orders if order.id not in ids]
        if not missing:
            return ()
        since = min(order.submitted_at for order in missing) - 5 * SECOND_MS
        wanted = {order.id for order in missing}
        return tuple(order for order in self._sender.store.recent(since) if order.order_id in wanted)
