"""`RpcChain`: the port on a node and the signing process. `ChainCalls` is what it shares with the wallet: calls and simulation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.signer.client import SignerClient
from pitboss.signer.protocol import SigningRefusal
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.community.chain.abi import EncodedCall, decode_result, encode_call
from pitboss.venues.community.chain.json_rpc import JsonRpcClient, RpcRejection
from pitboss.venues.community.chain.node_reader import MessageCall, NodeReader
from pitboss.venues.community.chain.ports import (
    ChainContract,
    ChainFailure,
    ContractCallResult,
    SimulationResult,
    TxOutcome,
    needs_no_approval,
)
from pitboss.venues.community.chain.stored_transaction import StoredTransaction
from pitboss.venues.community.chain.transaction_sender import SenderSettings, TransactionSender, TransactionSource

SCHEME = "evm_transaction"
GAS_MARGIN_PERCENT = 25
"""Added to the estimate: a contract may take another path by the time it is executed."""


class ChainCalls:
    """Reads, simulates and sends for one account; where signatures come from is the sender's."""

    def __init__(self, node: NodeReader, sender: TransactionSender) -> None:
        self._node = node
        self._sender = sender

    @property
    def chain_id(self) -> int:
        """The chain that is pinned."""
        return self._node.client.chain_id

    @property
    def address(self) -> str:
        """The account that sends, in lower case."""
        return self._sender.address

    async def call(self, contract: ChainContract, function: str, args: Any) -> ContractCallResult:
        """Call a function without a transaction."""
        encoded = encode_call(contract.abi, function, args)
        if not isinstance(encoded, EncodedCall):
            return ContractCallResult(failure=_bad_arguments(encoded))
        result = await self._eth_call(encoded, self._message(contract, encoded, 0))
        return ContractCallResult(failure=result) if isinstance(result, ChainFailure) else ContractCallResult(result)

    async def simulate(self, contract: ChainContract, function: str, args: Any, value_wei: int = 0) -> SimulationResult:
        """Call a function as its transaction would, and estimate its gas. Signs nothing."""
        encoded = encode_call(contract.abi, function, args)
        if not isinstance(encoded, EncodedCall):
            return SimulationResult(failure=_bad_arguments(encoded))
        return await self._simulate(encoded, self._message(contract, encoded, value_wei))

    async def send(
        self,
        request_id: str,
        contract: ChainContract,
        function: str,
        args: Any,
        value_wei: int = 0,
        use_approval: Callable[[], bool] = needs_no_approval,
    ) -> TxOutcome:
        """Execute an intent at most once. The same id continues with the same transaction and is not simulated again."""
        encoded = encode_call(contract.abi, function, args)
        if not isinstance(encoded, EncodedCall):
            return TxOutcome(request_id, "not_sent", failure=_bad_arguments(encoded))
        message = self._message(contract, encoded, value_wei)
        gas = 0
        before = self._sender.outcome(request_id)
        if before is None or before.status == "not_sent":
            simulation = await self._simulate(encoded, message)
            if simulation.failure is not None:
                return TxOutcome(request_id, "not_sent", failure=simulation.failure)
            gas = simulation.gas
        return await self._sender.send(request_id, message, gas, use_approval)

    def outcome(self, request_id: str) -> TxOutcome | None:
        """What is stored about an id; None if nothing was ever signed for it."""
        return self._sender.outcome(request_id)

    async def resume(self) -> tuple[TxOutcome, ...]:
        """Continue with what a process before this one left open."""
        return await self._sender.resume()

    def _message(self, contract: ChainContract, encoded: EncodedCall, value_wei: int) -> MessageCall:
        return MessageCall(self.address, contract.address.lower(), encoded.data, value_wei)

    async def _simulate(self, encoded: EncodedCall, message: MessageCall) -> SimulationResult:
        if message.value and encoded.function.mutability != "payable":
            return SimulationResult(failure=ChainFailure("bad_arguments", "the function takes no value"))
        values = await self._eth_call(encoded, message)
        if isinstance(values, ChainFailure):
            return SimulationResult(failure=values)
        try:
            gas = await self._node.estimate(message)
        except TransientError as error:
            return SimulationResult(failure=ChainFailure("unreachable", str(error)))
        if isinstance(gas, RpcRejection):
            return SimulationResult(failure=ChainFailure("reverted", gas.message))
        return SimulationResult(gas + gas * GAS_MARGIN_PERCENT // 100, values)

    async def _eth_call(self, encoded: EncodedCall, message: MessageCall) -> tuple[Any, ...] | ChainFailure:
        try:
            answer = await self._node.call(message)
        except TransientError as error:
            return ChainFailure("unreachable", str(error))
        if isinstance(answer, RpcRejection):
            return ChainFailure("reverted", answer.message)
        values = decode_result(encoded.function, answer)
        return values if values is not None else ChainFailure("reverted", "it returns nothing of the declared types")


class RpcChain(ChainCalls):
    """The port on a node, with signatures of the signing process. `open` asks that process for its address."""

    @staticmethod
    async def open(
        client: JsonRpcClient,
        signer: SignerClient,
        outbox: StoredOutbox,
        settings: SenderSettings,
        owner: str,
        now: Callable[[], Instant],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> "RpcChain":
        """Connect. Raises `TransientError` if the signer does not answer or signs for another chain."""
        description = await signer.describe()
        if description.chain_id != client.chain_id:
            raise TransientError(f"the signer signs for chain {description.chain_id}, not {client.chain_id}")
        node = NodeReader(client)
        source: TransactionSource = SignedSource(node, signer)
        sender = TransactionSender(node, source, outbox, description.address, settings, owner, now, pause)
        return RpcChain(node, sender)


class SignedSource:
    """Has versions signed by the signing process and hands the bytes to the node."""

    def __init__(self, node: NodeReader, signer: SignerClient) -> None:
        self._node = node
        self._signer = signer

    async def prepare(self, request_id: str, transaction: StoredTransaction) -> tuple[bytes, str] | ChainFailure:
        """Have the newest version signed. A refusal is a value."""
        reply = await self._signer.sign(SCHEME, request_id, transaction.payload())
        if isinstance(reply, SigningRefusal):
            return ChainFailure("signer_refused", f"{reply.code}: {reply.message}")
        return bytes.fromhex(reply.raw[2:]), reply.hash

    async def broadcast(self, transaction: StoredTransaction, raw: bytes, again: bool) -> str:
        """Hand the bytes to the node."""
        del again
        await self._node.broadcast(raw)
        return transaction.last.hash


def _bad_arguments(problems: list[str]) -> ChainFailure:
    return ChainFailure("bad_arguments", "; ".join(problems)[:1_000])
