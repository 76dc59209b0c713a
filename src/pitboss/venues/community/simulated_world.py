"""The world of a scenario: the whole forum beside what the agent sees of it, and what actions do to both. Pure.

`advance` lets the participants and the owner act up to an instant; `place` executes an allowed action of the agent at once and
puts its result into the inbox, in the forms that the live broker uses.
"""

import hashlib
from bisect import insort
from collections.abc import Mapping
from dataclasses import field, replace
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Placed
from pitboss.venues.community import results
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.context_document import context_document
from pitboss.venues.community.effects import REPEATED, after_transaction, after_write
from pitboss.venues.community.events import CommentByAgent, CreateThread, ForumEvent, SetStatusByAgent
from pitboss.venues.community.forum import Forum, newest_first
from pitboss.venues.community.intents import CommunityAction
from pitboss.venues.community.paper_contracts import PaperAnswer, PaperContract
from pitboss.venues.community.rule_book import CommunityOrder
from pitboss.venues.community.scenario import AGENT_ID, Scenario, first_forum, owner_events, scheduled_events
from pitboss.venues.community.score import report_facts
from pitboss.venues.community.wire import listed_comment
from pitboss.venues.community.world import apply

WEI_PER_GAS = Decimal(1_000_000_000)
"""What gas costs in a scenario."""


@noun
class SimulatedWorld(AgentWorld):
    """The forum itself, and how many transactions each contract has seen."""

    forum: Forum = Forum()
    transactions: Mapping[str, int] = field(default_factory=dict[str, int])
    seen_until: Instant = 0
    """Events before this instant have been applied."""


def first_world(scenario: Scenario, at: Instant, comment_limit: int) -> SimulatedWorld:
    """The world before the first tick."""
    forum = first_forum(scenario, at)
    return _shown(SimulatedWorld(AGENT_ID, scenario.agent, forum=forum, seen_until=at), comment_limit)


def advance(
    world: SimulatedWorld, scenario: Scenario, from_at: Instant, until: Instant, comment_limit: int
) -> tuple[SimulatedWorld, tuple[Receipt, ...]]:
    """Apply what the participants and the owner do before an instant. A refused event gives a receipt, too."""
    events = [event for event in scheduled_events(scenario, from_at) if world.seen_until <= event.at < until]
    events += [event for event in _answers(world, scenario) if world.seen_until <= event.at < until]
    events.sort(key=lambda each: each.at)
    forum, receipts = world.forum, list[Receipt]()
    for event in events:  # the loop also reaches answers that are inserted behind the present event
        forum, (receipt,) = apply(forum, event)
        if receipt.kind == "accepted" and isinstance(event, CreateThread):
            if event.kind == "REPORT_TO_HUMAN":
                facts = report_facts(scenario, event.title, event.body, event.agent_id == AGENT_ID)
                receipt = replace(receipt, facts={**receipt.facts, **facts})
            if event.agent_id == AGENT_ID:
                for answer in owner_events(scenario, event.thread_id, event.kind, event.at):
                    if answer.at < until:
                        insort(events, answer, key=lambda each: each.at)
        receipts.append(receipt)
    after = replace(world, forum=forum, seen_until=max(until, world.seen_until))
    return (_shown(after, comment_limit) if receipts else after), tuple(receipts)


def _answers(world: SimulatedWorld, scenario: Scenario) -> list[ForumEvent]:
    """The owner's answers to every thread of the agent so far, whenever they come."""
    threads = [thread for thread in world.forum.threads.values() if thread.agent_id == AGENT_ID]
    return [event for thread in threads for event in owner_events(scenario, thread.id, thread.kind, thread.created_at)]


def _shown(world: SimulatedWorld, comment_limit: int) -> SimulatedWorld:
    """The world with the context document of its forum."""
    document = context_document(world.forum, AGENT_ID, comment_limit, with_status=True)
    communities = document["communities"]
    limits = document["constraints"]["textLimits"]
    return replace(world, community=communities[0] if communities else None, text_limits=limits)


