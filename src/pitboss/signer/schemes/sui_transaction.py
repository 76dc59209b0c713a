"""The scheme `sui_transaction`: programmable transactions of one account on Sui that call listed functions of one package.

The check covers every byte (`sui/transaction_reader.py`). Value leaves the account in two ways only, both counted: gas, and what is split off
a coin. A coin or an object is handed over to the sender only, and no shared object is changed that the policy does not list: a deposit
cannot go into another account. The bytes do not name their network, so the request does.
"""

import base64
import binascii
from typing import Any, cast

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import (
    COMMAND,
    CONTRACT,
    DAY_COUNT,
    DAY_SPEND,
    FUNCTION,
    GAS,
    ID_CONFLICT,
    MALFORMED,
    NETWORK,
    OBJECT,
    SENDER,
    SigningRefusal,
    refuse,
)
from pitboss.signer.scheme_definition import Reservation, SchemeDefinition
from pitboss.signer.sui.keys import ED25519, address_of, sign_bytes
from pitboss.signer.sui.policy import SCHEME_NAME, SuiPolicy, example_policy
from pitboss.signer.sui.transaction_journal import (
    COINS_NAME,
    COUNT_NAME,
    GAS_NAME,
    TABLES,
    add_transaction,
    day_of,
    is_stored,
    recent_transactions,
    store_signature,
    stored_transaction,
    use_of,
)
from pitboss.signer.sui.transaction_reader import (
    SuiArgument,
    SuiCommand,
    SuiTransaction,
    UnreadableTransaction,
    read_sui_transaction,
)

MOST_BYTES = 32 * 1024


@noun
class SuiRequest:
    """The payload of a request: the network, the bytes, and what they say."""

    network: str
    data: bytes
    transaction: SuiTransaction


