"""An action prepared for the rules: the thread and contract that it names, and the call it would send."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.caps import AgentDayUse, CommunityCaps
from pitboss.venues.community.chain.abi import ContractAbi, EncodedCall, encode_call, read_abi
from pitboss.venues.community.intents import CommunityAction

CommunityScope = Literal["every", "posts", "threads", "statuses", "contracts", "transactions"]
SCOPES: Mapping[str, tuple[CommunityScope, ...]] = {
    "create_thread": ("every", "posts", "threads"),
    "comment": ("every", "posts"),
    "tx": ("every", "contracts", "transactions"),
    "set_request_status": ("every", "statuses"),
    "request_contract_source": ("every", "contracts"),
    "request_thread_comments": ("every",),
}
"""Action → the scopes of the rules that apply to it."""


@noun
class CommunityCase:
    """An action with everything that the rules need."""

    caps: CommunityCaps
    world: AgentWorld
    at: Instant
    action: CommunityAction | None
    problems: Sequence[str]
    use: AgentDayUse
    thread: Mapping[str, Any] | None = None
    contract: Mapping[str, Any] | None = None
    abi: ContractAbi | None = None
    call: EncodedCall | None = None
    call_problems: Sequence[str] = ()
    approval_key: str = ""
    """The key by which a person approves a transaction, at whatever tick it is proposed."""

    @property
    def is_sent(self) -> bool:
        """Whether a transaction would be sent; a call of a read-only function costs nothing."""
        return self.call is not None and not self.call.function.is_read_only

    @property
    def spend_wei(self) -> Decimal:
        """The most that the action can cost on the chain."""
        if self.action is None or not self.is_sent:
            return ZERO
        return Decimal(self.action.value_wei) + self.caps.most_fee_wei


def make_case(
    caps: CommunityCaps,
    world: AgentWorld,
    at: Instant,
    action: CommunityAction | None,
    problems: Sequence[str],
) -> CommunityCase:
    """Look up what an action names."""
    use = world.use.on(at)
    if action is None:
        return CommunityCase(caps, world, at, action, problems, use)
    thread = None if action.thread_id is None else world.thread(action.thread_id)
    contract = world.contract(action.contract_address, action.contract_id, caps.chain)
    abi, call, call_problems = None, None, list[str]()
    if action.action == "tx" and contract is not None:
        abi = read_abi(contract.get("abi"))
        encoded = encode_call(abi, action.function_name or "", list(action.args))
        call, call_problems = (encoded, []) if isinstance(encoded, EncodedCall) else (None, encoded)
    return CommunityCase(caps, world, at, action, problems, use, thread, contract, abi, call, call_problems)
