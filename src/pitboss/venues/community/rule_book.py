"""The community rules applied to one agent: parsing, selection by action, and the order that an allowed action becomes."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.intent import sealed_intent
from pitboss.core.noun import noun
from pitboss.core.rulebook import Execution, Rule, RuleBook
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.caps import CommunityCaps
from pitboss.venues.community.case import SCOPES, CommunityCase, make_case
from pitboss.venues.community.chain.abi import EncodedCall
from pitboss.venues.community.intents import DECISION, CommunityAction, read_action
from pitboss.venues.community.rules import RULES


@noun
class CommunityOrder:
    """An allowed action as the broker executes it. `key` names it, at its tick, in the outbox and to server and signer."""

    key: str
    action: CommunityAction
    contract_address: str | None = None
    call: EncodedCall | None = None
    spend_wei: Decimal = Decimal(0)
    approval_key: str = ""
    """The key by which a person approves the action (`AgentWorld.approved`)."""


@noun
class CommunityRuleBook(RuleBook):
    """Rules C1 to C18 on one agent at an instant."""

    caps: CommunityCaps
    world: AgentWorld
    at: Instant

    decision = DECISION
    rules = RULES

    def read(self, intent: Any) -> tuple[CommunityAction | None, list[str]]:
        """Read one action of a decision."""
        return read_action(intent)

    def is_hold(self, proposal: CommunityAction) -> bool:
        """Every action does something; to do nothing is an empty list."""
        del proposal
        return False

    def rules_for(self, proposal: CommunityAction | None) -> Sequence[Rule]:
        """The rules whose scope covers the action."""
        if proposal is None:
            return RULES[:1]
        return [rule for rule in RULES if rule.scope in SCOPES[proposal.action]]

    def case(self, proposal: CommunityAction | None, problems: Sequence[str]) -> CommunityCase:
        """Look up what the action names."""
        case = make_case(self.caps, self.world, self.at, proposal, problems)
        if proposal is None or case.call is None:
            return case
        return replace(case, approval_key=approval_key(proposal, case.call))

    def execution(self, case: CommunityCase) -> Execution | None:
        """The action itself, with the call that was checked."""
        if case.action is None:
            return None
        address = None if case.contract is None else str(case.contract.get("address")).lower()
        key = sealed_intent(self.at, action_content(case.action))[0]
        return Execution(CommunityOrder(key, case.action, address, case.call, case.spend_wei, case.approval_key))


def approval_key(action: CommunityAction, call: EncodedCall) -> str:
    """The key by which a person approves a transaction, at whatever tick it is proposed.

    It covers the call data, because a server may change the ABI, and with it what the same words would call.
    """
    return sealed_intent(0, {**action_content(action), "data": call.data})[0]


def action_content(action: CommunityAction) -> dict[str, Any]:
    """An action as JSON values, the same for the same action however it was written."""
    return {
        "action": action.action,
        "community_slug": action.community_slug,
        "thread_id": action.thread_id,
        "title": action.title,
        "body": action.body,
        "thread_kind": action.thread_kind,
        "comment_kind": action.comment_kind,
        "contract_address": None if action.contract_address is None else action.contract_address.lower(),
        "function_name": action.function_name,
        "args": list(action.args),
        "value_wei": str(action.value_wei),
        "status": action.status,
        "contract_id": action.contract_id,
        "comment_limit": action.comment_limit,
    }
