"""`OrderSender`: brings one order to the chain at most once, even if the process or the network fails.

The steps, and the state after a crash directly following each:

    1  claim      the outbox has an `intent`               nothing signed: the claim is voided
    2  read       objects, gas coin, epoch are read        the same
    3  estimate   the trade is simulated, unsigned         the same
    4  sign       the signer returns a signature           the same: unstored bytes were never sent
    5  store      the outbox has `signed` bytes            not sent: voided, the bytes are discarded
    6  simulate   the signed bytes are simulated           the same
    7  mark       the outbox says `sent`                   in doubt: only the chain has the result
    8  execute    the bytes are sent                       in doubt
    9  record     the outbox has `landed` or `failed`      resolved

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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import InvariantError, TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.quote import quantity_for
from pitboss.venues.predict.sui.chain import Chain, Coin, Effects, TransactionBasis
from pitboss.venues.predict.sui.gas import gas_coin, network_problem
from pitboss.venues.predict.sui.order import ChainTrade, SuiOrder, failure_text, first_number, trade_in
from pitboss.venues.predict.sui.ports import Outbox, OutboxAttempt, Signs
from pitboss.venues.predict.sui.transaction import (
    ContractCall,
    Fee,
    ProtocolObjects,
    build,
    build_balance_read,
    build_fence,
    digest_of,
    objects_of,
)

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
class SendResult:
    """The result of an order: its entry in the outbox, or the reason for its refusal."""

    entry: OutboxAttempt | None = None
    refusal: str = ""


@noun
class _ReadyTransaction:
    """A transaction that is ready to be signed."""

    order: SuiOrder
    tx: bytes
    coin: str
    last_epoch: int


class OrderSender:
    """Sends the orders of one manager, one at a time."""

    def __init__(
        self,
        chain: Chain,
        outbox: Outbox,
        signer: Signs,
        objects: ProtocolObjects,
        settings: WriterSettings,
        owner: str,
        now: Callable[[], Instant],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`owner` identifies this process among those that share the outbox; it is new at every start."""
        self.objects = objects
        self.settings = settings
        self.scope = f"sui:{settings.network}:{objects.manager}"
        self.outbox = outbox
        self._chain = chain
        self._signer = signer
        self._owner = owner
        self._now = now
        self._pause = pause
        self._lock = asyncio.Lock()

    async def send(self, order_id: str, tick_at: Instant, order: SuiOrder) -> SendResult:
        """Send an order, or return its result if it was sent before."""
        async with self._lock:
            await self._resolve_pending()
            request = codec.dumps(order)
            entry, ours = self.outbox.open(order_id, self.scope, self._owner, tick_at, request, ATTEMPTS)
            if ours:
                return await self._attempt(entry, order)
            if entry.order_id != order_id:
                return SendResult(
                    refusal=f"order {entry.order_id[:12]} is still on its way; nothing else is sent meanwhile"
                )
            if entry.state in ("intent", "signed"):
                return SendResult(refusal="another process is sending this order")
            return _result_of(entry)

    async def rehearse(self, order: SuiOrder) -> ChainTrade | str:
        """Simulate an order without signing, storing or sending anything; return the trade, or why it would fail."""
        ready = await self._prepare(order)
        if isinstance(ready, str):
            return ready
        try:
            effects = await self._chain.simulate(ready.tx)
        except TransientError as error:
            return f"it could not be simulated: {error}"
        trade = trade_in(effects, ready.order, self.objects.manager) if effects.ok else None
        return trade if trade is not None else self._problem(effects, ready.order)

    async def resolve_pending(self) -> None:
        """Resolve pending attempts where possible."""
        async with self._lock:
            await self._resolve_pending()

    @property
    def address(self) -> str:
        """Return the address that signs."""
        return self._signer.address

    async def contents(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields of objects on the chain, by id."""
        return await self._chain.contents(ids)

    async def check(self, may_be_empty: bool = False) -> int:
        """Return the manager's balance. Raises `UserError` for any condition that would prevent every order."""
        basis = await self._chain.read_basis(objects_of(self.objects), self._signer.address)
        settings_problem = self.settings_problem(basis)
        if settings_problem:
            raise UserError(settings_problem, "check sui_node_url, sui_network and the ids in the settings")
        coin = self.coin(basis)
        if isinstance(coin, str):
            raise UserError(coin, f"send some SUI to {self._signer.address}, in more than one coin")
        effects = await self._chain.simulate(build_balance_read(self.objects, basis, self.fee(basis, coin)))
        balance = first_number(effects.outputs) if effects.ok else None
        if balance is None:
            raise UserError(
                f"the balance of the PredictManager cannot be read: {failure_text(effects)}",
                "check predict_package_id and predict_quote_type in the settings",
            )
        if balance == 0 and not may_be_empty:
            raise UserError(
                f"the PredictManager {self.objects.manager} holds nothing to trade with",
                "deposit what the agent may lose with `pitboss predict manager deposit`: it can never spend more",
            )
        return balance

    async def _resolve_pending(self) -> None:
        for entry in self.outbox.pending(self.scope):
            try:
                await self._resolve(entry)
            except TransientError:
                continue  # the doubt remains, and the entry stays pending

    async def _attempt(self, entry: OutboxAttempt, order: SuiOrder) -> SendResult:
        ready = await self._prepare(order)
        if isinstance(ready, str):
            return self._void(entry, ready)
        try:
            signature = await self._signer.sign(ready.tx)
        except TransientError as error:
            return self._void(entry, f"it was not signed: {error}")
        digest = digest_of(ready.tx)
        request = codec.dumps(ready.order)
        signed = self.outbox.sign(entry, request, ready.tx, signature, digest, ready.coin, ready.last_epoch)
        if signed is None:
            return self._void(entry, "another process has taken this order over, or its coin")
        try:
            problem = self._problem(await self._chain.simulate(ready.tx), ready.order)
        except TransientError as error:
            problem = f"it could not be simulated: {error}"
        if problem:
            return self._void(signed, problem)
        entry_sent = self.outbox.send(signed)
        if entry_sent is None:
            return SendResult(refusal="another process has taken this order over")
        return _result_of(await self._send_bytes(entry_sent, SENDS))

    def _void(self, entry: OutboxAttempt, why: str) -> SendResult:
        """Void an attempt of which nothing was sent."""
        self.outbox.close(entry, "void", None, why)
        return SendResult(refusal=why)

    async def _prepare(self, order: SuiOrder) -> _ReadyTransaction | str:
        """Build a transaction for the order within its promised spend; or return why there is none."""
        try:
            basis = await self._chain.read_basis(objects_of(self.objects, order.oracle), self._signer.address)
            coin = self.coin(basis)
            if isinstance(coin, str):
                return coin
            settings_problem = self.settings_problem(basis, order.oracle)
            if settings_problem:
                return settings_problem
            return await self._fit_to_spend(basis, coin, order)
        except TransientError as error:
            return f"the chain cannot be asked: {error}"

    async def _fit_to_spend(self, basis: TransactionBasis, coin: Coin, order: SuiOrder) -> _ReadyTransaction | str:
        fee = self.fee(basis, coin)
        effects = await self._chain.simulate(build(self.objects, basis, _call(order), fee, with_balance=True))
        trade = trade_in(effects, order, self.objects.manager) if effects.ok else None
        if trade is not None and order.action == "mint" and trade.amount > order.spend:
            # The price has risen since the check: buy only what the promised spend covers. The price per contract does
            # not rise with a smaller quantity.
            order = replace(order, quantity=quantity_for(order.spend, trade.price))
            effects = await self._chain.simulate(build(self.objects, basis, _call(order), fee, with_balance=True))
        problem = self._problem(effects, order)
        if problem:
            return problem
        balance = first_number(effects.outputs)
        if order.action == "mint" and balance is None:
            return "the node does not tell what the manager holds"
        keep = max(0, (balance or 0) - order.spend) if order.action == "mint" else 0
        return _ReadyTransaction(order, build(self.objects, basis, _call(order, keep), fee), coin.key, basis.epoch)

    def _problem(self, effects: Effects, order: SuiOrder) -> str:
        """Return why a simulated result must not be sent; empty if it may be."""
        if not effects.ok:
            return failure_text(effects)
        trade = trade_in(effects, order, self.objects.manager)
        if trade is None or trade.quantity != order.quantity:
            return "the simulation does not show the trade that was asked for"
        if order.action == "redeem":
            return ""
        if trade.amount > order.spend:
            return f"it would cost {dusdc(trade.amount)}, and {dusdc(order.spend)} was promised"
        if (trade.price - order.reference) * 10_000 > self.settings.max_slippage_bps * order.reference:
            return f"the ask has moved by more than {self.settings.max_slippage_bps} basis points"
        return ""

    def settings_problem(self, basis: TransactionBasis, oracle: str | None = None) -> str:
        """Return what is wrong with the network or the configured ids; empty if nothing is."""
        problem = network_problem(basis, self.settings.network)
        if problem:
            return problem
        names = ("Predict", "PredictManager", "Clock", "market")
        for name, object_id in zip(names, objects_of(self.objects, oracle), strict=False):
            if object_id not in basis.shared:
                return f"there is no shared object {object_id} ({name}) on {self.settings.network}"
        return ""

    def coin(self, basis: TransactionBasis) -> Coin | str:
        """Return the coin that pays for the next transaction, or why there is none."""
        settings = self.settings
        return gas_coin(basis, self._signer.address, settings.network, settings.gas_budget, self.outbox.taken)

    def fee(self, basis: TransactionBasis, coin: Coin) -> Fee:
        """Return the gas payment of a transaction, which is valid in this epoch only."""
        return Fee(self._signer.address, coin, self.settings.gas_budget, basis.gas_price, basis.epoch)

    async def _send_bytes(self, entry: OutboxAttempt, times: int) -> OutboxAttempt:
        """Send the stored bytes and no others; query the chain if the reply is lost."""
        tx, signature = entry.tx, entry.signature
        if tx is None or signature is None or digest_of(tx) != entry.digest:
            raise InvariantError(f"order {entry.order_id} was sent, and its bytes differ from the stored ones")
        for turn in range(times):
            if turn:
                await self._pause(self.settings.pause_s)
                if self._age(entry) > self.settings.fresh_ms:
                    break
            try:
                return self._close_by_effects(entry, await self._chain.execute(tx, signature))
            except TransientError:
                entry = await self._query_chain(entry)
            if entry.state != "sent":
                break
        return entry

    async def _query_chain(self, entry: OutboxAttempt) -> OutboxAttempt:
        """Query the chain about sent bytes; return the entry unchanged if there is no answer."""
        digest, coin, last_epoch = entry.digest, entry.coin, entry.last_epoch
        if digest is None or coin is None or last_epoch is None:
            raise InvariantError(
                f"order {entry.order_id} was sent, and its digest, coin or epoch is missing in the outbox"
            )
        try:
            epoch = (
                await self._chain.epoch()
            )  # first: the results of an epoch are complete when the next but one has begun
            effects = await self._chain.outcome(digest)
            if effects is not None:
                return self._close_by_effects(entry, effects)
            coin_id, _, version = coin.rpartition(":")
            consumer = await self._chain.consumer(coin_id, int(version))
        except TransientError:
            return entry
        if consumer is not None and consumer != digest:
            return self._close(entry, "void", None, f"it was never run: {consumer} used its coin up")
        if consumer is None and epoch > last_epoch + 1:
            return self._close(entry, "void", None, f"it was never run: epoch {last_epoch} is over")
        return entry

    def _close_by_effects(self, entry: OutboxAttempt, effects: Effects) -> OutboxAttempt:
        """Close the entry with its effects; unchanged if they do not show the trade yet. Raises if they are another's."""
        if effects.digest != entry.digest:
            raise TransientError("the node answers about another transaction")
        if not effects.ok:
            return self._close(entry, "failed", None, failure_text(effects))
        trade = trade_in(effects, stored_order(entry), self.objects.manager)
        if trade is None:
            raise TransientError("the node does not tell the trade")
        return self._close(entry, "landed", codec.dumps(trade), "")

    def _close(self, entry: OutboxAttempt, state: str, outcome: bytes | None, note: str) -> OutboxAttempt:
        return self.outbox.close(entry, state, outcome, note) or self.outbox.get(entry.order_id) or entry

    async def _resolve(self, entry: OutboxAttempt) -> None:
        ours = entry.owner == self._owner or self._age(entry) > self.settings.lease_ms
        if entry.state in ("intent", "signed"):
            if ours:
                self.outbox.close(entry, "void", None, "it was given up before it was sent")
            return
        entry = await self._query_chain(entry)
        if entry.state != "sent" or not ours:
            return
        if self._age(entry) <= self.settings.fresh_ms:
            await self._send_bytes(entry, 1)
        else:
            await self._fence(entry)

    def _age(self, entry: OutboxAttempt) -> int:
        """Return milliseconds since the last change of an entry."""
        return self._now() - entry.changed_at

    async def _fence(self, entry: OutboxAttempt) -> None:
        """Consume the coin of a stale transaction, unless that transaction was executed first."""
        basis = await self._chain.read_basis(objects_of(self.objects), self._signer.address)
        coin = next((coin for coin in basis.coins if coin.key == entry.coin), None)
        if coin is None:
            return
        tx = build_fence(self.objects, basis, self.fee(basis, coin))
        try:
            await self._chain.execute(tx, await self._signer.sign(tx))
        finally:
            await self._query_chain(entry)


def _call(order: SuiOrder, keep: int = 0) -> ContractCall:
    up = order.side == "YES"
    return ContractCall(order.action, order.oracle, order.expiry_at, order.strike, up, order.quantity, keep)


def _result_of(entry: OutboxAttempt) -> SendResult:
    return SendResult(entry, entry.note if entry.state in ("failed", "void") else "")


def stored_trade(entry: OutboxAttempt) -> ChainTrade:
    """Return the trade of a landed entry."""
    assert entry.outcome is not None
    return codec.parse(ChainTrade, codec.loads(entry.outcome))


def stored_order(entry: OutboxAttempt) -> SuiOrder:
    """Return the order of an entry."""
    return codec.parse(SuiOrder, codec.loads(entry.request))
