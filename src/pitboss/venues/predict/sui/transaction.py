"""Builds transactions of the predict protocol, generation 1 (branch 4-16). The same input always gives the same bytes.

`pysui` does the encoding; it takes seconds to import, so it is imported on first use. This module makes no requests and
handles no secrets. Package and objects are parameters (`ProtocolObjects`); no id is built in.

A mint on this chain has no maximum price. The limit is enforced through the manager: in the same transaction, the
balance beyond the promised spend is withdrawn before the mint and deposited after it (`keep`). The mint therefore has
no more than the promised spend available, however the price has moved, and aborts if that is too little.
"""

import hashlib
from functools import cache
from types import SimpleNamespace
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.sui.chain import CLOCK, Coin, Shared, TransactionBasis, base58

U64 = 2**64


@noun
class ProtocolObjects:
    """Package, objects and manager of the protocol, all from the settings."""

    package: str
    predict: str
    manager: str
    quote_type: str


@noun
class ContractCall:
    """One mint or redeem of a binary contract, in the protocol's units."""

    action: str
    oracle: str
    expiry_at: Instant
    strike: int
    is_up: bool
    quantity: int
    keep: int = 0
    """Quote units withdrawn from the manager during a mint."""


@noun
class Fee:
    """Gas payment of a transaction: payer, coin, maximum amount, and the last epoch in which it may be executed."""

    sender: str
    coin: Coin
    budget: int
    price: int
    last_epoch: int


@cache
def library() -> Any:
    """Import the parts of pysui used here."""
    try:
        from pysui.sui.sui_bcs import bcs
        from pysui.sui.sui_common.txn_pure import PureInput
        from pysui.sui.sui_common.txn_transaction_builder import ProgrammableTransactionBuilder
    except ImportError as error:
        raise UserError(
            f"writing to Sui needs the package {error.name or 'pysui'}, which is not installed",
            "pip install 'pitboss[sui]'",
        ) from None
    return SimpleNamespace(bcs=bcs, Builder=ProgrammableTransactionBuilder, Pure=PureInput)


class _Draft:
    """A transaction under construction."""

    def __init__(self, objects: ProtocolObjects, basis: TransactionBasis) -> None:
        self._lib = library()
        self._bcs = self._lib.bcs
        self._builder = self._lib.Builder()
        self._protocol = objects
        self._basis = basis
        self._inputs: dict[str, Any] = {}

    def object(self, object_id: str, mutable: bool) -> Any:
        """Return the input for a shared object; repeated calls return the same input."""
        if object_id not in self._inputs:
            shared: Shared = self._basis.shared[object_id]
            address = self._bcs.Address.from_str(object_id)
            argument = self._bcs.ObjectArg(
                "SharedObject", self._bcs.SharedObjectReference(address, shared.initial_version, mutable)
            )
            self._inputs[object_id] = self._builder.input_obj(self._bcs.BuilderArg("Object", address), argument)
        return self._inputs[object_id]

    def pure(self, value: Any) -> Any:
        return self._builder.input_pure(self._lib.Pure.as_input(value))

    def u64(self, value: int) -> Any:
        # A bare int would be encoded in as few bytes as it needs, which the chain reads as a different number.
        if not 0 <= value < U64:
            raise UserError(f"{value} does not fit into the chain's numbers")
        return self.pure(self._bcs.SuiU64(value))

    def id(self, text: str) -> Any:
        return self.pure(self._bcs.Address.from_str(text))

    def call(self, module: str, function: str, arguments: list[Any], quoted: bool = True) -> Any:
        type_arguments = [self._bcs.TypeTag.type_tag_from(self._protocol.quote_type)] if quoted else []
        return self._builder.move_call(
            target=self._bcs.Address.from_str(self._protocol.package),
            arguments=arguments,
            type_arguments=type_arguments,
            module=module,
            function=function,
        )

    def owned(self, coin: Coin) -> Any:
        """Return the input for a coin of the sender."""
        bcs = self._bcs
        address = bcs.Address.from_str(coin.id)
        reference = bcs.ObjectReference(address, coin.version, bcs.Digest.from_str(coin.digest))
        return self._builder.input_obj(bcs.BuilderArg("Object", address), bcs.ObjectArg("ImmOrOwnedObject", reference))

    def split(self, coins: list[Any], amount: int) -> Any:
        """Merge coins into the first and split an amount off it."""
        if coins[1:]:
            self._builder.merge_coins(to_coin=coins[0], from_coins=coins[1:])
        return self._builder.split_coin(from_coin=coins[0], amounts=[self.u64(amount)])

    def return_gas_coin(self, owner: str) -> None:
        """Transfer the gas coin to its owner, with no effect other than the use of its version."""
        gas = self._bcs.Argument("GasCoin")
        self._builder.transfer_objects(recipient=self.id(owner), object_ref=gas)

    def bytes(self, fee: Fee) -> bytes:
        bcs = self._bcs
        coin = bcs.ObjectReference(
            bcs.Address.from_str(fee.coin.id), fee.coin.version, bcs.Digest.from_str(fee.coin.digest)
        )
        sender = bcs.Address.from_str(fee.sender)
        data = bcs.TransactionDataV1(
            self._builder.finish_for_inspect(),
            sender,
            bcs.GasData([coin], sender, fee.price, fee.budget),
            bcs.TransactionExpiration("Epoch", fee.last_epoch),
        )
        return bytes(bcs.TransactionData("V1", data).serialize())


