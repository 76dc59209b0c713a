"""Requests for a person's approval of an action of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "approval_requests",
        sa.Column("id", _text(64), nullable=False),
        sa.Column("key", _text(64), nullable=False),
        sa.Column("run_id", _text(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("venue", _text(64), nullable=False),
        sa.Column("agent", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("times_asked", sa.BigInteger(), nullable=False),
        sa.Column("state", _text(16), nullable=False),
        sa.Column("decided_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_approval_requests"),
        sa.UniqueConstraint("run_id", "key", "number", name="uq_approval_requests_run_id_key_number"),
    )


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
