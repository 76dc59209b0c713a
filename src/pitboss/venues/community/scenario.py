"""A community scenario: a YAML document from which a forum, its participants, contracts and planted bugs are made.

Everything in it is data. Times are lengths of time after the beginning of the run. The same scenario and seed give the same
forum byte for byte; replies of other agents and of the owner come at the times written down.
"""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_duration
from pitboss.venues.community.events import (
    CommentByAgent,
    CommentByOwner,
    CreateThread,
    ForumEvent,
    NewContract,
    RegisterAgent,
    RegisterCommunity,
    SetStatusByOwner,
)
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.paper_contracts import PaperAnswer, PaperContract
from pitboss.venues.community.world import apply

OWNER_WALLET = "0x" + "0" * 39 + "1"
AGENT_ID = "agent"
"""The id of the agent that a run is about."""

Text = Annotated[str, Field(min_length=1, max_length=12_000)]
Short = Annotated[str, Field(min_length=1, max_length=180)]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Handle = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,40}$")]


def _duration(value: str) -> str:
    try:
        parse_duration(value)
    except UserError as error:
        raise PydanticCustomError("duration_type", "{problem}", {"problem": error.message}) from None
    return value


After = Annotated[str, AfterValidator(_duration)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScenarioAnswer(_Part):
    """What a function answers from a number of transactions of its contract on."""

    after: Annotated[int, Field(ge=0)] = 0
    values: tuple[Any, ...] = ()
    revert: str | None = None
    gas: Annotated[int, Field(ge=21_000, le=30_000_000)] = 50_000


class ScenarioContract(_Part):
    """A registered contract and what its functions answer, by full signature."""

    id: Identifier
    name: Short
    address: Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
    chain: Short = "Sepolia"
    abi: tuple[dict[str, Any], ...]
    source: str | None = None
    answers: dict[str, tuple[ScenarioAnswer, ...]] = Field(default_factory=dict)


class ScenarioPost(_Part):
    """A thread or, with `thread`, a comment, at a time after the beginning."""

    id: Identifier
    at: After = "0s"
    author: Handle
    thread: Identifier | None = None
    title: Short | None = None
    body: Text
    type: Literal["DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"] = "DISCUSSION"


class OwnerReply(_Part):
    """How the owner answers requests and reports of the agent: after a while, with a text, and perhaps by rejecting."""

    to: Literal["REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"]
    after: After = "5m"
    body: Text
    reject: bool = False


class PlantedBug(_Part):
    """A fault that a good agent reports. A report is about it if it has a word of every group of `evidence`."""

    id: Identifier
    summary: Short
    evidence: Annotated[tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...], Field(min_length=1)]


class Scenario(_Part):
    """A whole scenario."""

    name: Short
    community: Short
    description: str | None = None
    agent: Handle = "agent"
    contracts: Annotated[tuple[ScenarioContract, ...], Field(min_length=1)]
    posts: tuple[ScenarioPost, ...] = ()
    owner_replies: tuple[OwnerReply, ...] = ()
    bugs: tuple[PlantedBug, ...] = ()

    def paper_contracts(self, chain: str) -> dict[str, PaperContract]:
        """The contracts of a chain by address, as they answer. No contract of another chain is ever called."""
        return {
            contract.address.lower(): PaperContract(
                {
                    signature: tuple(
                        PaperAnswer(answer.after, answer.values, answer.revert, answer.gas)
                        for answer in sorted(answers, key=lambda answer: answer.after)
                    )
                    for signature, answers in contract.answers.items()
                }
            )
            for contract in self.contracts
            if contract.chain == chain
        }

    def owner_reply(self, kind: str) -> OwnerReply | None:
        """How the owner answers threads of a kind."""
        return next((reply for reply in self.owner_replies if reply.to == kind), None)


def read_scenario(document: Any, name: str = "scenario") -> Scenario:
    """Check a scenario document. Every problem is named with its place."""
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc'])) or name}: {each['msg']}" for each in error.errors()[:5]]
        raise UserError(f"{name} is not a valid scenario: {'; '.join(lines)}", "see docs/community.md") from None
    threads = {post.id for post in scenario.posts if post.thread is None}
    for post in scenario.posts:
        if post.thread is not None and post.thread not in threads:
            raise UserError(f"{name}: post {post.id} is about thread {post.thread!r}, which is not there")
        if post.thread is None and post.title is None:
            raise UserError(f"{name}: thread {post.id} has no title")
    ids = [post.id for post in scenario.posts]
    if len(set(ids)) < len(ids):
        raise UserError(f"{name}: two posts have the same id")
    return scenario


def wallet_of(handle: str) -> str:
    """The wallet of a participant, the same in every run."""
    return "0x" + hashlib.sha256(handle.encode()).hexdigest()[:40]


def new_contracts(scenario: Scenario) -> tuple[NewContract, ...]:
    """The contracts of a scenario as they are registered."""
    return tuple(
        NewContract(each.id, each.name, each.address, each.chain, list(each.abi), each.source)
        for each in scenario.contracts
    )


def first_forum(scenario: Scenario, at: Instant) -> Forum:
    """The forum at the beginning: the community with its contracts, and everybody registered."""
    register = RegisterCommunity(
        at,
        OWNER_WALLET,
        "community",
        scenario.community,
        new_contracts(scenario),
        "system",
        "system-comment",
        scenario.description,
    )
    handles = sorted({post.author for post in scenario.posts} - {scenario.agent})
    agents = [(AGENT_ID, scenario.agent), *((f"agent-{handle.lower()}", handle) for handle in handles)]
    events: list[ForumEvent] = [register]
    events += [RegisterAgent(at, wallet_of(handle), id_, "community", handle) for id_, handle in agents]
    return applied(Forum(), events, scenario.name)


def scheduled_events(scenario: Scenario, from_at: Instant) -> list[CreateThread | CommentByAgent]:
    """The posts of the participants as events, in order of time."""
    events: list[CreateThread | CommentByAgent] = []
    for post in scenario.posts:
        at = from_at + parse_duration(post.at)
        author = AGENT_ID if post.author == scenario.agent else f"agent-{post.author.lower()}"
        if post.thread is None:
            events.append(CreateThread(at, author, post.id, "community", post.title or "", post.body, post.type))
        else:
            events.append(CommentByAgent(at, author, post.id, post.thread, post.body))
    return sorted(events, key=lambda event: event.at)


def owner_events(scenario: Scenario, thread_id: str, kind: str, at: Instant) -> list[ForumEvent]:
    """The owner's answer to a new thread of the agent, at the earliest a millisecond after it."""
    reply = scenario.owner_reply(kind)
    if reply is None:
        return []
    then = at + max(1, parse_duration(reply.after))
    comment: list[ForumEvent] = [CommentByOwner(then, OWNER_WALLET, f"{thread_id}-owner", thread_id, reply.body)]
    rejects = reply.reject and kind == "REQUEST_TO_HUMAN"
    return [*comment, SetStatusByOwner(then, OWNER_WALLET, thread_id, "rejected")] if rejects else comment


def applied(forum: Forum, events: Sequence[ForumEvent], name: str) -> Forum:
    """The forum after events that must be accepted, because the scenario says so."""
    for event in events:
        forum, receipts = apply(forum, event)
        if receipts[0].kind == "rejected":
            raise UserError(f"{name}: {type(event).__name__} is refused: {receipts[0].facts['text']}")
    return forum
