"""The queue on the runs, its log of events, budgets; in Postgres, text that is compared by its bytes.

The seal of a run's row covers the new columns, so every intact row is sealed again. A row that was not intact keeps the
seal that it has, which fits neither before nor after: a change is never made good by an upgrade.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from pitboss.store.sealed_rows import encode, seal

revision = "0005"
down_revision = "0004"
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
    "saved_usd",
    "wasted_usd",
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
_NEW = ("owner", "priority", "queued_at", "requeues", "worker", "study_id", "build")
_PLACE = _BEFORE.index("cancel_requested") + 1
_AFTER = (*_BEFORE[:_PLACE], *_NEW, *_BEFORE[_PLACE:])

PAGE = 500


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _compare_by_bytes()
    op.add_column("runs", sa.Column("owner", _text(64), nullable=False, server_default="local"))
    op.add_column("runs", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("queued_at", sa.BigInteger()))
    op.add_column("runs", sa.Column("requeues", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("worker", _text(128)))
    op.add_column("runs", sa.Column("study_id", _text(64)))
    op.add_column("runs", sa.Column("build", _text(128)))
    _seal_again()
    op.create_index("ix_runs_study_id", "runs", ["study_id"])
    op.create_index("ix_runs_queue", "runs", ["status", sa.text("priority DESC"), "queued_at", "id"])
    op.create_table(
        "run_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", _text(64), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("kind", _text(16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("worker", _text(128)),
        sa.Column("detail", _long(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run_events"),
    )
    op.create_index("ix_run_events_run_id", "run_events", ["run_id", "id"])
    op.create_table(
        "budgets",
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("day_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reserved_usd", _long(), nullable=False),
        sa.Column("spent_usd", _long(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("owner", "day_at", name="pk_budgets"),
    )
    op.create_table(
        "reservations",
        sa.Column("run_id", _text(64), nullable=False),
        sa.Column("epoch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("day_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("amount_usd", _long(), nullable=False),
        sa.Column("before_usd", _long(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", "day_at", name="pk_reservations"),
    )
    op.create_table(
        "past_spend",
        sa.Column("owner", _text(64), nullable=False),
        sa.Column("skill", _text(255), nullable=False),
        sa.Column("model", _text(255), nullable=False),
        sa.Column("day_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", _long(), nullable=False),
        sa.Column("row_sha256", _text(64), nullable=False),
        sa.PrimaryKeyConstraint("owner", "skill", "model", "day_at", name="pk_past_spend"),
    )


def _text(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _long() -> Any:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _compare_by_bytes() -> None:
    """Every text column that is there takes the order of bytes, which is the only one that SQLite knows."""
    connection = op.get_bind()
    text_columns = connection.exec_driver_sql(
        "SELECT table_name, column_name, data_type, character_maximum_length FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name <> 'alembic_version' "
        "AND data_type IN ('text', 'character varying') AND collation_name IS DISTINCT FROM 'C' ORDER BY 1, 2"
    ).all()
    by_table: dict[str, list[str]] = {}
    for table, column, kind, length in text_columns:
        shape = "TEXT" if kind == "text" else f"VARCHAR({length})"
        by_table.setdefault(table, []).append(f'ALTER COLUMN "{column}" TYPE {shape} COLLATE "C"')
    for table, changes in by_table.items():
        connection.exec_driver_sql(f'ALTER TABLE "{table}" {", ".join(changes)}')


def _seal_again() -> None:
    connection = op.get_bind()
    # Without types: the seal is over what the driver gives.
    runs = sa.table("runs", *[sa.column(name) for name in (*_AFTER, "row_sha256")])
    after = ""
    while True:
        page = connection.execute(sa.select(*runs.columns).where(runs.c.id > after).order_by(runs.c.id).limit(PAGE))
        run_rows = page.mappings().all()
        for row in run_rows:
            if _seal(row, _BEFORE) == row["row_sha256"]:
                change = sa.update(runs).where(runs.c.id == row["id"]).values(row_sha256=_seal(row, _AFTER))
                connection.execute(change)
        if len(run_rows) < PAGE:
            return
        after = run_rows[-1]["id"]


def _seal(row: Any, names: tuple[str, ...]) -> str:
    return seal("runs", [encode(row[name]) for name in names])


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
