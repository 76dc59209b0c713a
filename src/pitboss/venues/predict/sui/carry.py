"""`Carrier`: brings one order to the chain at most once, even if the process or the network fails.

The steps, and the state after a crash directly following each:

    1  claim      the outbox has an `intent`               nothing signed: the claim is voided
    2  ground     objects, gas coin, epoch are read        the same
    3  weigh      the trade is simulated, unsigned         the same
    4  sign       bytes exist in memory only               the same: unstored bytes were never sent
    5  keep       the outbox has `signed` bytes            not sent: voided, the bytes are discarded
    6  simulate   the signed bytes are simulated           the same
    7  leave      the outbox says `sent`                   in doubt: only the chain has the result
    8  execute    the bytes are sent                       in doubt
    9  note       the outbox has `landed` or `failed`      resolved

In doubt, the chain is queried in this order, and only a positive answer resolves the doubt:

    its digest has effects                   → landed or failed
    another transaction consumed its coin    → void: one version of a coin is consumed once
    the epoch after its last one is over     → void: it can no longer be executed
    none of these, and it is fresh           → the same bytes are sent again, which is one transaction
    none of these, and it is stale           → a transaction without effect (a fence) consumes its coin;
                                               then one of the first two answers follows

A node without the digest is not an answer: nodes index behind the chain. A second transaction for an order is signed
only after the first is void. An order in doubt blocks every other order of the manager.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pitboss.core import codec
from pitboss.core.errors import InvariantError, TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.quote import quantity_for
from pitboss.venues.predict.sui.chain import MAINNET, Chain, Coin, Effects, TransactionBasis
from pitboss.venues.predict.sui.ports import Outbox, OutboxAttempt, Signs
from pitboss.venues.predict.sui.transaction import (
    ContractCall,
    Fee,
    ProtocolObjects,
    build,
    build_fence,
    build_look,
    digest_of,
    objects_of,
)
from pitboss.venues.predict.sui.wish import Deal, SuiOrder, deal_of, unit, words

ATTEMPTS = 3
"""Maximum number of transactions signed for one order, each after the previous one was void."""
SENDS = 3
"""Maximum number of times the same bytes are sent before the doubt is left to the next check."""


@noun
class WriterSettings:
    """Settings of the writer. Gas amounts are in MIST, a billionth of a SUI."""

    network: str = "testnet"
    gas_budget: int = 50_000_000
    max_slippage_bps: int = 200
    fresh_ms: int = 30 * SECOND_MS
    """How long after the first send a transaction may be sent again; later its decision is too old to be executed."""
    lease_ms: int = 60 * SECOND_MS
    """How long another process may take to finish an attempt before it is taken over."""
    pause_s: float = 1.0


@noun
class Fate:
    """The result of an order: its entry in the outbox, or the reason for its refusal."""

    entry: OutboxAttempt | None = None
    refusal: str = ""


@noun
class _Ready:
    """A transaction that is ready to be signed."""

    wish: SuiOrder
    tx: bytes
    coin: str
    last_epoch: int


class Carrier:
    """Sends the orders of one manager, one at a time."""

    def __init__(
        self,
        chain: Chain,
        outbox: Outbox,
        signer: Signs,
        place: ProtocolObjects,
        terms: WriterSettings,
        owner: str,
        now: Callable[[], Instant],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`owner` identifies this process among those that share the outbox; it is new at every start."""
        self.place = place
        self.terms = terms
        self.scope = f"sui:{terms.network}:{place.manager}"
        self.outbox = outbox
        self._chain = chain
        self._signer = signer
        self._owner = owner
        self._now = now
        self._pause = pause
        self._alone = asyncio.Lock()

    async def carry(self, order_id: str, tick_at: Instant, wish: SuiOrder) -> Fate:
        """Send an order, or return its result if it was sent before."""
        async with self._alone:
            await self._tidy()
            request = codec.dumps(wish)
            entry, ours = self.outbox.open(order_id, self.scope, self._owner, tick_at, request, ATTEMPTS)
            if ours:
                return await self._attempt(entry, wish)
            if entry.order_id != order_id:
                return Fate(refusal=f"order {entry.order_id[:12]} is still on its way; nothing else is sent meanwhile")
            if entry.state in ("intent", "signed"):
                return Fate(refusal="another process is sending this order")
            return Fate(entry, entry.note if entry.state in ("failed", "void") else "")

    async def tidy(self) -> None:
        """Resolve pending attempts where possible."""
        async with self._alone:
            await self._tidy()

    async def check(self) -> int:
        """Return the manager's balance. Raises `UserError` for any condition that would prevent every order."""
        ground = await self._chain.ground(objects_of(self.place), self._signer.address)
        lacking = self.lacking(ground)
        if lacking:
            raise UserError(lacking, "check sui_node_url, sui_network and the ids in the settings")
        coin = self.coin(ground)
        if isinstance(coin, str):
            raise UserError(coin, f"send some SUI to {self._signer.address}, in more than one coin")
        seen = await self._chain.simulate(build_look(self.place, ground, self.fee(ground, coin)))
        balance = unit(seen.outputs) if seen.ok else None
        if balance is None:
            raise UserError(
                f"the balance of the PredictManager cannot be read: {words(seen)}",
                "check predict_package_id and predict_quote_type in the settings",
            )
        if balance == 0:
            raise UserError(
                f"the PredictManager {self.place.manager} holds nothing to trade with",
                "deposit what the agent may lose: it can never spend more than that",
            )
        return balance

    async def _tidy(self) -> None:
        for entry in self.outbox.pending(self.scope):
            try:
                await self._resolve(entry)
            except TransientError:
                continue  # the doubt remains, and the entry stays pending

    async def _attempt(self, entry: OutboxAttempt, wish: SuiOrder) -> Fate:
        ready = await self._prepared(wish)
        if isinstance(ready, str):
            return self._dropped(entry, ready)
        signature = self._signer.sign(ready.tx)
        digest = digest_of(ready.tx)
        request = codec.dumps(ready.wish)
        signed = self.outbox.sign(entry, request, ready.tx, signature, digest, ready.coin, ready.last_epoch)
        if signed is None:
            return self._dropped(entry, "another process has taken this order over, or its coin")
        try:
            problem = self._problem(await self._chain.simulate(ready.tx), ready.wish)
        except TransientError as error:
            problem = f"it could not be simulated: {error}"
        if problem:
            return self._dropped(signed, problem)
        sent = self.outbox.send(signed)
        if sent is None:
            return Fate(refusal="another process has taken this order over")
        return _fate(await self._delivered(sent, SENDS))

    def _dropped(self, entry: OutboxAttempt, why: str) -> Fate:
        """Void an attempt of which nothing was sent."""
        self.outbox.close(entry, "void", None, why)
        return Fate(refusal=why)

    async def _prepared(self, wish: SuiOrder) -> _Ready | str:
        """Build a transaction for the order within its promised spend; or return why there is none."""
        try:
            ground = await self._chain.ground(objects_of(self.place, wish.oracle), self._signer.address)
            coin = self.coin(ground)
            if isinstance(coin, str):
                return coin
            lacking = self.lacking(ground, wish.oracle)
            if lacking:
                return lacking
            return await self._fitted(ground, coin, wish)
        except TransientError as error:
            return f"the chain cannot be asked: {error}"

    async def _fitted(self, ground: TransactionBasis, coin: Coin, wish: SuiOrder) -> _Ready | str:
        fee = self.fee(ground, coin)
        seen = await self._chain.simulate(build(self.place, ground, _call(wish), fee, looking=True))
        deal = deal_of(seen, wish, self.place.manager) if seen.ok else None
        if deal is not None and wish.action == "mint" and deal.amount > wish.spend:
            # The price has risen since the check: buy only what the promised spend covers. The price per contract does
            # not rise with a smaller quantity.
            wish = replace(wish, quantity=quantity_for(wish.spend, deal.price))
            seen = await self._chain.simulate(build(self.place, ground, _call(wish), fee, looking=True))
        problem = self._problem(seen, wish)
        if problem:
            return problem
        balance = unit(seen.outputs)
        if wish.action == "mint" and balance is None:
            return "the node does not tell what the manager holds"
        keep = max(0, (balance or 0) - wish.spend) if wish.action == "mint" else 0
        return _Ready(wish, build(self.place, ground, _call(wish, keep), fee), coin.key, ground.epoch)

    def _problem(self, seen: Effects, wish: SuiOrder) -> str:
        """Return why a simulated result must not be sent; empty if it may be."""
        if not seen.ok:
            return words(seen)
        deal = deal_of(seen, wish, self.place.manager)
        if deal is None or deal.quantity != wish.quantity:
            return "the simulation does not show the trade that was asked for"
        if wish.action == "redeem":
            return ""
        if deal.amount > wish.spend:
            return f"it would cost {dusdc(deal.amount)}, and {dusdc(wish.spend)} was promised"
        if (deal.price - wish.reference) * 10_000 > self.terms.max_slippage_bps * wish.reference:
            return f"the ask has moved by more than {self.terms.max_slippage_bps} basis points"
        return ""

    def lacking(self, ground: TransactionBasis, oracle: str | None = None) -> str:
        """Return what is wrong with the network or the configured ids; empty if nothing is."""
        real = ground.chain_id in MAINNET
        if real != (self.terms.network == "mainnet"):
            told = "mainnet" if real else f"another network ({ground.chain_id})"
            return f"the node belongs to {told}, and the setting sui_network says {self.terms.network}"
        names = ("Predict", "PredictManager", "Clock", "market")
        for name, object_id in zip(names, objects_of(self.place, oracle), strict=False):
            if object_id not in ground.shared:
                return f"there is no shared object {object_id} ({name}) on {self.terms.network}"
        return ""

    def coin(self, ground: TransactionBasis) -> Coin | str:
        """Return the coin that pays for the next transaction, or why there is none."""
        sender, budget = self._signer.address, self.terms.gas_budget
        if not ground.coins:
            return f"{sender} has no SUI on {self.terms.network} to pay for gas"
        rich = [coin for coin in ground.coins if coin.balance >= budget]
        if not rich:
            most = max(coin.balance for coin in ground.coins)
            return f"the largest coin of {sender} has {most:,} MIST, and gas_budget is {budget:,}"
        taken = self.outbox.taken([coin.key for coin in rich])
        free = [coin for coin in rich if coin.key not in taken]
        if not free:
            return "the gas coin was used a moment ago, and the node has not caught up"
        return max(free, key=lambda coin: (coin.balance, coin.id))

    def fee(self, ground: TransactionBasis, coin: Coin) -> Fee:
        """Return the gas payment of a transaction, which is valid in this epoch only."""
        return Fee(self._signer.address, coin, self.terms.gas_budget, ground.gas_price, ground.epoch)

    async def _delivered(self, entry: OutboxAttempt, times: int) -> OutboxAttempt:
        """Send the stored bytes and no others; query the chain if the reply is lost."""
        tx, signature = entry.tx, entry.signature
        if tx is None or signature is None or digest_of(tx) != entry.digest:
            raise InvariantError(f"order {entry.order_id} was sent, and its bytes are not those that were kept")
        for turn in range(times):
            if turn:
                await self._pause(self.terms.pause_s)
                if self._age(entry) > self.terms.fresh_ms:
                    break
            try:
                return self._noted(entry, await self._chain.execute(tx, signature))
            except TransientError:
                entry = await self._seen(entry)
            if entry.state != "sent":
                break
        return entry

    async def _seen(self, entry: OutboxAttempt) -> OutboxAttempt:
        """Query the chain about sent bytes; return the entry unchanged if there is no answer."""
        digest, coin, last_epoch = entry.digest, entry.coin, entry.last_epoch
        if digest is None or coin is None or last_epoch is None:
            raise InvariantError(f"order {entry.order_id} was sent, and what was sent is not known")
        try:
            epoch = (
                await self._chain.epoch()
            )  # first: the results of an epoch are complete when the next but one has begun
            effects = await self._chain.outcome(digest)
            if effects is not None:
                return self._noted(entry, effects)
            coin_id, _, version = coin.rpartition(":")
            consumer = await self._chain.consumer(coin_id, int(version))
        except TransientError:
            return entry
        if consumer is not None and consumer != digest:
            return self._ended(entry, "void", None, f"it was never run: {consumer} used its coin up")
        if consumer is None and epoch > last_epoch + 1:
            return self._ended(entry, "void", None, f"it was never run: epoch {last_epoch} is over")
        return entry

    def _noted(self, entry: OutboxAttempt, effects: Effects) -> OutboxAttempt:
        """Close the entry with its effects; unchanged if they do not show the trade yet. Raises if they are another's."""
        if effects.digest != entry.digest:
            raise TransientError("the node answers about another transaction")
        if not effects.ok:
            return self._ended(entry, "failed", None, words(effects))
        deal = deal_of(effects, wish_kept(entry), self.place.manager)
        if deal is None:
            raise TransientError("the node does not tell the trade")
        return self._ended(entry, "landed", codec.dumps(deal), "")

    def _ended(self, entry: OutboxAttempt, state: str, outcome: bytes | None, note: str) -> OutboxAttempt:
        return self.outbox.close(entry, state, outcome, note) or self.outbox.get(entry.order_id) or entry

    async def _resolve(self, entry: OutboxAttempt) -> None:
        ours = entry.owner == self._owner or self._age(entry) > self.terms.lease_ms
        if entry.state in ("intent", "signed"):
            if ours:
                self.outbox.close(entry, "void", None, "it was given up before it was sent")
            return
        entry = await self._seen(entry)
        if entry.state != "sent" or not ours:
            return
        if self._age(entry) <= self.terms.fresh_ms:
            await self._delivered(entry, 1)
        else:
            await self._fence(entry)

    def _age(self, entry: OutboxAttempt) -> int:
        """Return milliseconds since the last change of an entry."""
        return self._now() - entry.changed_at

    async def _fence(self, entry: OutboxAttempt) -> None:
        """Consume the coin of a stale transaction, unless that transaction was executed first."""
        ground = await self._chain.ground(objects_of(self.place), self._signer.address)
        coin = next((coin for coin in ground.coins if coin.key == entry.coin), None)
        if coin is None:
            return
        tx = build_fence(self.place, ground, self.fee(ground, coin))
        try:
            await self._chain.execute(tx, self._signer.sign(tx))
        finally:
            await self._seen(entry)


def _call(wish: SuiOrder, keep: int = 0) -> ContractCall:
    up = wish.side == "YES"
    return ContractCall(wish.action, wish.oracle, wish.expiry_at, wish.strike, up, wish.quantity, keep)


def _fate(entry: OutboxAttempt) -> Fate:
    return Fate(entry, entry.note if entry.state in ("failed", "void") else "")


def deal_kept(entry: OutboxAttempt) -> Deal:
    """Return the trade of a landed entry."""
    assert entry.outcome is not None
    return codec.parse(Deal, codec.loads(entry.outcome))


def wish_kept(entry: OutboxAttempt) -> SuiOrder:
    """Return the order of an entry."""
    return codec.parse(SuiOrder, codec.loads(entry.request))
