"""Owners of skills, studies and requests for approval; users, sessions, tokens of the API, the audit log.

A skill's name is unique for each owner instead of everywhere. The definitions of studies leave `facts` for a table of their own.
The seals of rows that get an owner cover it, so every intact row is sealed again. A row that was not intact keeps a seal that
does not fit: a change is never made good by an upgrade.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from pitboss.store.sealed_rows import encode, seal

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SEAL = "row_sha256"
OWNER = "local"
PAGE = 500
STUDY = "study/"
_SKILL = ("id", "name", "latest_version")
_REQUEST = (
    "id",
    "key",
    "run_id",
    "number",
    "venue",
    "agent",
    "content",
    "asked_at",
    "times_asked",
    "state",
    "decided_at",
    "expires_at",
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_skills()
    else:
        op.add_column("skills", _owner())
        op.drop_constraint("uq_skills_name", "skills", type_="unique")
        op.create_unique_constraint("uq_skills_owner_name", "skills", ["owner", "name"])
    _seal_again("skills", _SKILL)
    op.add_column("approval_requests", _owner())
    _seal_again("approval_requests", _REQUEST)
    op.create_index("ix_runs_owner_created_at", "runs", ["owner", "created_at"])
    op.create_table(
        "studies",
        sa.Column("id", _text(64), nullable=False),
        sa.Column("document", _long(), nullable=False),
        sa.Column("owner", _text(64), nullable=False),
        sa.Column(SEAL, _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
    )
    _move_studies()
    _create_accounts()


def _create_accounts() -> None:
    op.create_table(
        "users",
        sa.Column("name", _text(64), nullable=False),
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("role", _text(16), nullable=False),
        sa.Column("password", _long(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column(SEAL, _text(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("user_name", _text(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column(SEAL, _text(64), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sessions"),
    )
    op.create_index("ix_sessions_user_name", "sessions", ["user_name"])
    op.create_table(
        "api_tokens",
        sa.Column("id", _text(64), nullable=False),
        sa.Column("digest", _text(64), nullable=False),
        sa.Column("user_name", _text(64), nullable=False),
        sa.Column("label", _long(), nullable=False),
        sa.Column("role", _text(16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column(SEAL, _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.UniqueConstraint("digest", name="uq_api_tokens_digest"),
    )
    op.create_index("ix_api_tokens_user_name", "api_tokens", ["user_name"])
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("user_name", _text(64), nullable=False),
        sa.Column("address", _text(64), nullable=False),
        sa.Column("action", _text(160), nullable=False),
        sa.Column("object", _long(), nullable=False),
        sa.Column("detail", _long(), nullable=False),
        sa.Column(SEAL, _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _long() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _owner() -> sa.Column[str]:
    return sa.Column("owner", _text(64), nullable=False, server_default=OWNER)


def _rebuild_skills() -> None:
    """SQLite cannot drop a constraint: the table is created anew and filled from a copy.

    The versions of skills refer to it. Their references are checked when the transaction ends, when all rows are there again.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute("CREATE TABLE skills_copy AS SELECT * FROM skills")
    op.drop_table("skills")
    op.create_table(
        "skills",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        _owner(),
        sa.Column(SEAL, sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_skills"),
        sa.UniqueConstraint("owner", "name", name="uq_skills_owner_name"),
    )
    columns = ", ".join((*_SKILL, SEAL))
    op.execute(f"INSERT INTO skills ({columns}) SELECT {columns} FROM skills_copy")
    op.execute("DROP TABLE skills_copy")


def _seal_again(name: str, before: tuple[str, ...]) -> None:
    """Seal the intact rows with their owner, which is the last of the sealed columns."""
    connection = op.get_bind()
    # Without types: the seal is over what the driver gives.
    table = sa.table(name, *[sa.column(column) for column in (*before, "owner", SEAL)])
    after = ""
    while True:
        page = connection.execute(sa.select(*table.columns).where(table.c.id > after).order_by(table.c.id).limit(PAGE))
        stored = page.mappings().all()
        for row in stored:
            if _seal(name, row, before) == row[SEAL]:
                change = sa.update(table).where(table.c.id == row["id"])
                connection.execute(change.values({SEAL: _seal(name, row, (*before, "owner"))}))
        if len(stored) < PAGE:
            return
        after = stored[-1]["id"]


def _move_studies() -> None:
    connection = op.get_bind()
    facts = sa.table("facts", *[sa.column(column) for column in ("key", "value", SEAL)])
    studies = sa.table("studies", *[sa.column(column) for column in ("id", "document", "owner", SEAL)])
    of_studies = sa.func.substr(facts.c.key, 1, len(STUDY)) == STUDY
    for row in connection.execute(sa.select(*facts.columns).where(of_studies)).mappings().all():
        study = {"id": row["key"].removeprefix(STUDY), "document": row["value"], "owner": OWNER}
        intact = _seal("facts", row, ("key", "value")) == row[SEAL]
        new_seal = _seal("studies", study, ("id", "document", "owner")) if intact else row[SEAL]
        connection.execute(sa.insert(studies), {**study, SEAL: new_seal})
    connection.execute(sa.delete(facts).where(of_studies))


def _seal(name: str, row: Any, columns: tuple[str, ...]) -> str:
    return seal(name, [encode(row[column]) for column in columns])


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
