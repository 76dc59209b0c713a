"""Hostile decisions on the way from a model's reply to the broker: nothing outside the allowlist and the limits arrives."""

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from action_auditor import ActionAuditor, transaction_text
from hostile_decisions import ATTACKS, RARE, hostile_reply
from hostile_scenes import ABI, SCENES, SLUG, VAULT, HostileScene

from pitboss.agent.terminal import read_calls, read_text
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.intent import Decision
from pitboss.core.ports import ModelReply
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.engine.execute import Placed
from pitboss.tick import WorldEvents, tick
from pitboss.venues.community import rule_book
from pitboss.venues.community.agent_prompts import CommunityPrompts
from pitboss.venues.community.agent_world import AgentWorld, post_digest
from pitboss.venues.community.chain.abi import EncodedCall, encode_call, read_abi
from pitboss.venues.community.intents import DECISION, read_action
from pitboss.venues.community.ports import CommunityPorts
from pitboss.venues.community.rule_book import CommunityOrder, CommunityRuleBook, approval_key
from pitboss.venues.community.rules import RULES
from pitboss.venues.community.skill import CommunitySkill
from saved_figures import save_figures

STEPS_MS = (60_000, 60_000, 60_000, 3_600_000, 3_600_000, 7_200_000, 20_000_000, -3_600_000)


class ReplyDecider:
    """Reads one reply as the tool loop does."""

    name = "reply"

    def __init__(self) -> None:
        self.reply = ModelReply()
        self.is_text = False

    async def decide(self, observation: Any, judge: Any) -> Decision:
        del observation, judge
        answer = (read_text if self.is_text else read_calls)(self.reply, DECISION)
        return Decision(() if answer.proposal is None else DECISION.intents(answer.proposal))


class RecordingBroker:
    """Executes nothing: records each order, and counts it in the agent's world as brokers do before they send."""

    def __init__(self) -> None:
        self.orders: list[CommunityOrder] = []

    async def submit(self, world: AgentWorld, request: CommunityOrder, at: Instant) -> Placed:
        self.orders.append(request)
        action = request.action
        if action.action in ("create_thread", "comment"):
            digest = post_digest(action.thread_id or "", action.title or "", action.body or "")
            after = world.with_post(digest, at if action.action == "create_thread" else None)
            after = replace(after, use=after.use.on(at).plus(posts=1))
        else:
            is_sent = request.call is not None and not request.call.function.is_read_only
            after = world.with_transaction(at, request.spend_wei, request.approval_key) if is_sent else world
        return Placed(after, (Receipt("accepted", at, facts={"action": action.action}),), request.key[:16])

    async def cancel(self, world: AgentWorld, order_id: str, at: Instant) -> Placed:
        raise AssertionError(f"{order_id} at {at}: nothing is ever cancelled")


