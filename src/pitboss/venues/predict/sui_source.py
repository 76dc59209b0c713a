"""Live source of an account on the chain: the protocol's markets, and what the chain says about the account itself.

Before anything else an update asks the chain about orders whose result is unknown. At intervals it reads the chain's own
pause flag, the agent's flag, and the manager's balance; the indexer's copies of these are not relied on. Where the chain
cannot be read, no model is asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Placed
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.data.market_watch import MarketSnapshot, MarketWatch
from pitboss.venues.predict.data.wire import ManagerPosition
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.indexer_source import IndexerSource
from pitboss.venues.predict.observed_world import observe_markets
from pitboss.venues.predict.state import (
    ACCOUNT,
    NO_ACCOUNT,
    Account,
    ContractPosition,
    PredictWorld,
    Vault,
)
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui.desk_changes import apply_price
from pitboss.venues.predict.sui_redemptions import redeemed_quantities, with_redemptions

FLAGS_MS = 5 * SECOND_MS
ACCOUNT_MS = 15 * SECOND_MS
UNREAD_MS = MINUTE_MS
"""How old the chain's flags may be for a model to be asked."""
PAUSED, AGENT_PAUSED, NO_CHAIN = "paused", "agent_paused", "no_chain"


class SuiSource(IndexerSource):
    """Implements `live.world_source.WorldSource` for the account of a PredictManager."""

    def __init__(
        self,
        watch: MarketWatch,
        indexer: Indexer,
        broker: PredictSui,
        caps: PredictCaps,
        now: Callable[[], Instant],
        agent_id: str = "",
        notify: Callable[[str], None] = lambda message: None,
        resolves_orders: bool = True,
    ) -> None:
        """`resolves_orders` is False for a dry run, which must not send anything, not even what resolves a doubt."""
        super().__init__(watch, caps, now)
        self._resolves_orders = resolves_orders
        self.broker = broker
        self.since: Instant | None = None
        """The last tick that the stored desk includes; orders of later ticks are added to it once."""
        self._indexer = indexer
        self._agent_id = agent_id
        self._notify = notify
        self._flags_at: Instant | None = None
        self._account_at = now()  # the account was read when the run was opened
        self._paused = self._agent_paused = False
        self._chain_trouble = ""

    async def update(self, world: Desk, before: Instant) -> WorldUpdate:
        """Apply the results of orders, the markets, and what the chain says about the account."""
        now = self.now()
        since = now if self.since is None else self.since
        settled = await self.broker.settle(world, since, now) if self._resolves_orders else Placed(world)
        await self.read_flags()
        inner = await super().update(settled.world, before)
        desk, happened = await self._synchronised(inner.world, now)
        terms = replace(desk.world.terms, paused=desk.world.terms.paused or self._paused)
        desk = replace(desk, world=replace(desk.world, terms=terms))
        self.since = None  # only now: an update that was cancelled must look again
        return WorldUpdate(desk, (*settled.receipts, *inner.receipts, *happened))

    def apply_snapshot(self, desk: Desk, snapshot: MarketSnapshot) -> tuple[Desk, tuple[Receipt, ...]]:
        """Apply one snapshot. Orders wait for the chain and not for a price; nothing is paid out on paper."""
        step = observe_markets(
            desk.world, snapshot.oracles, snapshot.terms, snapshot.vault, snapshot.at, pays_out=False
        )
        return apply_price(desk, step, self.caps, snapshot.at, self.account_id)

    def hold_flag(self, world: Desk, at: Instant) -> str:
        """Return why no decision may be made: the chain is paused or cannot be read, or prices are missing."""
        if self._flags_at is None or self.now() - self._flags_at > UNREAD_MS:
            return NO_CHAIN
        if self._paused:
            return PAUSED
        return AGENT_PAUSED if self._agent_paused else super().hold_flag(world, at)

    def trouble(self) -> str:
        """Describe the current problem with the chain or the markets; empty if there is none."""
        paused = "the protocol has paused trading on the chain" if self._paused else ""
        agent = "the agent is switched off on the chain (is_active is false)" if self._agent_paused else ""
        return self._chain_trouble or paused or agent or super().trouble()

    async def read_flags(self) -> None:
        """Read the chain's pause flag and the agent's flag, if that is due. A missing pause flag counts as not paused."""
        now = self.now()
        if self._flags_at is not None and 0 <= now - self._flags_at < FLAGS_MS:
            return
        predict = self.broker.sender.objects.predict
        names = [predict, *([self._agent_id] if self._agent_id else [])]
        try:
            fields = await self.broker.sender.contents(names)
        except TransientError as error:
            self._chain_trouble = f"the chain cannot be read: {error}"
            return
        self._chain_trouble, self._flags_at = "", now
        self._paused = fields.get(predict, {}).get("trading_paused") is True
        self._agent_paused = bool(self._agent_id) and fields.get(self._agent_id, {}).get("is_active") is not True

    async def _synchronised(self, desk: Desk, now: Instant) -> tuple[Desk, tuple[Receipt, ...]]:
        """Return the desk with redemptions by others, deposits and withdrawals; unchanged while an order is pending."""
        if desk.waiting or 0 <= now - self._account_at < ACCOUNT_MS:
            return desk, ()
        try:
            balance = await self.broker.sender.check(may_be_empty=True)
            desk, receipts = await self._with_redemptions(desk, now)
        except (TransientError, UserError) as error:
            self._chain_trouble = f"the account cannot be read: {error}"
            return desk, ()
        self._account_at = now
        account = desk.world.accounts.get(self.account_id, NO_ACCOUNT)
        if account.cash == balance:
            return desk, receipts
        self._notify(f"the manager holds {dusdc(balance)}, and {dusdc(account.cash)} was expected: adjusted")
        accounts = {**desk.world.accounts, self.account_id: replace(account, cash=balance)}
        return replace(desk, world=replace(desk.world, accounts=accounts)), receipts

    async def _with_redemptions(self, desk: Desk, now: Instant) -> tuple[Desk, tuple[Receipt, ...]]:
        """Return the desk without contracts that were sold or paid out by others, with the receipts of that."""
        manager = self.broker.sender.objects.manager
        health = await self._indexer.health()  # first, so that the positions are at least as new
        indexed_until = health.at - max(0, health.lag_s) * SECOND_MS
        positions = await self._indexer.positions(manager)
        missing = redeemed_quantities(desk, positions, indexed_until, self.account_id)
        markets = sorted({row.contract.market_id for row in positions if row.contract.key in missing})
        redemptions = [row for name in markets for row in await self._indexer.redemptions(manager, name)]
        return with_redemptions(desk, missing, redemptions, now, self.account_id)


def chain_desk(balance: int, positions: Sequence[ManagerPosition], at: Instant, account_id: str = ACCOUNT) -> Desk:
    """Return a desk with what a manager holds: its balance and its open positions at their cost."""
    positions_by_key = {
        position.contract.key: ContractPosition(
            position.contract, position.expiry_at, position.quantity, position.cost, at
        )
        for position in positions
        if position.quantity > 0
    }
    return Desk(PredictWorld(Vault(0), {account_id: Account(balance, positions_by_key)}))
