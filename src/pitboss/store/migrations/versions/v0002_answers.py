"""Answers of models, and what a run saved and wasted.

The seal of a run's row covers the two new columns, so every intact row is sealed again. A row that was not intact keeps
the seal that it has, which fits neither before nor after: a change is never made good by an upgrade.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from pitboss.store.sealed_rows import encode, seal

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BEFORE = (
    "id",
    "skill_id",
    "skill_version",
    "status",
    "model",
    "data_digest",
    "progress",
    "error_text",
    "digest",
    "cost_usd",
    "wall_s",
    "ticks",
    "report",
    "created_at",
    "started_at",
    "finished_at",
    "heartbeat_at",
    "lease_epoch",
    "cancel_requested",
    "params",
    "metrics",
    "baselines",
)
_PLACE = _BEFORE.index("cost_usd") + 1
_AFTER = (*_BEFORE[:_PLACE], "saved_usd", "wasted_usd", *_BEFORE[_PLACE:])


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("key", sa.String(160), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("cost_usd", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_answers"),
    )
    op.create_index("ix_answers_run_id", "answers", ["run_id"])
    op.add_column("runs", sa.Column("saved_usd", sa.Text(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("wasted_usd", sa.Text(), nullable=False, server_default="0"))
    _seal_again()


def _seal_again() -> None:
    connection = op.get_bind()
    # Without types: the seal is over what the driver gives.
    runs = sa.table("runs", *[sa.column(name) for name in (*_AFTER, "row_sha256")])
    for row in connection.execute(sa.select(*runs.columns)).mappings().all():
        if _seal(row, _BEFORE) == row["row_sha256"]:
            change = sa.update(runs).where(runs.c.id == row["id"]).values(row_sha256=_seal(row, _AFTER))
            connection.execute(change)


def _seal(row: Any, names: tuple[str, ...]) -> str:
    return seal("runs", [encode(row[name]) for name in names])


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