def place(
    world: SimulatedWorld, scenario: Scenario, order: CommunityOrder, at: Instant, comment_limit: int, chain: str
) -> Placed:
    """Execute an allowed action; what the forum refuses is a refusal. `chain` is that of the skill."""
    action = order.action
    if order.key in world.executed:
        return Placed(world, refusal=REPEATED)
    if action.action == "tx":
        return _call(world, scenario.paper_contracts(chain), order, at)
    if action.action == "request_contract_source":
        return _read(world, action, at, _source(world, action, chain))
    if action.action == "request_thread_comments":
        return _read(world, action, at, _comments(world, action, comment_limit))
    event = _event(order, at)
    forum, (receipt,) = apply(world.forum, event)
    if receipt.kind == "rejected":
        return Placed(world, refusal=str(receipt.facts["text"]))
    after = _shown(replace(world, forum=forum), comment_limit)
    facts = {name: value for name, value in receipt.facts.items() if name != "event"}
    after = after_write(after, order.key, action, facts, at)
    facts["action"] = action.action
    if action.thread_kind == "REPORT_TO_HUMAN":
        facts |= report_facts(scenario, action.title or "", action.body or "", True)
    return Placed(after, (replace(receipt, order_id=order.key[:16], facts=facts),), order.key[:16])


def _event(order: CommunityOrder, at: Instant) -> CreateThread | CommentByAgent | SetStatusByAgent:
    action, new_id = order.action, order.key[:24]
    if action.action == "create_thread":
        return CreateThread(
            at, AGENT_ID, new_id, "community", action.title or "", action.body or "", action.thread_kind or "DISCUSSION"
        )
    if action.action == "comment":
        kind = action.comment_kind or "DISCUSSION"
        return CommentByAgent(at, AGENT_ID, new_id, action.thread_id or "", action.body or "", kind)
    return SetStatusByAgent(at, AGENT_ID, action.thread_id or "", action.status or "pending")


def _read(world: SimulatedWorld, action: CommunityAction, at: Instant, feedback: dict[str, object]) -> Placed:
    receipt = Receipt("accepted", at, facts={"action": action.action})
    return Placed(world.with_result(feedback), (receipt,))


def _source(world: SimulatedWorld, action: CommunityAction, chain: str) -> dict[str, object]:
    row = world.contract(action.contract_address, action.contract_id, chain)
    contract = None if row is None else world.forum.contracts.get(str(row.get("id")))
    error = "" if contract is not None else "Contract not found"
    return results.source_feedback(action, row, None if contract is None else contract.source, False, error)


def _comments(world: SimulatedWorld, action: CommunityAction, comment_limit: int) -> dict[str, object]:
    limit = comment_limit if action.comment_limit is None else action.comment_limit
    comments = [row for row in world.forum.comments.values() if row.thread_id == action.thread_id]
    shown = [listed_comment(world.forum, row) for row in newest_first(comments) if row.kind == "DISCUSSION"][:limit]
    thread = world.thread(action.thread_id or "") or {}
    fields = {name: thread.get(name) for name in ("id", "title", "type", "createdAt")}
    return results.comments_feedback(action, limit, fields, shown)


def _call(world: SimulatedWorld, contracts: Mapping[str, PaperContract], order: CommunityOrder, at: Instant) -> Placed:
    """Answer a call as the scenario says; a transaction counts and costs gas, also if it is reverted."""
    action, call = order.action, order.call
    assert call is not None  # the rules refuse an action without one
    address = (order.contract_address or "").lower()
    count = world.transactions.get(address, 0)
    answer = contracts[address].answer(call.function.signature, count) if address in contracts else PaperAnswer()
    if call.function.is_read_only:
        result = {"error": answer.revert} if answer.revert is not None else results.call_result(action, answer.values)
        return _read(world, action, at, results.tx_feedback(action, result))
    if answer.revert is not None:  # found by the simulation that comes first, so nothing is sent
        return Placed(world, refusal=f"the call would be reverted: {answer.revert}"[: results.MAX_ERROR_CHARS])
    tx_hash = "0x" + hashlib.sha256(order.key.encode()).hexdigest()
    spend = Decimal(action.value_wei) + answer.gas * WEI_PER_GAS
    transactions = {**world.transactions, address: count + 1}
    result = results.transaction_result(action, tx_hash, True, answer.gas, sum(transactions.values()))
    after = replace(world, transactions=transactions)
    receipt = Receipt(
        "filled",
        at,
        address,
        order.key[:16],
        {
            "action": "tx",
            "function": call.function.signature,
            "hash": tx_hash,
            "value_wei": Decimal(action.value_wei),
            "cost_wei": spend,
        },
    )
    return Placed(
        after_transaction(after, order.key, order.approval_key, action, result, order.spend_wei, at),
        (receipt,),
        order.key[:16],
    )
