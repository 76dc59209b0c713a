"""Approvals of MCP tools, and their recorded results."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "approvals",
        sa.Column("server", sa.String(64), nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("definition", sa.LargeBinary(), nullable=False),
        sa.Column("approved_at", sa.BigInteger(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("server", "tool", name="pk_approvals"),
    )
    op.create_table(
        "recordings",
        sa.Column("server", sa.String(64), nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("arguments_sha256", sa.String(64), nullable=False),
        sa.Column("known_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.Column("definition_digest", sa.String(64), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("server", "tool", "arguments_sha256", "known_at", name="pk_recordings"),
    )


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
