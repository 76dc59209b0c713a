"""`TransactionSender`: brings the transaction of one intent to the chain at most once, whatever fails.

An intent gets one nonce, stored in the outbox before anything is signed, and keeps it: every version that is ever signed for it
has that nonce, and a chain executes a nonce once. The next intent gets the next nonce, after the one before has its result.

    1  open    the outbox has an `intent` with content and nonce    continued: the signer gives the same bytes
    2  sign    the signer has signed                                the same
    3  store   the outbox has `signed` bytes                        continued: they are sent
    4  mark    the outbox says `sent`                               in doubt: receipts decide, then the nonce
    5  send    the node has the bytes                               the same
    6  record  the outbox has `landed` or `failed`                  done

In doubt: a receipt of any version, deep enough, ends it. If the nonce is used by another transaction, deep enough, the intent
has failed for good (`replaced`). Otherwise the newest bytes are sent again, and after a while a version with higher fees. An
intent is given up (`void`) only if the signer refused it before anything was signed, or the wallet when it was to sign and send; then
the next intent gets the same nonce.

A node that lags or lies delays. Nonces come from the outbox, not from the node: if it counts fewer transactions than were sent,
the stored bytes of the missing ones are sent again first; if it counts more, nothing is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from pitboss.core.errors import InvariantError, TransientError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.store.outbox import OutboxEntry, StoredOutbox
from pitboss.venues.community.chain.node_reader import ChainTransaction, MessageCall, NodeReader
from pitboss.venues.community.chain.ports import ChainFailure, TxOutcome, needs_no_approval
from pitboss.venues.community.chain.send_outcome import (
    coin_of,
    failed_send,
    next_coin_of,
    nonce_of,
    outcome_of,
    packed_outcome,
)
from pitboss.venues.community.chain.stored_transaction import StoredTransaction, TxVersion

ATTEMPTS = 1_000
"""Attempts at one intent, each after the signer refused the one before."""
MOST_SCANNED_BLOCKS = 512
"""How many blocks one look searches for the transaction that used a nonce; the next look goes on with older ones."""
READINGS = 3
"""Equal answers that are needed before a node's count of an account that was never used here is taken."""


@noun
class SenderSettings:
    """How long to wait and how much to pay. `turns` and `replace_turns` count pauses of `pause_s`."""

    confirmations: int = 2
    pause_s: float = 2.0
    turns: int = 60
    replace_turns: int = 15
    max_fee_per_gas_wei: int = 100 * 10**9
    max_priority_fee_per_gas_wei: int = 5 * 10**9
    max_gas: int = 30_000_000
    first_nonce: int = 0
    """The lowest nonce to use, for an account that another program has used too. For one that was never used here the first; 0: ask."""


class TransactionSource(Protocol):
    """Signs versions and hands them over: the signing process and a node, or a wallet."""

    async def prepare(self, request_id: str, transaction: StoredTransaction) -> tuple[bytes, str] | ChainFailure: ...
    async def broadcast(self, transaction: StoredTransaction, raw: bytes, again: bool) -> str | ChainFailure: ...


