"""The texts of skill versions as their authors wrote them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "skill_texts",
        sa.Column("skill_id", _text(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("saved_at", sa.BigInteger(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("skill_id", "version", name="pk_skill_texts"),
        sa.ForeignKeyConstraint(
            ["skill_id", "version"],
            ["skill_versions.skill_id", "skill_versions.version"],
            name="fk_skill_texts_skill_id",
        ),
    )


def _text(length: int) -> sa.String:
    """Text that Postgres, too, compares by its bytes."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
