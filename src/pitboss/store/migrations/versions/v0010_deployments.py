"""Deployments: agents that run live, and the commands that people give them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deployments",
        sa.Column("id", _text(64), nullable=False),
        sa.Column("run_id", _text(64), nullable=False),
        sa.Column("skill", _long_text(), nullable=False),
        sa.Column("skill_version", sa.Integer(), nullable=False),
        sa.Column("venue", _text(64), nullable=False),
        sa.Column("mode", _text(16), nullable=False),
        sa.Column("account", _text(64), nullable=False),
        sa.Column("state", _text(16), nullable=False),
        sa.Column("code", _text(64), nullable=False),
        sa.Column("reason", _long_text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("owner", _text(64), nullable=False, server_default="local"),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deployments"),
        sa.UniqueConstraint("run_id", name="uq_deployments_run_id"),
    )
    op.create_index("ix_deployments_state", "deployments", ["state"])
    op.create_table(
        "deployment_commands",
        sa.Column("deployment_id", _text(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("id", _text(64), nullable=False),
        sa.Column("command", _text(16), nullable=False),
        sa.Column("reason", _long_text(), nullable=False),
        sa.Column("user_name", _text(64), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("acked_at", sa.BigInteger()),
        sa.Column("state", _text(16)),
        sa.Column("note", _long_text(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("deployment_id", "number", name="pk_deployment_commands"),
        sa.UniqueConstraint("id", name="uq_deployment_commands_id"),
    )
    op.create_index("ix_deployment_commands_open", "deployment_commands", ["acked_at", "deployment_id"])


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _long_text() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
