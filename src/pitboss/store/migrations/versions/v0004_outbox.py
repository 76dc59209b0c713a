"""The outbox: transactions for a chain, stored before they are sent."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("order_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("scope", sa.String(160), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("tick_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(64)),
        sa.Column("coin", sa.String(96)),
        sa.Column("busy", sa.String(160)),
        sa.Column("last_epoch", sa.BigInteger()),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("tx", sa.LargeBinary()),
        sa.Column("signature", sa.Text()),
        sa.Column("outcome", sa.LargeBinary()),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("order_id", "attempt", name="pk_outbox"),
        sa.UniqueConstraint("busy", name="uq_outbox_busy"),
        sa.UniqueConstraint("coin", name="uq_outbox_coin"),
        sa.UniqueConstraint("digest", name="uq_outbox_digest"),
    )
    op.create_index("ix_outbox_scope", "outbox", ["scope"])


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
