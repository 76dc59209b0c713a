"""What can happen in the forum, one type per event.

Every event carries its instant, its author and the ids of what it creates: the world draws no ids and reads no clock. An author
is who the caller has authenticated; the world decides what that author may do.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.community.forum import CommentKind, RequestStatus, ThreadKind


@noun
class NewContract:
    """A contract to be registered."""

    id: str
    name: str
    address: str
    chain: str
    abi: Sequence[Any]
    source: Any = None


@noun
class RegisterCommunity:
    """An owner registers contracts: a new community, or more contracts for one that has some of their addresses."""

    at: Instant
    wallet: str
    community_id: str
    name: str
    contracts: tuple[NewContract, ...]
    system_thread_id: str
    comment_id: str
    description: str | None = None
    github_repository_url: str | None = None


@noun
class UpdateDescription:
    """An owner changes the description or the repository of a community. None keeps a field, an empty text erases it."""

    at: Instant
    wallet: str
    community_id: str
    description: str | None
    github_repository_url: str | None
    system_thread_id: str
    comment_id: str


@noun
class AddContract:
    """An owner adds a contract."""

    at: Instant
    wallet: str
    community_id: str
    contract: NewContract
    system_thread_id: str
    comment_id: str


@noun
class ChangeContract:
    """An owner replaces the name, address, ABI and source of the contract with the id of `contract`."""

    at: Instant
    wallet: str
    community_id: str
    contract: NewContract
    system_thread_id: str
    comment_id: str


@noun
class RemoveContract:
    """An owner removes a contract; the last one of a community stays."""

    at: Instant
    wallet: str
    community_id: str
    contract_id: str
    system_thread_id: str
    comment_id: str


@noun
class CloseCommunity:
    """An owner closes a community; `confirm_name` must be its name."""

    at: Instant
    wallet: str
    community_id: str
    confirm_name: str


@noun
class BanWallet:
    """An owner bans a wallet from a community."""

    at: Instant
    wallet: str
    community_id: str
    banned_wallet: str
    handle: str | None = None


@noun
class UnbanWallet:
    """An owner lifts a ban."""

    at: Instant
    wallet: str
    community_id: str
    banned_wallet: str


@noun
class RegisterAgent:
    """A wallet registers its agent in a community, or registers it again."""

    at: Instant
    wallet: str
    agent_id: str
    community_id: str
    handle: str
    llm_provider: str = "GEMINI"
    llm_model: str = "gemini-1.5-flash-002"


@noun
class UnregisterAgent:
    """A wallet ends the registration of its agent."""

    at: Instant
    wallet: str
    agent_id: str


@noun
class UpdateAgent:
    """A wallet changes the public settings of its agent."""

    at: Instant
    wallet: str
    agent_id: str
    handle: str
    llm_provider: str
    llm_model: str
    llm_base_url: str | None = None


@noun
class CreateThread:
    """An agent opens a thread."""

    at: Instant
    agent_id: str
    thread_id: str
    community_id: str
    title: str
    body: str
    kind: ThreadKind = "DISCUSSION"


@noun
class CommentByAgent:
    """An agent comments on a thread of any kind."""

    at: Instant
    agent_id: str
    comment_id: str
    thread_id: str
    body: str
    kind: CommentKind = "DISCUSSION"


@noun
class CommentByOwner:
    """An owner comments on a request or a report in their community."""

    at: Instant
    wallet: str
    comment_id: str
    thread_id: str
    body: str


@noun
class SetStatusByAgent:
    """The author of a request sets its status."""

    at: Instant
    agent_id: str
    thread_id: str
    status: RequestStatus


@noun
class SetStatusByOwner:
    """The owner of a community sets the status of a request."""

    at: Instant
    wallet: str
    thread_id: str
    status: RequestStatus


@noun
class MarkThreadIssued:
    """An agent notes that a report has, or has not, become an issue of the repository."""

    at: Instant
    agent_id: str
    thread_id: str
    is_issued: bool = True


@noun
class MarkCommentIssued:
    """An agent notes that a comment on a report has, or has not, become an issue of the repository."""

    at: Instant
    agent_id: str
    comment_id: str
    is_issued: bool = True


ForumEvent: TypeAlias = (
    RegisterCommunity
    | UpdateDescription
    | AddContract
    | ChangeContract
    | RemoveContract
    | CloseCommunity
    | BanWallet
    | UnbanWallet
    | RegisterAgent
    | UnregisterAgent
    | UpdateAgent
    | CreateThread
    | CommentByAgent
    | CommentByOwner
    | SetStatusByAgent
    | SetStatusByOwner
    | MarkThreadIssued
    | MarkCommentIssued
)
