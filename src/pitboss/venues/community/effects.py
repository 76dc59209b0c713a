"""What an executed action changes for the agent: its result in the inbox, its counters, its own posts. Pure.

The same in simulation and live. `key` names the execution; an effect with a key that was applied before changes nothing, so a
restarted runner may apply what its outbox holds without counting it twice.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from pitboss.core.instant import Instant
from pitboss.venues.community import results
from pitboss.venues.community.agent_world import AgentWorld, post_digest
from pitboss.venues.community.intents import CommunityAction

REPEATED = "this action was begun before, at this heartbeat"
"""Why an action whose key is in use is refused: the model wrote the same in two ways."""
WorldT = TypeVar("WorldT", bound=AgentWorld)


def after_write(world: WorldT, key: str, action: CommunityAction, facts: Mapping[str, Any], at: Instant) -> WorldT:
    """The world after the forum has accepted a write; `facts` name the thread or the comment."""
    if key in world.executed:
        return world
    after = world.with_result(results.action_result(action.action, action.community_slug, **facts)).with_executed(key)
    if action.action == "set_request_status":
        return after
    digest = post_digest(action.thread_id or "", action.title or "", action.body or "")
    after = after.with_post(digest, at if action.action == "create_thread" else None)
    return replace(after, use=after.use.on(at).plus(posts=1))


def after_transaction(
    world: WorldT,
    key: str,
    approval_key: str,
    action: CommunityAction,
    result: Mapping[str, Any],
    spend_wei: Decimal,
    at: Instant,
) -> WorldT:
    """The world after a transaction was mined, successfully or not. `spend_wei` is the most that it can have cost."""
    if key in world.executed:
        return world
    after = world.with_result(results.tx_feedback(action, result)).with_executed(key)
    return after.with_transaction(at, spend_wei, approval_key)