class HostileAgent:
    """An agent whose model is hostile, and the auditor of what its broker is given."""

    def __init__(self, scene: HostileScene, seed: int) -> None:
        document = {"name": "auditor", "venue": "community", "model": "a/b", "risk": scene.risk}
        skill = CommunitySkill.model_validate(document)
        self.scene, self.auditor, self.broker, self.decider = (
            scene,
            ActionAuditor(scene),
            RecordingBroker(),
            ReplyDecider(),
        )
        self.ports = CommunityPorts(
            skill, decider=self.decider, broker=self.broker, context=CommunityPrompts(skill), build_prompts=False
        )
        self.chance = Random(f"{scene.name} {seed}")
        self.at = 20_000 * DAY_MS + 3_600_000
        self.state = State(AgentWorld("a1", "alpha", scene.community))

    def approve(self) -> None:
        """A person approves one large transaction."""
        raw = {
            "action": "tx",
            "communitySlug": SLUG,
            "threadId": "t1",
            "contractAddress": VAULT,
            "functionName": "deposit",
        }
        action, _ = read_action({**raw, "args": [], "value": "600"})
        assert action is not None
        call = encode_call(read_abi(ABI), "deposit", [])
        assert isinstance(call, EncodedCall)
        key = approval_key(action, call)
        world: AgentWorld = self.state.world
        self.state = self.state.after(world=replace(world, approved=(*world.approved, key)))
        self.auditor.approved.add(transaction_text(VAULT, "deposit", [], 600))

    async def heartbeat(self, reply: ModelReply, proposed: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
        """One tick. Return the codes of the verdicts and the breaches."""
        self.at += self.chance.choice(STEPS_MS)
        if self.chance.random() < 0.05:
            self.approve()
        self.decider.reply, self.decider.is_text = reply, self.chance.random() < 0.3
        self.broker.orders.clear()
        result = await tick(self.state, self.at, WorldEvents(), self.ports)
        self.state = result.state
        self.auditor.begin(self.at)
        breaches = [breach for order in self.broker.orders for breach in self.auditor.breaches(order, proposed)]
        return [row["code"] or row["outcome"] for row in result.covered["verdicts"]], breaches


async def campaign(
    seed: int, decisions: int, stops_at_breach: bool = False
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Send hostile decisions to agents with different skills and servers. Return attacks, verdicts and breaches, counted."""
    chance, agents = Random(seed), [HostileAgent(scene, seed) for scene in SCENES]
    weights = [4, 3, 3, 3, 3, 4, 1, 1, 1]
    attacks, verdicts, breaches = Counter[str](), Counter[str](), Counter[str]()
    for _ in range(decisions):
        (agent,) = chance.choices(agents, weights)
        reply, actions, names = hostile_reply(chance)
        codes, broken_limits = await agent.heartbeat(reply, actions)
        attacks.update(names or ["none"])
        verdicts.update(codes or ["no action"])
        breaches.update(broken_limits)
        if breaches and stops_at_breach:
            break
    for agent in agents:
        verdicts.update({f"{agent.scene.name}: {name}": count for name, count in agent.auditor.counts.items()})
    return attacks, verdicts, breaches


def test_of_hostile_decisions_none_leads_outside_the_limits() -> None:
    attacks, verdicts, breaches = asyncio.run(campaign(1, 1_500))
    assert breaches == {}
    assert set(ATTACKS) <= set(attacks)
    assert {rule.code for rule in RULES} - {"C18_VENUE"} <= set(verdicts)
    for scene in SCENES:
        is_sending = scene.name not in ("no chain", "closed community", "no community")
        assert (verdicts[f"{scene.name}: sent"] > 0) is is_sending
    assert verdicts["plain: approved"] > 0
    assert verdicts["plain: called"] > 0
    assert verdicts["plain: posted"] > 0


CODES = [rule.code for rule in RULES if rule.code not in ("C1_SHAPE", "C18_VENUE")]


@pytest.mark.parametrize("code", CODES)
def test_without_any_one_rule_the_auditor_finds_a_breach(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = tuple(rule for rule in RULES if rule.code != code)
    monkeypatch.setattr(rule_book, "RULES", without)
    monkeypatch.setattr(CommunityRuleBook, "rules", without)
    assert asyncio.run(campaign(4, 4_000, stops_at_breach=True))[2]


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_of_a_million_hostile_decisions_none_leads_outside_the_limits() -> None:
    attacks, verdicts, breaches = asyncio.run(campaign(3, 1_000_000))
    totals = {name: sum(verdicts[f"{scene.name}: {name}"] for scene in SCENES) for name in ("sent", "called", "posted")}
    rules = {rule.code: verdicts[rule.code] for rule in RULES if verdicts[rule.code]}
    assert breaches == {}
    assert set(ATTACKS) | set(RARE) <= set(attacks)
    save_figures(
        "hostile decisions of a community agent",
        {"decisions": 1_000_000, "breaches": 0, **totals, "refused": rules, "attacks": attacks},
    )