class SuiScheme:
    """Checks and signs transactions under one policy."""

    name = SCHEME_NAME
    tables = TABLES

    def __init__(self, policy: SuiPolicy) -> None:
        self.policy = policy
        self._targets = policy.table()
        self._address = ""

    def check_key(self, address: str) -> None:
        """Any key may sign; it signs for itself alone."""
        self._address = address

    def read(self, payload: Any) -> SuiRequest | SigningRefusal:
        """Read the payload of a request."""
        if not isinstance(payload, dict) or set(cast("dict[str, Any]", payload)) != {"network", "tx"}:
            return refuse(MALFORMED, "fields of the payload are missing or unknown")
        fields = cast("dict[str, Any]", payload)
        network, text = fields["network"], fields["tx"]
        if not isinstance(network, str) or not isinstance(text, str) or len(text) > 2 * MOST_BYTES:
            return refuse(MALFORMED, "network or tx is no text in its bounds")
        try:
            data = base64.b64decode(text, validate=True)
            return SuiRequest(network, data, read_sui_transaction(data))
        except UnreadableTransaction as error:
            return refuse(MALFORMED, str(error))
        except (binascii.Error, ValueError):
            return refuse(MALFORMED, "tx is not base64")

    def check(self, content: SuiRequest) -> SigningRefusal | None:
        """Return why the policy forbids a transaction, whatever was signed before; None if it does not."""
        transaction, policy = content.transaction, self.policy
        if content.network != policy.network:
            return refuse(NETWORK)
        if transaction.sender != self._address or transaction.gas_owner != self._address:
            return refuse(SENDER)
        if transaction.gas_budget > policy.caps.gas_budget_mist:
            return refuse(GAS)
        for entry in transaction.inputs:
            if entry.kind == "shared" and entry.mutable and "0x" + entry.value.hex() not in policy.objects:
                return refuse(OBJECT)
        for place, command in enumerate(transaction.commands):
            refusal = self._command_refusal(transaction, place, command)
            if refusal is not None:
                return refusal
        return None

    def _command_refusal(self, transaction: SuiTransaction, place: int, command: SuiCommand) -> SigningRefusal | None:
        kinds = [_argument_kind(transaction, place, argument) for argument in command.arguments]
        if command.kind == "call":
            if command.package != self.policy.package:
                return refuse(CONTRACT)
            target = self._targets.get(command.target)
            if target is None:
                return refuse(FUNCTION)
            if not set(kinds) <= {"pure", "shared", "result"}:
                return refuse(COMMAND, "a coin goes into a call as it is")
            if target.amount_argument is not None and _amount(transaction, command, target.amount_argument) is None:
                return refuse(COMMAND, "the counted argument is no whole number")
            return None
        if command.kind == "transfer":
            recipient = _pure(transaction, command.arguments[-1])
            is_own = recipient is not None and "0x" + recipient.hex() == self._address
            return None if is_own and set(kinds[:-1]) <= {"gas", "owned", "result"} else refuse(COMMAND, "a transfer")
        if kinds[0] != "owned":
            return refuse(COMMAND, "a coin that is not the sender's is split or merged")
        if command.kind == "merge":
            return None if set(kinds) <= {"owned"} else refuse(COMMAND, "a merge")
        amounts = [_amount(transaction, command, index) for index in range(1, len(command.arguments))]
        return refuse(COMMAND, "an amount is no whole number") if None in amounts else None

    def reserve(
        self, journal: SigningJournal, request_id: str, content: SuiRequest, now: Instant
    ) -> Reservation | SigningRefusal:
        """Count a transaction and store its place, or return the place it has; or why it may not be signed."""
        digest, caps = content.transaction.digest, self.policy.caps
        with journal.transaction() as run:
            stored = stored_transaction(run, request_id)
            if stored is not None:
                return Reservation(request_id, content, stored[1]) if stored[0] == digest else refuse(ID_CONFLICT)
            if is_stored(run, digest):
                return refuse(ID_CONFLICT)
            day = day_of(run, now)
            totals = use_of(run, day)
            for name, amount in self._amounts(content.transaction).items():
                totals[name] = totals.get(name, 0) + amount
            if totals[COUNT_NAME] > caps.transactions_per_day:
                return refuse(DAY_COUNT)
            limits = {GAS_NAME: caps.gas_per_day_mist, COINS_NAME: caps.coins_per_day}
            limits |= {name: target.amount_per_day for name, target in self._targets.items()}
            if any(amount > limits[name] for name, amount in totals.items() if name in limits):
                return refuse(DAY_SPEND)
            add_transaction(run, request_id, digest, day, totals, now)
            return Reservation(request_id, content)

    def _amounts(self, transaction: SuiTransaction) -> dict[str, int]:
        """What a transaction uses of a day, by name."""
        amounts = {COUNT_NAME: 1, GAS_NAME: transaction.gas_budget}
        for command in transaction.commands:
            if command.kind == "split":
                name, places = COINS_NAME, range(1, len(command.arguments))
            elif command.kind == "call" and self._targets[command.target].amount_argument is not None:
                name, places = command.target, (self._targets[command.target].amount_argument,)
            else:
                continue
            for place in places:
                amounts[name] = amounts.get(name, 0) + (_amount(transaction, command, cast("int", place)) or 0)
        return amounts

    def sign(self, content: SuiRequest, key: bytes) -> str:
        """Sign. Deterministic: equal bytes have equal signatures."""
        assert address_of(key) == self._address
        return sign_bytes(content.data, key)

    def store(self, journal: SigningJournal, place: Reservation, signed: str) -> None:
        """Store a signature before it leaves the process."""
        store_signature(journal, place.content.transaction.digest, signed)

    def reply(self, place: Reservation, signed: str) -> dict[str, Any]:
        """The signature in the nodes' format."""
        del place
        return {"signature": signed}

    def describe(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The network, the package and what is left of the day."""
        caps = self.policy.caps
        with journal.transaction() as run:
            use = use_of(run, day_of(run, now))
        return {
            "network": self.policy.network,
            "package": self.policy.package,
            "gas_left_mist": caps.gas_per_day_mist - use.get(GAS_NAME, 0),
            "coins_left": caps.coins_per_day - use.get(COINS_NAME, 0),
            "transactions_left": caps.transactions_per_day - use.get(COUNT_NAME, 0),
        }

    def show(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The policy, what is used of the day and the latest transactions."""
        with journal.transaction() as run:
            use, rows = use_of(run, day_of(run, now)), recent_transactions(run, 20)
        return {
            **self.describe(journal, now),
            "caps": self.policy.caps.model_dump(),
            "objects": list(self.policy.objects),
            "targets": [target.model_dump() for target in self.policy.targets],
            "today": use,
            "recent": [{"request_id": row[0], "digest": row[1], "created_at": row[2]} for row in rows],
        }


def _argument_kind(transaction: SuiTransaction, place: int, argument: SuiArgument) -> str:
    """What an argument is: gas, result, or the kind of its input; empty if there is no such thing."""
    if argument.kind == "input":
        return transaction.inputs[argument.place].kind if argument.place < len(transaction.inputs) else ""
    if argument.kind == "result":
        return "result" if argument.place < place else ""
    return argument.kind


def _pure(transaction: SuiTransaction, argument: SuiArgument) -> bytes | None:
    if argument.kind != "input" or argument.place >= len(transaction.inputs):
        return None
    entry = transaction.inputs[argument.place]
    return entry.value if entry.kind == "pure" else None


def _amount(transaction: SuiTransaction, command: SuiCommand, index: int) -> int | None:
    """A whole number (u64) among the arguments of a command."""
    data = _pure(transaction, command.arguments[index]) if index < len(command.arguments) else None
    return int.from_bytes(data, "little") if data is not None and len(data) == 8 else None


SCHEME = SchemeDefinition(SCHEME_NAME, SuiPolicy, SuiScheme, example_policy, ED25519)
