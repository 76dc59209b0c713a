"""The tables, once, for SQLite and Postgres alike.

Times are UTC milliseconds in BIGINT, amounts are exact decimals in TEXT, documents are canonical JSON bytes. Every row has
`row_sha256` over all its other columns, so that any changed byte is detected. Receipts and equity points have no tables: they
are inside the records, so that there is one source to read and to verify. Row hashes, and how rows are written, are in
`sealed_rows.py`; the history of the schema is in `migrations/`. All tables are in this one file, because they refer to each other
and a migration is compared with all of them.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SEAL = "row_sha256"
LOCAL = "local"
"""The owner of what the command line stores, and of all rows from before there were others."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _seal() -> Column[str]:
    return Column(SEAL, String(64), nullable=False)


def _owner() -> Column[str]:
    """Whose row it is. The default is for rows of versions that knew one owner only."""
    return Column("owner", String(64), nullable=False, server_default=LOCAL)


skills = Table(
    "skills",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("latest_version", Integer, nullable=False),
    _owner(),
    _seal(),
    UniqueConstraint("owner", "name"),
)

skill_versions = Table(
    "skill_versions",
    metadata,
    Column("skill_id", String(64), ForeignKey("skills.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    _seal(),
    UniqueConstraint("skill_id", "digest"),
)

skill_texts = Table(
    "skill_texts",
    metadata,
    # The text of a version as its author wrote it, comments included. Only the content of a version never changes: saving the
    # same content with other comments replaces its text.
    Column("skill_id", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    Column("saved_at", BigInteger, nullable=False),
    _seal(),
    ForeignKeyConstraint(["skill_id", "version"], ["skill_versions.skill_id", "skill_versions.version"]),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("skill_id", String(64), nullable=False),
    Column("skill_version", Integer, nullable=False),
    Column("status", String(32), nullable=False),
    Column("model", Text, nullable=False),
    Column("data_digest", String(64)),
    Column("progress", Double, nullable=False),
    Column("error_text", Text),
    Column("digest", String(64)),
    Column("cost_usd", Text, nullable=False),
    Column("saved_usd", Text, nullable=False, server_default="0"),
    Column("wasted_usd", Text, nullable=False, server_default="0"),
    Column("wall_s", Double, nullable=False),
    Column("ticks", BigInteger, nullable=False),
    Column("report", Text),
    Column("created_at", BigInteger, nullable=False, index=True),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("heartbeat_at", BigInteger),
    Column("lease_epoch", BigInteger, nullable=False, server_default="0"),
    Column("cancel_requested", Boolean, nullable=False),
    # The queue: the user, the priority, the time from which a worker may claim the run (NULL: not in the queue), how often
    # its worker was lost since its last progress, its worker, its study, the build that created it.
    Column("owner", String(64), nullable=False, server_default=LOCAL),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("queued_at", BigInteger),
    Column("requeues", Integer, nullable=False, server_default="0"),
    Column("worker", String(128)),
    Column("study_id", String(64), index=True),
    Column("build", String(128)),
    # The documents come last, so that the columns that change at every commit stay on the first page of the row.
    Column("params", LargeBinary, nullable=False),
    Column("metrics", LargeBinary),
    Column("baselines", LargeBinary),
    _seal(),
    ForeignKeyConstraint(["skill_id", "skill_version"], ["skill_versions.skill_id", "skill_versions.version"]),
)
Index("ix_runs_owner_created_at", runs.c.owner, runs.c.created_at)
Index("ix_runs_queue", runs.c.status, runs.c.priority.desc(), runs.c.queued_at, runs.c.id)

records = Table(
    "records",
    metadata,
    Column("run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("tick_at", BigInteger, nullable=False),
    Column("prev_digest", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("covered", LargeBinary, nullable=False),
    Column("extra", LargeBinary, nullable=False),
    _seal(),
)

run_states = Table(
    "run_states",
    metadata,
    Column("run_id", String(64), ForeignKey("runs.id"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    _seal(),
)

answers = Table(
    "answers",
    metadata,
    # A key is the digest of a request. A longer one marks a second payment for the same request.
    Column("key", String(160), primary_key=True),
    Column("model", Text, nullable=False),
    # The run that paid; no reference, because runs may be deleted.
    Column("run_id", String(64), nullable=False, index=True),
    Column("cost_usd", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    _seal(),
)

run_events = Table(
    "run_events",
    metadata,
    # The id is assigned by the database and not covered by the seal. Events of a run are appended under a lock on its row,
    # so their ids are in the order in which they happened.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("run_id", String(64), nullable=False),  # no reference: it would cost a lookup at every commit
    Column("epoch", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("worker", String(128)),
    Column("detail", Text, nullable=False),
    _seal(),
    Index("ix_run_events_run_id", "run_id", "id"),
)

budgets = Table(
    "budgets",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("day_at", BigInteger, primary_key=True, autoincrement=False),
    Column("reserved_usd", Text, nullable=False),
    Column("spent_usd", Text, nullable=False),
    _seal(),
)

reservations = Table(
    "reservations",
    metadata,
    # Epoch 0 is the run's own reservation, made when it was enqueued; others belong to one lease of it.
    Column("run_id", String(64), primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("day_at", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", String(64), nullable=False),
    Column("amount_usd", Text, nullable=False),
    Column("before_usd", Text, nullable=False),  # what the run had paid when this was reserved
    _seal(),
)

past_spend = Table(
    "past_spend",
    metadata,
    # The cost of replies that belong to no run: of the chat, and of runs that were deleted.
    Column("owner", String(64), primary_key=True),
    Column("skill", String(255), primary_key=True),
    Column("model", String(255), primary_key=True),
    Column("day_at", BigInteger, primary_key=True, autoincrement=False),
    Column("calls", BigInteger, nullable=False),
    Column("unpriced", BigInteger, nullable=False),
    Column("cost_usd", Text, nullable=False),
    _seal(),
)

facts = Table(
    "facts",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    _seal(),
)

approvals = Table(
    "approvals",
    metadata,
    Column("server", String(64), primary_key=True),
    Column("tool", String(128), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("definition", LargeBinary, nullable=False),
    Column("approved_at", BigInteger, nullable=False),
    _seal(),
)

recordings = Table(
    "recordings",
    metadata,
    # In this order the key is the index for the newest result of a call.
    Column("server", String(64), primary_key=True),
    Column("tool", String(128), primary_key=True),
    Column("arguments_sha256", String(64), primary_key=True),
    Column("known_at", BigInteger, primary_key=True, autoincrement=False),
    Column("failed", Boolean, nullable=False),
    Column("definition_digest", String(64), nullable=False),
    Column("arguments", Text, nullable=False),
    Column("result", Text, nullable=False),
    _seal(),
)

outbox = Table(
    "outbox",
    metadata,
    # One row for each attempt at an order; the highest attempt is the current one.
    Column("order_id", String(64), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("scope", String(160), nullable=False, index=True),
    Column("state", String(16), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("tick_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("digest", String(64), unique=True),
    # The coin that the transaction spends on the chain. Unique, so no two transactions spend the same coin.
    Column("coin", String(96), unique=True),
    # The scope while the row is open, else NULL, so at most one order of a scope is open.
    Column("busy", String(160), unique=True),
    Column("last_epoch", BigInteger),
    Column("note", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("tx", LargeBinary),
    Column("signature", Text),
    Column("outcome", LargeBinary),
    _seal(),
)

live_orders = Table(
    "live_orders",
    metadata,
    # One row for each order of a live account, stored before its bytes leave. Unlike the outbox, many of them are open at once:
    # an order rests for days, and what reduces risk must leave while another order is in doubt.
    Column("cloid", String(34), primary_key=True),
    Column("deployment", String(128), nullable=False),
    Column("symbol", String(64), nullable=False),
    Column("leg", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("order_id", String(16), nullable=False),
    Column("intent", String(128), nullable=False),
    Column("tick_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("nonce", BigInteger),
    # What was ordered, and what is known of it: canonical JSON of the venue.
    Column("terms", LargeBinary, nullable=False),
    Column("outcome", LargeBinary, nullable=False),
    _seal(),
    Index("ix_live_orders_open", "deployment", "state"),
    Index("ix_live_orders_tick", "deployment", "tick_at"),
)
Index(
    "ix_live_orders_entries",
    live_orders.c.deployment,
    live_orders.c.leg,
    live_orders.c.symbol,
    live_orders.c.created_at.desc(),
    live_orders.c.cloid,
)

approval_requests = Table(
    "approval_requests",
    metadata,
    Column("id", String(64), primary_key=True),
    # What is to be approved: the digest of an action, unique within its run up to the number of the request.
    Column("key", String(64), nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("venue", String(64), nullable=False),
    Column("agent", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("times_asked", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("decided_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),
    _owner(),
    _seal(),
    UniqueConstraint("run_id", "key", "number"),
)

deployments = Table(
    "deployments",
    metadata,
    Column("id", String(64), primary_key=True),
    # The run that holds its records. No reference: the row of a deployment outlives its run.
    Column("run_id", String(64), nullable=False, unique=True),
    Column("skill", Text, nullable=False),
    Column("skill_version", Integer, nullable=False),
    Column("venue", String(64), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("account", String(64), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    # Why it is paused, halted or stopped: a stable code and text for a person.
    Column("code", String(64), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    _owner(),
    _seal(),
)

deployment_commands = Table(
    "deployment_commands",
    metadata,
    Column("deployment_id", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", String(64), nullable=False, unique=True),
    Column("command", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("user_name", String(64), nullable=False),
    Column("sent_at", BigInteger, nullable=False),
    Column("acked_at", BigInteger),
    Column("state", String(16)),  # of the deployment after it
    Column("note", Text, nullable=False),
    _seal(),
)
Index("ix_deployment_commands_open", deployment_commands.c.acked_at, deployment_commands.c.deployment_id)

deployment_caps = Table(
    "deployment_caps",
    metadata,
    Column("deployment_id", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # All caps after the change, as canonical JSON. In effect are those with the highest number that is due and not cancelled.
    Column("caps", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("user_name", String(64), nullable=False),
    Column("asked_at", BigInteger, nullable=False),
    Column("effective_at", BigInteger, nullable=False),
    Column("cancelled_at", BigInteger),
    Column("cancelled_by", String(64), nullable=False),
    _seal(),
)

studies = Table(
    "studies",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("document", Text, nullable=False),
    Column("owner", String(64), nullable=False),
    _seal(),
)

users = Table(
    "users",
    metadata,
    Column("name", String(64), primary_key=True),
    # Whose rows the user sees; by default those of its own name.
    Column("owner", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("password", Text, nullable=False),  # its hash
    Column("created_at", BigInteger, nullable=False),
    Column("disabled", Boolean, nullable=False),
    _seal(),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    # No reference: the person at the machine has no row in `users`.
    Column("user_name", String(64), nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    _seal(),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("user_name", String(64), nullable=False, index=True),
    Column("label", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("revoked", Boolean, nullable=False),
    Column("scopes", Text),
    _seal(),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("user_name", String(64), nullable=False),
    Column("address", String(64), nullable=False),
    Column("action", String(160), nullable=False),
    Column("object", Text, nullable=False),
    Column("detail", Text, nullable=False),
    _seal(),
)
