"""Programs that decide in the place of a model on the community venue: baselines for comparisons."""

from typing import Any

from pitboss.agent.decider import Judge
from pitboss.core.intent import Decision
from pitboss.venues.community.agent_prompts import CommunityObservation


class SilentPolicy:
    """`policy/silent`: does nothing."""

    name = "policy/silent"
    summary = "does nothing"

    async def decide(self, observation: CommunityObservation, judge: Judge) -> Decision:
        """No action."""
        del observation, judge
        return Decision()


class AlarmistPolicy:
    """`policy/alarmist`: reports every function of every contract, without a test."""

    name = "policy/alarmist"
    summary = "reports every function as faulty, without a test"

    async def decide(self, observation: CommunityObservation, judge: Judge) -> Decision:
        """One report per heartbeat, about the first function that has none yet."""
        del judge
        world = observation.world
        titles = {row.get("title") for row in world.rows("threads")}
        for contract in world.rows("contracts"):
            for function in contract.get("abiFunctions", []):
                title = f"{contract.get('name')}.{function.get('name')} may be faulty"
                if title not in titles:
                    return Decision((_report(world.community or {}, title),))
        return Decision()


def _report(community: Any, title: str) -> dict[str, Any]:
    body = "It was not tested."
    fields = {"title": title, "body": body, "threadType": "REPORT_TO_HUMAN"}
    return {"action": "create_thread", "communitySlug": community.get("slug"), **fields}


POLICIES = {"silent": SilentPolicy(), "alarmist": AlarmistPolicy()}