class TransactionSender:
    """Sends the transactions of one account, one at a time."""

    def __init__(
        self,
        node: NodeReader,
        source: TransactionSource,
        outbox: StoredOutbox,
        address: str,
        settings: SenderSettings,
        owner: str,
        now: Callable[[], Instant],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.address = address
        self._node = node
        self._source = source
        self._outbox = outbox
        self._settings = settings
        self._owner = owner
        self._now = now
        self._pause = pause
        self._scope = f"evm:{node.client.chain_id}:{address}"
        self._lock = asyncio.Lock()
        self._scan_from: dict[int, int] = {}
        """Nonce → the block from which the search for its transaction goes on, where one look was not enough."""

    async def send(
        self, request_id: str, call: MessageCall, gas: int, use_approval: Callable[[], bool] = needs_no_approval
    ) -> TxOutcome:
        """Send a transaction, or continue with the one that has this id."""
        async with self._lock:
            entry = self._outbox.get(request_id)
            if entry is None or entry.state == "void":
                if gas > self._settings.max_gas:
                    message = f"it needs {gas:,} gas, and {self._settings.max_gas:,} are allowed"
                    return failed_send(request_id, "too_expensive", message)
                entry = await self._begin(request_id, call, gas, use_approval)
                if isinstance(entry, ChainFailure):
                    return TxOutcome(request_id, "not_sent", failure=entry)
            if StoredTransaction.loads(entry.request).call != call:
                return failed_send(request_id, "id_conflict", "this id was used for another transaction")
            return await self._follow(entry)

    def outcome(self, request_id: str) -> TxOutcome | None:
        """What is stored about an id, without asking the chain."""
        entry = self._outbox.get(request_id)
        return None if entry is None else outcome_of(entry)

    async def resume(self) -> tuple[TxOutcome, ...]:
        """Continue with what a process before this one left open."""
        async with self._lock:
            return tuple([await self._follow(entry) for entry in self._outbox.pending(self._scope)])

    async def _begin(
        self, request_id: str, call: MessageCall, gas: int, use_approval: Callable[[], bool]
    ) -> OutboxEntry | ChainFailure:
        for entry in self._outbox.pending(self._scope):
            await self._follow(entry)
        if self._outbox.pending(self._scope):
            return ChainFailure("busy", "an earlier transaction of this account has no result yet")
        try:
            nonce = await self._next_nonce()
            if isinstance(nonce, ChainFailure):
                return nonce
            height = await self._node.height()
            base_fee, priority_fee = await self._node.fees()
            balance = await self._node.balance(self.address)
        except TransientError as error:
            return ChainFailure("unreachable", str(error))
        settings = self._settings
        fee = min(2 * base_fee + priority_fee, settings.max_fee_per_gas_wei)
        version = TxVersion(fee, min(priority_fee, settings.max_priority_fee_per_gas_wei))
        if base_fee > fee or version.priority_fee > fee:  # no block would take it, and it would stay open
            return ChainFailure("too_expensive", "the chain asks more for gas than the settings allow")
        most_wei = call.value + gas * version.fee
        if balance < most_wei:  # no node would take it, and it would stay open
            return ChainFailure("too_expensive", f"it may cost {most_wei} wei, and the account has {balance}")
        transaction = StoredTransaction(
            *(self._node.client.chain_id, self.address, call.to, call.data, call.value),
            *(gas, nonce, height, (version,)),
        )
        if not use_approval():
            return ChainFailure("not_approved", "its approval was used or has expired")
        entry, _ = self._outbox.open(request_id, self._scope, self._owner, self._now(), transaction.dumps(), ATTEMPTS)
        if entry.order_id != request_id:
            return ChainFailure("busy", "another process is sending a transaction of this account")
        return entry

    async def _next_nonce(self) -> int | ChainFailure:
        """The nonce after the last one that was ever used here. Sends again what the chain has lost."""
        last = self._outbox.with_coins(self._scope, "", 1)
        own = self._settings.first_nonce
        if last:
            own = max(own, nonce_of(last[0]) + (last[0].state != "void"))
        elif not own:
            counts = {await self._node.transaction_count(self.address) for _ in range(READINGS)}
            counts.add(await self._node.transaction_count(self.address, "pending"))
            if len(counts) > 1:
                return ChainFailure("nonce_mismatch", "the node gives different counts of the account's transactions")
            own = counts.pop()
        for _ in range(self._settings.turns):
            count = await self._node.transaction_count(self.address)
            if count == own:
                return own
            if count > own:
                if await self._node.transaction_count(self.address) > own:
                    return ChainFailure(
                        "nonce_mismatch",
                        f"the node counts {count} transactions of the account, and {own} are known here: "
                        "another program uses it, or the node is wrong",
                    )
                continue
            await self._send_lost(count)
            await self._pause(self._settings.pause_s)
        return ChainFailure("chain_behind", "the chain does not have all earlier transactions of the account")

    async def _send_lost(self, count: int) -> None:
        """Send again the stored bytes of transactions that the chain no longer has. It executes each nonce once."""
        least = coin_of(self._scope, count)
        for entry in reversed(self._outbox.with_coins(self._scope, least, 64)):
            if entry.tx:
                await self._source.broadcast(StoredTransaction.loads(entry.request), entry.tx, True)

    async def _follow(self, entry: OutboxEntry) -> TxOutcome:
        """Continue with an entry until it has its result, or for the number of turns."""
        failure = ChainFailure("pending", "it is not mined yet")
        waited = 0
        for turn in range(self._settings.turns + 1):
            if turn:
                await self._pause(self._settings.pause_s)
            try:
                entry, failure = await self._advance(entry, waited)
                waited += 1
            except TransientError as error:
                failure = ChainFailure("unreachable", str(error))
                entry = self._outbox.get(entry.order_id) or entry
            if entry.busy is None:
                break
        return outcome_of(entry, failure)

    async def _advance(self, entry: OutboxEntry, waited: int) -> tuple[OutboxEntry, ChainFailure]:
        """One step towards the result."""
        pending = ChainFailure("pending", "it is not mined yet")
        if entry.state == "intent":
            entry = await self._sign(entry)
        if entry.state == "signed":
            entry = self._current(self._outbox.send(entry), entry)
            if entry.state == "sent":
                entry = await self._broadcast(entry, again=False)
            return entry, pending
        return await self._look(entry, waited) if entry.state == "sent" else (entry, pending)

    def _current(self, changed: OutboxEntry | None, before: OutboxEntry) -> OutboxEntry:
        """The entry after a change; if another process was faster, as that one left it."""
        return changed or self._outbox.get(before.order_id) or before

    async def _sign(self, entry: OutboxEntry) -> OutboxEntry:
        transaction = StoredTransaction.loads(entry.request)
        prepared = await self._source.prepare(entry.order_id, transaction)
        if isinstance(prepared, ChainFailure):
            return self._current(self._outbox.close(entry, "void", None, prepared.message), entry)
        raw, tx_hash = prepared
        if tx_hash:
            transaction = transaction.with_hash(tx_hash)
        coin = self._coin(transaction.nonce)
        signed = self._outbox.sign(entry, transaction.dumps(), raw, "", tx_hash[2:] or None, coin, 0)
        after = self._current(signed, entry)
        if after.state == "intent":
            raise InvariantError(f"nonce {transaction.nonce} was used for another transaction")
        return after

    def _coin(self, nonce: int) -> str:
        """The coin of a nonce; another one if a wallet has refused the transaction that had it."""
        coin = coin_of(self._scope, nonce)
        last = self._outbox.with_coins(self._scope, coin, 1)
        is_free = bool(last) and last[0].state == "void" and nonce_of(last[0]) == nonce
        return next_coin_of(last[0]) if is_free else coin

    async def _broadcast(self, entry: OutboxEntry, again: bool) -> OutboxEntry:
        """Hand the newest version over. A wallet tells the hash, or refuses, only now."""
        transaction = StoredTransaction.loads(entry.request)
        sent = await self._source.broadcast(transaction, entry.tx or b"", again)
        if isinstance(sent, ChainFailure):
            return self._current(self._outbox.close(entry, "void", None, sent.message), entry)
        if sent and not transaction.last.hash:
            self._outbox.amend(entry, transaction.with_hash(sent).dumps(), entry.tx or b"", sent[2:])
        return entry

    async def _look(self, entry: OutboxEntry, waited: int) -> tuple[OutboxEntry, ChainFailure]:
        """Ask the chain about a transaction that may have been sent."""
        transaction = StoredTransaction.loads(entry.request)
        pending = ChainFailure("pending", "it is not mined yet")
        height = await self._node.height()
        for tx_hash in transaction.hashes:
            receipt = await self._node.receipt(tx_hash, self.address)
            if receipt is not None:
                if height - receipt.block_number + 1 < self._settings.confirmations:
                    return entry, ChainFailure("pending", "it is mined and waits for confirmations")
                state = "landed" if receipt.succeeded else "failed"
                outcome = packed_outcome("mined" if receipt.succeeded else "reverted", receipt)
                return self._current(self._outbox.close(entry, state, outcome, ""), entry), pending
        count = await self._node.transaction_count(self.address)
        if count > transaction.nonce:
            return await self._look_at_nonce(entry, transaction, height), pending
        if count < transaction.nonce:  # a reorganisation has undone earlier ones
            await self._send_lost(count)
            return entry, ChainFailure("chain_behind", "the chain has lost earlier transactions; they were sent again")
        last = transaction.last.hash
        if not last or await self._node.transaction(last) is None:
            await self._broadcast(entry, again=True)
            return entry, ChainFailure("dropped", "the node did not have it; it was sent again")
        if waited and waited % self._settings.replace_turns == 0:
            entry = await self._replace(entry, transaction)
        return entry, pending

    async def _look_at_nonce(self, entry: OutboxEntry, transaction: StoredTransaction, height: int) -> OutboxEntry:
        """Find the transaction that used the nonce: ours under a hash that was not stored, or another."""
        user = await self._user_of(transaction, height)
        if user is None:
            return entry
        mined, number = user
        if transaction.is_same(mined):
            if mined.hash in transaction.hashes:
                return entry  # its receipt is not there yet
            last = transaction.last
            amended = transaction.with_version(TxVersion(last.fee, last.priority_fee, mined.hash))
            return self._current(self._outbox.amend(entry, amended.dumps(), entry.tx or b"", mined.hash[2:]), entry)
        if height - number + 1 < self._settings.confirmations:
            return entry
        outcome = packed_outcome("replaced", None, mined.hash)
        note = "another transaction of the account used its nonce"
        return self._current(self._outbox.close(entry, "failed", outcome, note), entry)

    async def _user_of(self, transaction: StoredTransaction, height: int) -> tuple[ChainTransaction, int] | None:
        first = max(0, transaction.from_block - 64)
        newest = min(height, self._scan_from.get(transaction.nonce, height))
        oldest = max(first, newest - MOST_SCANNED_BLOCKS)
        for number in range(newest, oldest - 1, -1):
            for one in await self._node.transactions_in(number):
                if one.sender == self.address and one.nonce == transaction.nonce:
                    self._scan_from = {}
                    return one, number
        self._scan_from = {transaction.nonce: oldest - 1} if oldest > first else {}
        return None

    async def _replace(self, entry: OutboxEntry, transaction: StoredTransaction) -> OutboxEntry:
        """Sign and send the same with higher fees, if settings and signer allow it; else wait on."""
        fee, priority_fee = transaction.last.fee, transaction.last.priority_fee
        for _ in range(4):  # a version may have been signed before a crash and never been stored
            fee, priority_fee = fee * 9 // 8 + 1, priority_fee * 9 // 8 + 1
            if fee > self._settings.max_fee_per_gas_wei or priority_fee > self._settings.max_priority_fee_per_gas_wei:
                return entry
            higher = transaction.with_version(TxVersion(fee, priority_fee))
            prepared = await self._source.prepare(entry.order_id, higher)
            if not isinstance(prepared, ChainFailure):
                raw, tx_hash = prepared
                if not tx_hash:
                    return entry  # a wallet replaces by itself
                amended = self._outbox.amend(entry, higher.with_hash(tx_hash).dumps(), raw, tx_hash[2:])
                if amended is None:
                    return self._current(None, entry)
                await self._broadcast(amended, again=True)
                return amended
        return entry
