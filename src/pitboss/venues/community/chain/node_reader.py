"""`NodeReader`: what a node says about one account, read strictly and compared with itself.

A receipt counts only if it is of the transaction that was asked for and the block of its number has its hash and lists the
transaction. A node that lies in all answers alike cannot be found out by one client; the sender is built so that such lies
delay, and never cause a second transaction.
"""

import re
from typing import Any, cast

from pitboss.core.errors import TransientError
from pitboss.core.noun import noun
from pitboss.venues.community.chain.json_rpc import JsonRpcClient, RpcRejection

GWEI = 10**9
BUSY = frozenset({-32002, -32005, 429})
"""Codes of errors that say nothing about a call: a resource that is not available, a limit of requests (EIP-1474)."""
_QUANTITY = re.compile(r"0x(?:0|[1-9a-f][0-9a-f]{0,63})")
_HASH = re.compile(r"0x[0-9a-f]{64}")


@noun
class TxReceipt:
    """A receipt that agrees with the chain."""

    hash: str
    block_number: int
    succeeded: bool
    gas_used: int


@noun
class ChainTransaction:
    """A transaction in a block or in the pool of the node. Addresses and data are in lower case."""

    hash: str
    sender: str
    to: str
    nonce: int
    value: int
    data: str


@noun
class MessageCall:
    """What a call or transaction does, without its fees. `data` is hexadecimal with 0x."""

    sender: str
    to: str
    data: str
    value: int = 0

    def params(self) -> dict[str, str]:
        """The call as nodes take it."""
        return {"from": self.sender, "to": self.to, "data": self.data, "value": hex(self.value)}


class NodeReader:
    """Reads one node. Every method raises `TransientError` if there is no answer that can be used."""

    def __init__(self, client: JsonRpcClient) -> None:
        self.client = client

    async def height(self) -> int:
        """The number of the newest block."""
        return _quantity(await self._result("eth_blockNumber"))

    async def transaction_count(self, address: str, block: str = "latest") -> int:
        """How many transactions of an account the chain has executed: its next nonce."""
        return _quantity(await self._result("eth_getTransactionCount", address, block))

    async def balance(self, address: str) -> int:
        """What an account holds, in wei."""
        return _quantity(await self._result("eth_getBalance", address, "latest"))

    async def fees(self) -> tuple[int, int]:
        """The base fee of the newest block, and the priority fee that the node suggests, per gas."""
        block = _object(await self._result("eth_getBlockByNumber", "latest", False))
        base_fee = _quantity(block.get("baseFeePerGas"))
        answer = await self.client.ask("eth_maxPriorityFeePerGas", [])
        priority = GWEI if isinstance(answer, RpcRejection) else _quantity(answer)
        return base_fee, priority

    async def call(self, call: MessageCall) -> str | RpcRejection:
        """The bytes that a call returns, as hexadecimal text, or why the node refuses it."""
        answer = await self._execution("eth_call", call.params(), "latest")
        if isinstance(answer, RpcRejection):
            return answer
        if not isinstance(answer, str) or not re.fullmatch(r"0x[0-9a-fA-F]*", answer):
            raise TransientError("the node's answer to a call cannot be read")
        return answer

    async def estimate(self, call: MessageCall) -> int | RpcRejection:
        """The gas that a transaction would use, or why the node refuses it."""
        answer = await self._execution("eth_estimateGas", call.params())
        return answer if isinstance(answer, RpcRejection) else _quantity(answer)

    async def broadcast(self, raw: bytes) -> None:
        """Hand signed bytes to the node. Its answer is not used: only the chain tells what became of them."""
        await self.client.ask("eth_sendRawTransaction", ["0x" + raw.hex()])

    async def receipt(self, tx_hash: str, sender: str) -> TxReceipt | None:
        """The receipt of a transaction, or None if it has none."""
        answer = await self._result("eth_getTransactionReceipt", tx_hash)
        if answer is None:
            return None
        fields = _object(answer)
        number, block_hash = _quantity(fields.get("blockNumber")), fields.get("blockHash")
        if fields.get("transactionHash") != tx_hash or str(fields.get("from")).lower() != sender:
            raise TransientError("the node sends the receipt of another transaction")
        status = fields.get("status")
        if status not in ("0x0", "0x1"):
            raise TransientError("the node sends a receipt without a status")
        block = await self._result("eth_getBlockByNumber", hex(number), False)
        if block is None or _object(block).get("hash") != block_hash or _number_of(block) != number:
            raise TransientError("the node's receipt is not of the chain that it shows")
        if tx_hash not in (_object(block).get("transactions") or []):
            raise TransientError("the block of the node's receipt does not list the transaction")
        return TxReceipt(tx_hash, number, status == "0x1", _quantity(fields.get("gasUsed")))

    async def transaction(self, tx_hash: str) -> ChainTransaction | None:
        """A transaction that the node has in a block or in its pool."""
        answer = await self._result("eth_getTransactionByHash", tx_hash)
        if answer is None:
            return None
        transaction = _transaction(answer)
        if transaction.hash != tx_hash:
            raise TransientError("the node sends another transaction")
        return transaction

    async def transactions_in(self, number: int) -> tuple[ChainTransaction, ...]:
        """All transactions of a block; none if there is no such block."""
        answer = await self._result("eth_getBlockByNumber", hex(number), True)
        if answer is None:
            return ()
        if _number_of(answer) != number or not isinstance(_object(answer).get("transactions"), list):
            raise TransientError("the node sends another block")
        return tuple(_transaction(one) for one in _object(answer)["transactions"])

    async def _execution(self, method: str, *params: object) -> Any:
        """What the node answers when it has executed a call; an error object says why the call fails."""
        answer = await self.client.ask(method, params)
        if isinstance(answer, RpcRejection) and answer.code in BUSY:
            raise TransientError(f"the node limits its requests: {answer.message}")
        return answer

    async def _result(self, method: str, *params: object) -> Any:
        answer = await self.client.ask(method, params)
        if isinstance(answer, RpcRejection):
            raise TransientError(f"the node refuses {method}")
        return answer


def _quantity(value: Any) -> int:
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise TransientError("the node's answer is not a number")
    return int(value, 16)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TransientError("the node's answer is not an object")
    return cast("dict[str, Any]", value)


def _number_of(block: Any) -> int:
    return _quantity(_object(block).get("number"))


def _transaction(value: Any) -> ChainTransaction:
    fields = _object(value)
    tx_hash = fields.get("hash")
    if not isinstance(tx_hash, str) or not _HASH.fullmatch(tx_hash):
        raise TransientError("the node's answer has no hash")
    return ChainTransaction(
        tx_hash,
        str(fields.get("from")).lower(),
        str(fields.get("to")).lower(),
        _quantity(fields.get("nonce")),
        _quantity(fields.get("value")),
        str(fields.get("input")).lower(),
    )
