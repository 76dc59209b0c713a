"""The newest entries of a symbol are found by an index."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    columns = ["deployment", "leg", "symbol", sa.text("created_at DESC"), "cloid"]
    op.create_index("ix_live_orders_entries", "live_orders", columns)


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
