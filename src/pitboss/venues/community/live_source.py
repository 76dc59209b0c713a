"""The world of a live agent: its community as the forum server shows it, read once for each heartbeat.

It also applies the results of actions that a process before this one, or an unanswered request, left open, and the approvals
that a person has given since.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from pitboss.core.curve import Curve
from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.core.receipt import Receipt
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.community.action_outbox import ActionOutbox, ExecutedAction, IneffectiveAction
from pitboss.venues.community.agent_world import MOST_EXECUTED, AgentWorld
from pitboss.venues.community.context_bounds import bounded_community
from pitboss.venues.community.live_broker import LiveBroker, applied
from pitboss.venues.community.report_sharing import ReportSharing
from pitboss.venues.community.results import refusal_result
from pitboss.venues.community.sns.client import SnsClient


class CommunitySource:
    """Reads the agent's community. A refused credential ends the run: the error of the client passes through."""

    def __init__(
        self,
        client: SnsClient,
        broker: LiveBroker,
        outbox: ActionOutbox,
        every_ms: int,
        comment_limit: int,
        clean: Callable[[Any], Any],
        approved: Callable[[], Sequence[str]],
        equity: str,
        sharing: ReportSharing | None = None,
    ) -> None:
        self._client = client
        self._broker = broker
        self._outbox = outbox
        self._every_ms = every_ms
        self._comment_limit = comment_limit
        self._clean = clean
        self._approved = approved
        self._equity = equity
        self._sharing = sharing
        self._read_slot = -1
        self._recovered: list[ExecutedAction | IneffectiveAction] = []
        self._resolving: asyncio.Task[ExecutedAction | IneffectiveAction | None] | None = None

    def begin(self) -> None:
        """Load the newest results; the stored world names those of them that it includes.

        An action may have got its result long after its tick, so no instant tells which results are missing.
        """
        self._recovered = self._outbox.newest_results(MOST_EXECUTED)

    async def update(self, world: AgentWorld, before: Instant) -> WorldUpdate:
        """Apply recovered results, and read the community if a heartbeat is due."""
        self._collect()
        if self._sharing is not None:
            self._sharing.advance()
        world, receipts = self._with_recovered(world)
        slot = before // self._every_ms
        if slot > self._read_slot:
            world = await self._shown(world)
            self._read_slot = slot
        approved = tuple(self._approved())
        return WorldUpdate(world if world.approved == approved else replace(world, approved=approved), receipts)

    def _collect(self) -> None:
        """Take the result of an open action, and ask again while there is none."""
        task = self._resolving
        if task is not None and task.done():
            self._resolving = None
            with suppress(TransientError):
                result = task.result()
                if result is not None:
                    self._recovered.append(result)
        if self._resolving is None and self._broker.has_open_action:
            self._resolving = asyncio.create_task(self._broker.resolve())

    def _with_recovered(self, world: AgentWorld) -> tuple[AgentWorld, tuple[Receipt, ...]]:
        # An update may be cancelled: what it applied is dropped from the list by a later one, when the world has it.
        self._recovered = [each for each in self._recovered if each.stored.key not in world.executed]
        receipts = list[Receipt]()
        for each in self._recovered:
            if isinstance(each, IneffectiveAction):
                action = each.stored.action
                shown = {"action": action.action, "communitySlug": action.community_slug, "threadId": action.thread_id}
                world = world.with_result(refusal_result(shown, "", each.reason)).with_executed(each.stored.key)
                continue
            if self._sharing is not None:
                self._sharing.add(world, each)
            world, receipt = applied(world, each)
            receipts.append(receipt)
        return world, tuple(receipts)

    async def _shown(self, world: AgentWorld) -> AgentWorld:
        general = self._clean(await self._client.general())
        document = self._clean(await self._client.context(self._comment_limit))
        agent, assigned = _mapping(general.get("agent")), _mapping(general.get("community"))
        communities = document.get("communities")
        rows = [_mapping(row) for row in cast("list[Any]", communities)] if isinstance(communities, list) else []
        community = next((row for row in rows if row.get("id") == assigned.get("id")), None) if assigned else None
        if community is not None:
            community = bounded_community(community, self._comment_limit)
        limits = _mapping(_mapping(document.get("constraints")).get("textLimits"))
        handle = str(agent.get("handle", ""))[:200]
        return replace(world, handle=handle, community=community, text_limits=_whole_numbers(limits))

    def hold_flag(self, world: AgentWorld, at: Instant) -> str:
        """A decision may be made whenever the community could be read."""
        del world, at
        return ""

    def pending(self, world: AgentWorld) -> bool:
        """Whether an action has no result yet, or a report is being shared."""
        del world
        if self._sharing is not None:
            self._sharing.advance()
            if self._sharing.is_busy:
                return True
        return self._broker.has_open_action

    def equity(self, world: AgentWorld, at: Instant, period_ms: int) -> Curve:
        """The agent has no account: always the same."""
        del world
        return ((at, period_ms, self._equity, 1),)

    def trouble(self) -> str:
        """Reads that fail are reported by the driver."""
        return ""

    async def close(self) -> None:
        """Stop asking for open results; the outbox keeps them."""
        if self._resolving is not None:
            self._resolving.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._resolving
        if self._sharing is not None:
            await self._sharing.close()


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _whole_numbers(limits: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Text limits as the rules read them; whatever is no whole number is left out."""
    return {
        str(group): {
            str(name): value for name, value in _mapping(fields).items() if type(value) is int and 0 < value < 2**31
        }
        for group, fields in limits.items()
    }
