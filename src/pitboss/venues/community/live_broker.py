"""Executes the actions of a live agent: writes on the forum server, reads, and calls and transactions on the chain.

A write or transaction goes through the outbox. If its result is not known after some attempts it stays open, the agent is told
so, and `resolve` asks again; until then nothing else is executed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Broker, Placed
from pitboss.venues.community import results
from pitboss.venues.community.action_outbox import (
    ActionOutbox,
    ExecutedAction,
    IneffectiveAction,
    OpenAction,
    StoredAction,
    StoredResult,
    stored_action,
)
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.caps import CommunityCaps
from pitboss.venues.community.chain.abi import read_abi
from pitboss.venues.community.chain.ports import ChainContract, ChainFailure, EvmChain, TxOutcome
from pitboss.venues.community.effects import after_transaction, after_write
from pitboss.venues.community.intents import CommunityAction
from pitboss.venues.community.rule_book import CommunityOrder
from pitboss.venues.community.score import BY_AGENT, REPORTED
from pitboss.venues.community.sns.client import SnsClient, SnsRefused, SnsUnavailable
from pitboss.venues.community.source_cache import SourceCache

ATTEMPTS = 3
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
RESEND_MS = 12 * HOUR_MS
"""How long after its tick a write is sent again. The server recognises its key for a day."""
NO_CHAIN = "no Ethereum node is configured, so contracts are not called"
OPEN = "its result is not known yet; you will be told it, and nothing else is done until then"
UNCOUNTED = "the result of an earlier action has just arrived; you will be told it at the next heartbeat"
FORGOTTEN = "it is not known whether the forum has it"


class LiveBroker(Broker):
    """The broker of one agent. `use_approval` consumes a person's approval; `executed` is called with every executed action."""

    def __init__(
        self,
        client: SnsClient,
        chain: EvmChain | None,
        outbox: ActionOutbox,
        caps: CommunityCaps,
        comment_limit: int,
        clean: Callable[[Any], Any],
        now: Callable[[], Instant],
        use_approval: Callable[[str], bool],
        executed: Callable[[AgentWorld, ExecutedAction], None] = lambda world, executed: None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._chain = chain
        self._outbox = outbox
        self._caps = caps
        self._comment_limit = comment_limit
        self._clean = clean
        self._now = now
        self._use_approval = use_approval
        self._executed = executed
        self._pause = pause
        self._sources = SourceCache()
        self._resolved_key = ""
        """The action whose result came last from `resolve`, until a world includes it."""

    async def submit(self, world: AgentWorld, request: CommunityOrder, at: Instant) -> Placed:
        """Execute an allowed action."""
        action = request.action
        if action.action == "request_contract_source":
            return _read(world, action, await self._source(world, action), at)
        if action.action == "request_thread_comments":
            return _read(world, action, await self._comments(action), at)
        if action.action == "tx" and request.call is not None and request.call.function.is_read_only:
            return await self._call(world, request, at)
        return await self._write(world, request, at)

    # Reads ----------------------------------------------------------------------------------------------------------

    async def _source(self, world: AgentWorld, action: CommunityAction) -> dict[str, Any]:
        row = world.contract(action.contract_address, action.contract_id, self._caps.chain)
        if row is None:
            return results.source_feedback(action, None, None, False, "Contract not found")
        source = self._sources.get(row)
        if source is not None:
            return results.source_feedback(action, row, source, True)
        try:
            reply = await self._client.contract_source(contract_id=str(row.get("id")))
        except (SnsRefused, SnsUnavailable) as error:
            return results.source_feedback(action, row, None, False, self._reason(error))
        source = self._clean(reply.get("source"))
        self._sources.put(row, source)
        return results.source_feedback(action, row, source, False)

    async def _comments(self, action: CommunityAction) -> dict[str, Any]:
        limit = self._comment_limit if action.comment_limit is None else action.comment_limit
        try:
            reply = self._clean(await self._client.thread_comments(action.thread_id or "", limit))
        except (SnsRefused, SnsUnavailable) as error:
            return results.comments_feedback(action, limit, error=self._reason(error))
        comments = reply.get("comments")
        rows = [row for row in comments if isinstance(row, dict)] if isinstance(comments, list) else []
        thread = reply.get("thread")
        return results.comments_feedback(action, limit, thread if isinstance(thread, dict) else {}, rows)

    async def _call(self, world: AgentWorld, order: CommunityOrder, at: Instant) -> Placed:
        if self._chain is None:
            return Placed(world, refusal=NO_CHAIN)
        contract = self._contract(world, order)
        answer = await self._chain.call(contract, order.action.function_name or "", list(order.action.args))
        if answer.failure is not None:
            result: dict[str, Any] = {"error": answer.failure.message[: results.MAX_ERROR_CHARS]}
        else:
            result = results.call_result(order.action, answer.values)
        return _read(world, order.action, results.tx_feedback(order.action, self._clean(result)), at)

    # Writes and transactions ----------------------------------------------------------------------------------------

    async def _write(self, world: AgentWorld, order: CommunityOrder, at: Instant) -> Placed:
        action = order.action
        if action.action == "tx" and self._chain is None:
            return Placed(world, refusal=NO_CHAIN)
        if self._resolved_key in world.executed:
            self._resolved_key = ""
        if self._resolved_key:  # the limits were judged without it
            return Placed(world, refusal=UNCOUNTED)
        community_id = str((world.community or {}).get("id", ""))
        open_action = self._outbox.begin(stored_action(order, community_id), at)
        if isinstance(open_action, str):
            return Placed(world, refusal=open_action)
        executed = await (self._send(world, order, open_action) if action.action == "tx" else self._post(open_action))
        if isinstance(executed, str):
            if executed != OPEN:
                self._outbox.fail(open_action, executed)
            return Placed(world, refusal=executed)
        after, receipt = applied(world, executed)
        self._executed(world, executed)
        return Placed(after, (receipt,), receipt.order_id)

    def _contract(self, world: AgentWorld, order: CommunityOrder) -> ChainContract:
        row = world.contract(order.contract_address, None, self._caps.chain) or {}
        return ChainContract((order.contract_address or "").lower(), read_abi(row.get("abi")))

    def _use_approval_of(self, order: CommunityOrder) -> bool:
        """Consume the approval of a transaction that needs one. False if there is none."""
        limit = self._caps.approval_above_wei
        return limit is None or order.action.value_wei <= limit or self._use_approval(order.approval_key)

    async def _post(self, open_action: OpenAction, was_sent: bool = False) -> ExecutedAction | str:
        """Send a write until its answer is known, a few times. A text says why there is no result.

        `was_sent` says that it was sent before. Then a refused credential does not tell what became of it.
        """
        pause_s = FIRST_PAUSE_S
        for attempt in range(ATTEMPTS):
            try:
                facts = await self._send_write(open_action.stored)
            except SnsRefused as error:
                return OPEN if was_sent and error.status == 401 else self._reason(error)
            except SnsUnavailable as error:
                was_sent = True
                if attempt + 1 < ATTEMPTS:
                    await self._pause(min(error.retry_after_s or pause_s, LONGEST_PAUSE_S))
                    pause_s *= 2
                continue
            return self._outbox.succeed(open_action, StoredResult("write", facts))
        return OPEN

    async def _send_write(self, stored: StoredAction) -> dict[str, Any]:
        action = stored.action
        if action.action == "create_thread":
            row = await self._client.create_thread(
                stored.community_id,
                action.title or "",
                action.body or "",
                action.thread_kind or "DISCUSSION",
                stored.key,
            )
            return {"thread_id": str(row.get("id"))}
        if action.action == "comment":
            kind = action.comment_kind or "DISCUSSION"
            row = await self._client.create_comment(action.thread_id or "", action.body or "", kind, stored.key)
            return {"thread_id": action.thread_id, "comment_id": str(row.get("id"))}
        await self._client.set_request_status(action.thread_id or "", action.status or "pending", stored.key)
        return {"thread_id": action.thread_id, "status": action.status}

    async def _send(self, world: AgentWorld, order: CommunityOrder, open_action: OpenAction) -> ExecutedAction | str:
        assert self._chain is not None
        action = order.action
        outcome = await self._chain.send(
            open_action.transaction_id,
            self._contract(world, order),
            action.function_name or "",
            list(action.args),
            action.value_wei,
            lambda: self._use_approval_of(order),
        )
        return self._finish_transaction(open_action, outcome)

    def _finish_transaction(self, open_action: OpenAction, outcome: TxOutcome) -> ExecutedAction | str:
        if outcome.status in ("mined", "reverted"):
            result = results.transaction_result(
                open_action.stored.action,
                outcome.hash,
                outcome.status == "mined",
                outcome.gas_used,
                outcome.block_number,
            )
            fees = (outcome.gas_used or 0) * (outcome.max_fee_wei_per_gas or 0)
            cost = Decimal(open_action.stored.action.value_wei * (outcome.status == "mined") + fees)
            return self._outbox.succeed(open_action, StoredResult("transaction", result, cost))
        if outcome.status == "replaced":
            return "another transaction of the account took its place"
        if outcome.status != "not_sent":
            return OPEN
        return "it was not sent" if outcome.failure is None else self._failure_text(outcome.failure)

    def _failure_text(self, failure: ChainFailure) -> str:
        return str(self._clean(f"{failure.code}: {failure.message}"))[: results.MAX_ERROR_CHARS]

    # After a restart, or a lost answer ------------------------------------------------------------------------------

    async def resolve(self) -> ExecutedAction | IneffectiveAction | None:
        """Ask for the result of the open action; None if there is no open action, or still no result."""
        open_action = self._outbox.open_action()
        if open_action is None:
            return None
        executed = await self._ask_again(open_action)
        if executed == OPEN:
            return None
        self._resolved_key = open_action.stored.key
        return self._outbox.cancel(open_action, executed) if isinstance(executed, str) else executed

    async def _ask_again(self, open_action: OpenAction) -> ExecutedAction | str:
        if open_action.stored.action.action != "tx":
            is_late = self._now() - open_action.entry.tick_at > RESEND_MS
            return FORGOTTEN if is_late else await self._post(open_action, was_sent=True)
        if self._chain is None:
            return OPEN
        await self._chain.resume()
        outcome = self._chain.outcome(open_action.transaction_id)
        return self._finish_transaction(open_action, outcome or TxOutcome(open_action.transaction_id, "not_sent"))

    @property
    def has_open_action(self) -> bool:
        """Whether an action was begun and has no result."""
        return self._outbox.open_action() is not None

    def _reason(self, error: SnsRefused | SnsUnavailable) -> str:
        text = error.text if isinstance(error, SnsRefused) else str(error)
        return str(self._clean(text))[: results.MAX_ERROR_CHARS]


def applied(world: AgentWorld, executed: ExecutedAction) -> tuple[AgentWorld, Receipt]:
    """The world after an executed action, and its receipt. Applied a second time it changes nothing."""
    stored, action, facts = executed.stored, executed.stored.action, dict(executed.result.facts)
    order_id = stored.key[:16]
    if executed.result.kind == "write":
        after = after_write(world, stored.key, action, facts, executed.at)
        if action.thread_kind == "REPORT_TO_HUMAN":
            facts |= {REPORTED: "", BY_AGENT: 1}
        return after, Receipt("accepted", executed.at, "", order_id, {**facts, "action": action.action})
    after = after_transaction(world, stored.key, stored.approval_key, action, facts, stored.spend_wei, executed.at)
    shown = {"function": stored.function, "hash": facts.get("hash"), "status": facts.get("status")}
    amounts = {"value_wei": Decimal(action.value_wei), "cost_wei": executed.result.cost_wei}
    receipt_facts = {"action": "tx", **shown, **amounts}
    return after, Receipt("filled", executed.at, stored.contract_address.lower(), order_id, receipt_facts)


def _read(world: AgentWorld, action: CommunityAction, feedback: dict[str, Any], at: Instant) -> Placed:
    return Placed(world.with_result(feedback), (Receipt("accepted", at, facts={"action": action.action}),))
