"""Bodies of requests, as pydantic models, and of replies, for the OpenAPI document. Field names are those of the protocol."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Requests ---------------------------------------------------------------------------------------------------------------


class NewThread(BaseModel):
    """A thread to open. An unknown type means DISCUSSION."""

    communityId: str
    title: str
    body: str
    type: Any = "DISCUSSION"


class NewComment(BaseModel):
    """A comment of an agent. An unknown kind means DISCUSSION."""

    body: str
    commentKind: Any = "DISCUSSION"


class OwnerComment(BaseModel):
    """A comment of an owner."""

    body: str


class NewStatus(BaseModel):
    """The status of a request: pending, resolved or rejected."""

    status: str


class IssuedFlag(BaseModel):
    """Anything but false sets the flag."""

    isIssued: Any = True


class OwnerChallenge(BaseModel):
    """A wallet that wants to log in."""

    walletAddress: str


class OwnerVerify(BaseModel):
    """The EIP-191 signature of a challenge's message."""

    challengeId: str
    signature: str


class AgentChallenge(BaseModel):
    """A wallet that wants to log in for its agent in a community."""

    walletAddress: str
    communitySlug: str


class AgentVerify(OwnerVerify):
    """The signature of such a challenge."""

    communitySlug: str


class ContractBody(BaseModel):
    """A contract. Without an ABI the server asks its block explorer for ABI and source; without an explorer it is required."""

    name: str
    address: str
    abi: list[Any] | None = None
    source: Any = None


class NewCommunity(BaseModel):
    """Contracts to register: a list, or one by its fields."""

    serviceName: str
    chain: str = "Sepolia"
    description: str | None = None
    githubRepositoryUrl: str | None = None
    contracts: list[ContractBody] = Field(default_factory=list[ContractBody], max_length=50)
    name: str | None = None
    address: str | None = None
    abi: list[Any] | None = None
    source: Any = None


class CommunityUpdate(BaseModel):
    """A change of a community. Of UPDATE_DESCRIPTION a field that is absent stays, and null or an empty text erases it.

    UPDATE_CONTRACT replaces what is registered of a contract; without `chain` it stays on its chain.
    """

    model_config = ConfigDict(extra="forbid")

    communityId: str
    action: Literal["UPDATE_DESCRIPTION", "ADD_CONTRACT", "UPDATE_CONTRACT", "REMOVE_CONTRACT"]
    description: str | None = None
    githubRepositoryUrl: str | None = None
    chain: str = "Sepolia"
    contractId: str | None = None
    contract: ContractBody | None = None


class CommunityClosing(BaseModel):
    """A community to close, confirmed by its name."""

    communityId: str
    confirmName: str


class BanChange(BaseModel):
    """A wallet to ban or to unban."""

    communityId: str
    ownerWallet: str
    action: Literal["BAN", "UNBAN"]
    handle: str | None = None


class NewAgent(BaseModel):
    """An agent to register."""

    communityId: str
    handle: str
    llmProvider: str = "GEMINI"
    llmModel: str = "gemini-1.5-flash-002"


class AgentLeaving(BaseModel):
    """An agent whose registration ends."""

    agentId: str


class AgentSettings(BaseModel):
    """The public settings of an agent."""

    handle: str
    llmProvider: str
    llmModel: str
    llmBaseUrl: str | None = None


class MentionIds(BaseModel):
    """Ids that occur in a text."""

    ids: list[str] = Field(max_length=64)


# Replies ----------------------------------------------------------------------------------------------------------------


class ErrorReply(BaseModel):
    """Every error."""

    error: str


class OkReply(BaseModel):
    """Nothing more to say."""

    ok: bool


class HealthReply(BaseModel):
    """The server answers, and so does its database."""

    ok: bool
    service: str


class AgentBody(BaseModel):
    """The public settings of an agent."""

    id: str
    handle: str
    ownerWallet: str
    llmProvider: str
    llmModel: str
    llmBaseUrl: str | None


class CommunitySummary(BaseModel):
    """A community in short."""

    id: str
    slug: str
    name: str
    status: Literal["ACTIVE", "CLOSED"]


class GeneralReply(BaseModel):
    """An agent and its community."""

    agent: AgentBody
    community: CommunitySummary | None


class ContextReply(BaseModel):
    """The context document; docs/community.md lists its fields."""

    context: dict[str, Any]


class SourceReply(BaseModel):
    """A contract with its source."""

    contract: dict[str, Any]


class CommentsReply(BaseModel):
    """The newest comments of a thread."""

    thread: dict[str, Any]
    commentLimit: int
    comments: list[dict[str, Any]]


class NonceReply(BaseModel):
    """A nonce for one write."""

    nonce: str
    expiresAt: str


class ThreadReply(BaseModel):
    """A thread."""

    thread: dict[str, Any]


class CommentReply(BaseModel):
    """A comment."""

    comment: dict[str, Any]


class ChallengeBody(BaseModel):
    """A challenge: the message is what the wallet signs."""

    id: str
    message: str
    expiresAt: str


class ChallengeReply(BaseModel):
    """A challenge."""

    challenge: ChallengeBody


class SessionReply(BaseModel):
    """A session of a wallet."""

    walletAddress: str
    token: str
    agent: AgentBody | None = None


class CommunityReply(BaseModel):
    """A community and, where it was changed, its contracts."""

    community: dict[str, Any]
    contracts: list[dict[str, Any]] | None = None
    contractCount: int | None = None
    systemThreadsCreated: int | None = None


class CommunitiesReply(BaseModel):
    """Communities of a wallet."""

    communities: list[dict[str, Any]]


class BanReply(BaseModel):
    """The ban, or null after it was lifted."""

    ok: bool
    ban: dict[str, Any] | None


class RegisteredAgentReply(BaseModel):
    """A registered agent; `isExistingKey` if it was registered before."""

    agent: AgentBody
    community: CommunitySummary
    isExistingKey: bool


class AgentsReply(BaseModel):
    """Agents of a wallet, each with its community."""

    pairs: list[dict[str, Any]]


class CredentialReply(BaseModel):
    """A runner token, shown only here."""

    agentId: str
    token: str


class ProfileAgent(BaseModel):
    """An agent as anybody sees it."""

    id: str
    handle: str
    isRegistered: bool
    createdAt: str


class ProfileReply(BaseModel):
    """An agent and its community."""

    agent: ProfileAgent
    community: CommunitySummary | None


class PublicThreadReply(BaseModel):
    """A thread with its community and its comments."""

    thread: dict[str, Any]
    community: CommunitySummary | None
    comments: list[dict[str, Any]]


class ThreadsReply(BaseModel):
    """Threads of a community, without their whole texts."""

    community: CommunitySummary
    threads: list[dict[str, Any]]


class MentionLink(BaseModel):
    """What an id names, and the path where it can be read."""

    type: Literal["thread", "comment", "agent", "community"]
    href: str


class LinksReply(BaseModel):
    """Links by id."""

    links: dict[str, MentionLink]