def objects_of(objects: ProtocolObjects, oracle: str | None = None) -> tuple[str, ...]:
    """Return the ids of the shared objects that a transaction uses."""
    return (objects.predict, objects.manager, CLOCK) + (() if oracle is None else (oracle,))


def build(
    objects: ProtocolObjects, basis: TransactionBasis, call: ContractCall, fee: Fee, with_balance: bool = False
) -> bytes:
    """Build a mint or a redeem. `with_balance` adds a read of the manager's balance, for simulation only."""
    draft = _Draft(objects, basis)
    manager = draft.object(objects.manager, True)
    if with_balance:
        draft.call("predict_manager", "balance", [manager])
    withdrawn = None
    if call.keep:
        withdrawn = draft.call("predict_manager", "withdraw", [manager, draft.u64(call.keep)])
    key = draft.call(
        "market_key",
        "new",
        [draft.id(call.oracle), draft.u64(call.expiry_at), draft.u64(call.strike), draft.pure(call.is_up)],
        quoted=False,
    )
    draft.call(
        "predict",
        call.action,
        [
            draft.object(objects.predict, True),
            manager,
            draft.object(call.oracle, False),
            key,
            draft.u64(call.quantity),
            draft.object(CLOCK, False),
        ],
    )
    if withdrawn is not None:
        draft.call("predict_manager", "deposit", [manager, withdrawn])
    return draft.bytes(fee)


def build_balance_read(objects: ProtocolObjects, basis: TransactionBasis, fee: Fee) -> bytes:
    """Build a read of the manager's balance, for simulation only."""
    draft = _Draft(objects, basis)
    draft.call("predict_manager", "balance", [draft.object(objects.manager, False)])
    return draft.bytes(fee)


def build_create_manager(objects: ProtocolObjects, basis: TransactionBasis, fee: Fee) -> bytes:
    """Build the creation of a PredictManager, which belongs to the sender."""
    draft = _Draft(objects, basis)
    draft.call("predict", "create_manager", [], quoted=False)
    return draft.bytes(fee)


def build_deposit(
    objects: ProtocolObjects, basis: TransactionBasis, coins: tuple[Coin, ...], amount: int, fee: Fee
) -> bytes:
    """Build a deposit of an amount of these quote coins into the manager; the rest stays with the sender."""
    draft = _Draft(objects, basis)
    payment = draft.split([draft.owned(coin) for coin in coins], amount)
    draft.call("predict_manager", "deposit", [draft.object(objects.manager, True), payment])
    return draft.bytes(fee)


def build_fence(objects: ProtocolObjects, basis: TransactionBasis, fee: Fee) -> bytes:
    """Build a transaction whose only effect is to consume one version of a coin, so that another can never be executed."""
    draft = _Draft(objects, basis)
    draft.return_gas_coin(fee.sender)
    return draft.bytes(fee)


def digest_of(tx: bytes) -> str:
    """Return the digest of a transaction: a hash of the signed bytes, in the chain's notation."""
    return base58(hashlib.blake2b(b"TransactionData::" + tx, digest_size=32).digest())
