"""Orders of live accounts, stored before their bytes leave."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "live_orders",
        sa.Column("cloid", _text(34), nullable=False),
        sa.Column("deployment", _text(128), nullable=False),
        sa.Column("symbol", _text(64), nullable=False),
        sa.Column("leg", _text(16), nullable=False),
        sa.Column("state", _text(16), nullable=False),
        sa.Column("order_id", _text(16), nullable=False),
        sa.Column("intent", _text(128), nullable=False),
        sa.Column("tick_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("nonce", sa.BigInteger()),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("outcome", sa.LargeBinary(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("cloid", name="pk_live_orders"),
    )
    op.create_index("ix_live_orders_open", "live_orders", ["deployment", "state"])
    op.create_index("ix_live_orders_tick", "live_orders", ["deployment", "tick_at"])


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
