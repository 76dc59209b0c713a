"""`WalletChain`: the port on a wallet behind JSON-RPC that holds the key itself (`eth_sendTransaction`).

The nonce is given with the transaction, but a wallet may choose another one. So it is asked once for each intent, and a lost
answer stays `unknown` until the transaction is found on the chain by its nonce. An error object ends the intent only where it says that
nothing was sent; after any other the transaction may be on its way.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable

from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.community.chain.json_rpc import JsonRpcClient, RpcRejection
from pitboss.venues.community.chain.node_reader import NodeReader
from pitboss.venues.community.chain.ports import ChainFailure
from pitboss.venues.community.chain.rpc_chain import ChainCalls
from pitboss.venues.community.chain.stored_transaction import StoredTransaction
from pitboss.venues.community.chain.transaction_sender import SenderSettings, TransactionSender, TransactionSource

REFUSALS = frozenset({4001, 4100, 4200, -32600, -32601, -32602})
"""Codes with which nothing is sent: rejected by the user, not authorised, not supported (EIP-1193); a request that is not valid."""
REFUSAL_TEXTS = ("rejected", "denied", "insufficient funds", "reverted")
"""What the texts of errors with other codes hold where nothing is sent."""
_HASH = re.compile(r"0x[0-9a-f]{64}")


class WalletChain(ChainCalls):
    """The port on a wallet."""

    def __init__(
        self,
        client: JsonRpcClient,
        address: str,
        outbox: StoredOutbox,
        settings: SenderSettings,
        owner: str,
        now: Callable[[], Instant],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        node = NodeReader(client)
        source: TransactionSource = WalletSource(node)
        super().__init__(node, TransactionSender(node, source, outbox, address.lower(), settings, owner, now, pause))


class WalletSource:
    """Has the wallet sign and send."""

    def __init__(self, node: NodeReader) -> None:
        self._node = node

    async def prepare(self, request_id: str, transaction: StoredTransaction) -> tuple[bytes, str] | ChainFailure:
        """Nothing is signed in advance: the wallet signs when it sends."""
        del request_id, transaction
        return b"", ""

    async def broadcast(self, transaction: StoredTransaction, raw: bytes, again: bool) -> str | ChainFailure:
        """Have the wallet send the transaction, and check that it is the one that was asked for. A refusal is a value."""
        del raw
        if again:
            return ""
        await self._node.client.check_chain()
        fees = {
            "gas": hex(transaction.gas),
            "nonce": hex(transaction.nonce),
            "chainId": hex(transaction.chain_id),
            "maxFeePerGas": hex(transaction.last.fee),
            "maxPriorityFeePerGas": hex(transaction.last.priority_fee),
        }
        answer = await self._node.client.ask("eth_sendTransaction", [{**transaction.call.params(), **fees}])
        if isinstance(answer, RpcRejection):
            text = answer.message.lower()
            if answer.code in REFUSALS or any(words in text for words in REFUSAL_TEXTS):
                return ChainFailure("signer_refused", f"refused by the wallet: {answer.message[:200]}")
            return ""
        if not isinstance(answer, str) or not _HASH.fullmatch(answer):
            raise TransientError("the wallet's answer is no hash")
        sent = await self._node.transaction(answer)
        if sent is None or not transaction.is_same(sent):
            raise TransientError("the wallet names another transaction than the one it was asked to send")
        return answer
