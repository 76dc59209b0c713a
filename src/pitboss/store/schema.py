"""The tables, once, for SQLite and Postgres alike.

Times are UTC milliseconds in BIGINT, amounts are exact decimals in TEXT, documents are canonical JSON bytes. Every row
carries `row_sha256` over all its other columns: a changed byte is found, whichever it is. Receipts and equity points
have no tables of their own: they live inside the records, so that there is one truth to read and to verify.
What a row hash is and how rows are written is `rows.py`; how the tables came to be is `migrations/`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SEAL = "row_sha256"

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


skills = Table(
    "skills",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("latest_version", Integer, nullable=False),
    _seal(),
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
    # The documents come last: what changes at every commit then stays on the row's first page.
    Column("params", LargeBinary, nullable=False),
    Column("metrics", LargeBinary),
    Column("baselines", LargeBinary),
    _seal(),
    ForeignKeyConstraint(["skill_id", "skill_version"], ["skill_versions.skill_id", "skill_versions.version"]),
)

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
    # A key is the digest of a question. Longer ones belong to a second payment for the same question.
    Column("key", String(160), primary_key=True),
    Column("model", Text, nullable=False),
    Column("run_id", String(64), nullable=False, index=True),  # who paid; no reference, for runs may be deleted
    Column("cost_usd", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
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
    # In this order the key is the index by which the newest answer to a question is found.
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
