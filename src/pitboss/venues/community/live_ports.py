"""The ports of a live agent: as in simulation, and a transaction that needs a person's approval is put before one."""

from dataclasses import KW_ONLY, replace
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.store.approval_requests import ApprovalRequests
from pitboss.venues.community.approval_content import approval_content
from pitboss.venues.community.ports import CommunityPorts
from pitboss.venues.community.rules import c17_approval

VENUE_NAME = "community"
MOST_WAITING = 10
"""Requests of one run that may wait for a person: an agent that does what strangers say must not flood them."""
TOO_MANY = "a person has to approve it, and is not asked: too many other requests wait"


@noun
class LivePorts(CommunityPorts):
    """The ports of a live agent. A transaction that needs a person's approval is put before one."""

    _: KW_ONLY
    approvals: ApprovalRequests
    run_id: str

    def with_verdict(self, state: State, intent: Any, verdict: Verdict) -> State:
        """Ask for an approval where the rule about it refused, and tell the agent what became of the action."""
        if verdict.code == c17_approval.CODE and not verdict.duplicate:
            book = self.rule_book(None, state, state.tick_at or 0)
            case = book.case(*book.read(intent))
            waiting = {request.key for request in self.approvals.listing(run_id=self.run_id)}
            if len(waiting) >= MOST_WAITING and case.approval_key not in waiting:
                verdict = replace(verdict, detail=TOO_MANY)
            elif case.approval_key:
                content = approval_content(case)
                self.approvals.ask(case.approval_key, self.run_id, VENUE_NAME, state.world.agent_id, content)
        return CommunityPorts.with_verdict(self, state, intent, verdict)
