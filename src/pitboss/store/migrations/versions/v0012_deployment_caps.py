"""Changes of the caps of deployments."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deployment_caps",
        sa.Column("deployment_id", _text(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("caps", _long_text(), nullable=False),
        sa.Column("reason", _long_text(), nullable=False),
        sa.Column("user_name", _text(64), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("effective_at", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_at", sa.BigInteger()),
        sa.Column("cancelled_by", _text(64), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("deployment_id", "number", name="pk_deployment_caps"),
    )


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _long_text() -> sa.Text:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
