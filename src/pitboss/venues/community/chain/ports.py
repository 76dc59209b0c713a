"""`EvmChain`: the port through which the runner and the rules use contracts, and its values.

Failures are values with stable codes. Nothing here says how transactions are signed or how nodes are asked.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from pitboss.core.noun import noun
from pitboss.venues.community.chain.abi import ContractAbi

FailureCode = Literal[
    "bad_arguments",
    "reverted",
    "unreachable",
    "signer_refused",
    "busy",
    "nonce_mismatch",
    "chain_behind",
    "id_conflict",
    "too_expensive",
    "pending",
    "dropped",
    "not_approved",
]
TxStatus = Literal["mined", "reverted", "replaced", "dropped", "unknown", "not_sent"]
"""The first three are final. `dropped` and `unknown` are open: the nonce stays reserved, and asking again with the same id
continues with the same transaction. `not_sent`: nothing was signed and sent for this id."""


@noun
class ChainFailure:
    """Why something was not done or is not known."""

    code: FailureCode
    message: str


@noun
class ChainContract:
    """A contract that may be called. `address` is in lower case."""

    address: str
    abi: ContractAbi


@noun
class ContractCallResult:
    """The values that a read-only call returned, or why there are none."""

    values: tuple[Any, ...] = ()
    failure: ChainFailure | None = None


@noun
class SimulationResult:
    """What a transaction would do now: its gas and returned values, or why it would fail."""

    gas: int = 0
    values: tuple[Any, ...] = ()
    failure: ChainFailure | None = None


@noun
class TxOutcome:
    """What is known of the transaction of one intent."""

    request_id: str
    status: TxStatus
    hash: str = ""
    nonce: int | None = None
    block_number: int | None = None
    gas_used: int | None = None
    failure: ChainFailure | None = None
    max_fee_wei_per_gas: int | None = None
    """The most that a unit of gas can have cost: the limit that was signed."""

    @property
    def is_final(self) -> bool:
        """Whether the chain has decided."""
        return self.status in ("mined", "reverted", "replaced")


def needs_no_approval() -> bool:
    """The answer for a transaction that needs no approval of a person."""
    return True


class EvmChain(Protocol):
    """One account on one chain. `send` executes an intent at most once, whatever fails.

    It asks `use_approval` once, when nothing else prevents that the transaction is signed.
    """

    @property
    def chain_id(self) -> int: ...
    @property
    def address(self) -> str: ...
    async def call(self, contract: ChainContract, function: str, args: Any) -> ContractCallResult: ...
    async def simulate(
        self, contract: ChainContract, function: str, args: Any, value_wei: int = 0
    ) -> SimulationResult: ...
    async def send(
        self,
        request_id: str,
        contract: ChainContract,
        function: str,
        args: Any,
        value_wei: int = 0,
        use_approval: Callable[[], bool] = needs_no_approval,
    ) -> TxOutcome: ...
    def outcome(self, request_id: str) -> TxOutcome | None: ...
    async def resume(self) -> tuple[TxOutcome, ...]: ...
