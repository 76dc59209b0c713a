"""`EmbeddedEvmNode`: an EVM chain in this process (eth-tester on py-evm) that answers JSON-RPC, for tests and the demo.

It adds what eth-tester lacks: a pool of waiting transactions with replacement by fee, blocks that are mined on demand, and
reorganisations. It is not a node of a network: there are no peers, and nothing is stored.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import rlp
from eth_account import Account
from eth_tester import EthereumTester, PyEVMBackend
from eth_tester.exceptions import BlockNotFound, TransactionFailed, ValidationError
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError as EvmValidationError

from pitboss.core.noun import noun

# A library of the node raises the limit so far that deeply nested JSON overflows the stack of the process.
sys.setrecursionlimit(1_000)

GWEI = 10**9
_BLOCK_GAS = 20_000_000


@noun
class PooledTransaction:
    """A transaction that waits to be mined."""

    sender: str
    nonce: int
    fee: int
    raw: str
    hash: str


class RpcProblem(Exception):
    """A JSON-RPC error: the code and text that the caller gets."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class EmbeddedEvmNode:
    """A chain with funded accounts. With `auto_mine` every accepted transaction is in a block of its own at once."""

    def __init__(self, auto_mine: bool = True) -> None:
        self._tester: Any = EthereumTester(PyEVMBackend(), auto_mine_transactions=False)
        self._keys: dict[str, bytes] = {
            str(key.public_key.to_checksum_address()).lower(): key.to_bytes()
            for key in self._tester.backend.account_keys
        }
        self._forks = 0
        self._raws: dict[str, str] = {}
        self._mined: set[str] = set()  # eth-tester looks through all blocks for a hash that it does not have
        self.chain_id: int = self._tester.backend.chain.chain_id
        self.auto_mine = auto_mine
        self.pool: dict[tuple[str, int], PooledTransaction] = {}

    @property
    def accounts(self) -> list[str]:
        """The funded accounts, in lower case; the node signs for them in `eth_sendTransaction`."""
        return list(self._keys)

    def answer(self, body: bytes) -> bytes:
        """Answer one JSON-RPC request."""
        request = json.loads(body)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        try:
            method = self._methods().get(request.get("method"))
            if method is None:
                raise RpcProblem(-32601, "the method does not exist")
            reply["result"] = method(*request.get("params", []))
        except RpcProblem as problem:
            reply["error"] = problem.error
        except (TypeError, ValueError, KeyError) as error:
            reply["error"] = {"code": -32602, "message": f"invalid parameters: {error}"[:300]}
        return json.dumps(reply).encode()

    def _methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "eth_chainId": lambda: hex(self.chain_id),
            "eth_blockNumber": lambda: hex(self.height()),
            "eth_accounts": lambda: self.accounts,
            "eth_getBalance": lambda address, _="latest": hex(self._tester.get_balance(_checked(address))),
            "eth_getCode": lambda address, _="latest": self._tester.get_code(_checked(address)),
            "eth_getTransactionCount": self._count,
            "eth_getBlockByNumber": self._block,
            "eth_maxPriorityFeePerGas": lambda: hex(GWEI),
            "eth_call": self._call,
            "eth_estimateGas": self._estimate,
            "eth_sendRawTransaction": self._send_raw,
            "eth_sendTransaction": self._send,
            "eth_getTransactionByHash": self._transaction,
            "eth_getTransactionReceipt": self._receipt,
        }

    def height(self) -> int:
        """The number of the newest block."""
        return int(self._tester.get_block_by_number("latest")["number"])

    def mine(self, blocks: int = 1) -> None:
        """Mine blocks. The first takes what the pool holds and can be executed."""
        for _ in range(blocks):
            self._take_from_pool()
            block = self._tester.get_block_by_hash(self._tester.mine_block())
            self._mined.update(block["transactions"])

    def reorganise(self, depth: int, keep: bool = True) -> None:
        """Replace the newest blocks by others and one more. `keep` puts their transactions back into the pool."""
        depth = min(depth, self.height())
        if depth < 1:
            return
        height = self.height()
        undone = [
            self._raw_of(tx)
            for number in range(height - depth + 1, height + 1)
            for tx in self._tester.get_block_by_number(number, full_transactions=True)["transactions"]
        ]
        base = self._tester.get_block_by_number(height - depth)
        self._tester.backend.revert_to_snapshot(bytes.fromhex(base["hash"][2:]))
        self._forks += 1
        for _ in range(depth + 1):
            self._tester.mine_block(coinbase="0x" + self._forks.to_bytes(20, "big").hex())
        for pooled in undone:
            self._mined.discard(pooled.hash)
            if keep:
                self.pool.setdefault((pooled.sender, pooled.nonce), pooled)

    def drop_pool(self) -> None:
        """Forget every waiting transaction, as nodes do that restart or run full."""
        self.pool.clear()

    def _raw_of(self, tx: Any) -> PooledTransaction:
        raw = self._raws[tx["hash"]]
        return PooledTransaction(tx["from"].lower(), tx["nonce"], tx["max_fee_per_gas"], raw, tx["hash"])

    def _take_from_pool(self) -> None:
        for key in sorted(self.pool, key=lambda one: one[1]):
            pooled = self.pool[key]
            count = self._tester.get_nonce(_checked(pooled.sender), "pending")
            if pooled.nonce > count:
                continue  # waits for those before it
            del self.pool[key]
            if pooled.nonce == count:
                try:
                    self._tester.send_raw_transaction(pooled.raw)
                except (ValidationError, EvmValidationError, TransactionFailed):
                    continue  # cannot be paid any more

    def _count(self, address: str, block: str = "latest") -> str:
        count = int(self._tester.get_nonce(_checked(address), "latest"))
        while block == "pending" and (address.lower(), count) in self.pool:
            count += 1
        return hex(count)

    def _block(self, number: str, whole: bool = False) -> Any:
        try:
            wanted = number if number in ("latest", "pending") else int(number, 16)
            block = self._tester.get_block_by_number(wanted, full_transactions=whole)
        except BlockNotFound:
            return None
        transactions = [_transaction_of(tx) if whole else tx for tx in block["transactions"]]
        return {
            "number": hex(block["number"]),
            "hash": block["hash"],
            "parentHash": block["parent_hash"],
            "timestamp": hex(block["timestamp"]),
            "baseFeePerGas": hex(block["base_fee_per_gas"]),
            "transactions": transactions,
        }

    def _message(self, call: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {
            "from": _checked(call.get("from") or self.accounts[-1]),
            "gas": _BLOCK_GAS,
            "gas_price": 0,
        }
        if call.get("to"):
            message["to"] = _checked(call["to"])
        message["data"] = call.get("data") or "0x"
        message["value"] = int(call.get("value", "0x0"), 16)
        return message

    def _call(self, call: dict[str, Any], block: str = "latest") -> str:
        del block
        return self._try(lambda: self._tester.call({**self._message(call), "gas_price": 10 * GWEI, "gas": 5_000_000}))

    def _estimate(self, call: dict[str, Any], block: str = "latest") -> str:
        del block
        message = {**self._message(call), "gas_price": 10 * GWEI, "gas": 5_000_000}
        return hex(self._try(lambda: self._tester.estimate_gas(message)))

    def _try(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except TransactionFailed as error:
            raise RpcProblem(3, f"execution reverted: {error}"[:300]) from None
        except (ValidationError, EvmValidationError) as error:
            raise RpcProblem(-32000, f"rejected: {error}"[:300]) from None

    def _send_raw(self, raw: str) -> str:
        data = bytes.fromhex(raw[2:])
        try:
            sender = str(Account.recover_transaction(data)).lower()
            fields: Any = rlp.decode(data[1:])
        except Exception:  # noqa: BLE001  whatever the libraries raise, the bytes are no transaction
            raise RpcProblem(-32000, "the transaction cannot be decoded") from None
        chain_id, nonce, _, fee = (int.from_bytes(field, "big") for field in fields[:4])
        if data[0] != 2 or chain_id != self.chain_id:
            raise RpcProblem(-32000, "invalid chain id for signer")
        tx_hash = "0x" + keccak(data).hex()
        if nonce < self._tester.get_nonce(_checked(sender), "latest"):
            raise RpcProblem(-32000, "nonce too low")
        other = self.pool.get((sender, nonce))
        if other is not None and other.hash == tx_hash:
            raise RpcProblem(-32000, "already known")
        if other is not None and 10 * fee < 11 * other.fee:
            raise RpcProblem(-32000, "replacement transaction underpriced")
        self._raws[tx_hash] = raw
        self.pool[sender, nonce] = PooledTransaction(sender, nonce, fee, raw, tx_hash)
        if self.auto_mine:
            self.mine()
        return tx_hash

    def _send(self, call: dict[str, Any]) -> str:
        sender = str(call.get("from", "")).lower()
        key = self._keys.get(sender)
        if key is None:
            raise RpcProblem(-32000, "unknown account")
        nonce = call.get("nonce") or self._count(sender, "pending")
        fields: dict[str, Any] = {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": int(nonce, 16),
            "value": int(call.get("value", "0x0"), 16),
            "data": call.get("data") or "0x",
            "gas": int(call.get("gas", "0x4c4b40"), 16),
            "maxFeePerGas": int(call.get("maxFeePerGas", hex(10 * GWEI)), 16),
            "maxPriorityFeePerGas": int(call.get("maxPriorityFeePerGas", hex(GWEI)), 16),
        }
        if call.get("to"):
            fields["to"] = _checked(call["to"])
        signed: Any = Account.sign_transaction(fields, key)
        return self._send_raw("0x" + bytes(signed.raw_transaction).hex())

    def _transaction(self, tx_hash: str) -> Any:
        pooled = next((one for one in self.pool.values() if one.hash == tx_hash), None)
        if pooled is not None:
            fields: Any = rlp.decode(bytes.fromhex(pooled.raw[4:]))
            return {
                "hash": tx_hash,
                "from": pooled.sender,
                "to": "0x" + fields[5].hex(),
                "nonce": hex(pooled.nonce),
                "value": hex(int.from_bytes(fields[6], "big")),
                "input": "0x" + fields[7].hex(),
                "blockNumber": None,
            }
        return _transaction_of(self._tester.get_transaction_by_hash(tx_hash)) if tx_hash in self._mined else None

    def _receipt(self, tx_hash: str) -> Any:
        if tx_hash not in self._mined:
            return None
        receipt = self._tester.get_transaction_receipt(tx_hash)
        return {
            "transactionHash": receipt["transaction_hash"],
            "blockHash": receipt["block_hash"],
            "blockNumber": hex(receipt["block_number"]),
            "from": receipt["from"],
            "to": receipt["to"] or None,
            "contractAddress": receipt["contract_address"],
            "status": hex(receipt["status"]),
            "gasUsed": hex(receipt["gas_used"]),
        }


def _checked(address: str) -> str:
    return to_checksum_address(address)


def _transaction_of(tx: Any) -> dict[str, Any]:
    return {
        "hash": tx["hash"],
        "from": tx["from"],
        "to": tx["to"] or None,
        "nonce": hex(tx["nonce"]),
        "value": hex(tx["value"]),
        "input": tx["data"],
        "blockNumber": None if tx["block_number"] is None else hex(tx["block_number"]),
    }
