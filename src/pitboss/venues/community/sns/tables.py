"""The tables of the forum server, once, for SQLite and Postgres alike.

The columns of a forum table are the fields of its noun (`forum.py`); ABI and source are JSON text. Times are UTC milliseconds.
Tokens of runners and owners are stored as hashes, signing keys encrypted (`server_key.py`).
"""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

metadata = MetaData()
_ID = String(160)


def _instant(name: str, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


communities = Table(
    "sns_communities",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("slug", String(160), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("owner_wallet", String(42), nullable=False, index=True),
    _instant("created_at"),
    Column("description", Text),
    Column("github_repository_url", Text),
    Column("status", String(8), nullable=False),
    _instant("closed_at", nullable=True),
    _instant("delete_at", nullable=True),
    Column("system_sha256", String(64)),
)

contracts = Table(
    "sns_contracts",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("community_id", _ID, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("address", String(42), nullable=False),
    Column("chain", String(128), nullable=False),
    _instant("created_at"),
    _instant("changed_at"),
    Column("faucet_function", Text),
    Column("abi", Text, nullable=False),
    Column("source", Text, nullable=False),
    UniqueConstraint("address", "chain"),
)

agents = Table(
    "sns_agents",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("handle", Text, nullable=False),
    Column("owner_wallet", String(42), nullable=False),
    _instant("created_at"),
    Column("community_id", _ID, index=True),
    Column("is_registered", Boolean, nullable=False),
    Column("llm_provider", Text, nullable=False),
    Column("llm_model", Text, nullable=False),
    Column("llm_base_url", Text),
    UniqueConstraint("owner_wallet", "community_id"),
)

threads = Table(
    "sns_threads",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("community_id", _ID, nullable=False),
    Column("kind", String(24), nullable=False),
    Column("title", Text, nullable=False),
    _instant("created_at"),
    Column("agent_id", _ID),
    Column("is_resolved", Boolean, nullable=False),
    Column("is_rejected", Boolean, nullable=False),
    Column("is_issued", Boolean, nullable=False),
    Column("comment_count", Integer, nullable=False),
    Column("discussion_count", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Index("ix_sns_threads_community", "community_id", "created_at"),
)

comments = Table(
    "sns_comments",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("thread_id", _ID, nullable=False),
    _instant("created_at"),
    Column("kind", String(16), nullable=False),
    Column("agent_id", _ID),
    Column("owner_wallet", String(42)),
    Column("is_issued", Boolean, nullable=False),
    Column("body", Text, nullable=False),
    # The community again, so that its newest comments are found without its threads.
    Column("community_id", _ID, nullable=False),
    Index("ix_sns_comments_thread", "thread_id", "created_at"),
    Index("ix_sns_comments_community", "community_id", "created_at"),
)

bans = Table(
    "sns_bans",
    metadata,
    Column("id", String(240), primary_key=True),
    Column("community_id", _ID, nullable=False, index=True),
    Column("owner_wallet", String(42), nullable=False),
    _instant("banned_at"),
    Column("handle", Text),
)

credentials = Table(
    "sns_runner_credentials",
    metadata,
    # One per agent: a new one replaces it.
    Column("agent_id", _ID, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("key_id", String(32), nullable=False, unique=True),
    Column("sealed_key", Text, nullable=False),
    _instant("revoked_at", nullable=True),
    _instant("created_at"),
    _instant("updated_at"),
)

nonces = Table(
    "sns_nonces",
    metadata,
    Column("nonce", String(32), primary_key=True),
    Column("agent_id", _ID, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    _instant("used_at", nullable=True),
)

sessions = Table(
    "sns_owner_sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("wallet", String(42), nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

challenges = Table(
    "sns_login_challenges",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("wallet", String(42), nullable=False, index=True),
    Column("community_slug", String(160), nullable=False),
    Column("message", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    _instant("used_at", nullable=True),
)

answered_writes = Table(
    "sns_answered_writes",
    metadata,
    Column("agent_id", _ID, primary_key=True),
    Column("idempotency_key", String(128), primary_key=True),
    Column("request_hash", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False, index=True),
)

rate_windows = Table(
    "sns_rate_windows",
    metadata,
    Column("name", String(240), primary_key=True),
    Column("started_at", BigInteger, nullable=False, index=True),
    Column("requests", BigInteger, nullable=False),
)
