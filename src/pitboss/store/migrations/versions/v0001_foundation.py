"""Skills and their versions, runs, records, states, facts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "skills",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_skills"),
        sa.UniqueConstraint("name", name="uq_skills_name"),
    )
    op.create_table(
        "skill_versions",
        sa.Column("skill_id", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("skill_id", "version", name="pk_skill_versions"),
        sa.ForeignKeyConstraint(["skill_id"], ["skills.id"], name="fk_skill_versions_skill_id"),
        sa.UniqueConstraint("skill_id", "digest", name="uq_skill_versions_skill_id_digest"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("skill_id", sa.String(64), nullable=False),
        sa.Column("skill_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("data_digest", sa.String(64)),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("error_text", sa.Text()),
        sa.Column("digest", sa.String(64)),
        sa.Column("cost_usd", sa.Text(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=False),
        sa.Column("ticks", sa.BigInteger(), nullable=False),
        sa.Column("report", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("heartbeat_at", sa.BigInteger()),
        sa.Column("lease_epoch", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("params", sa.LargeBinary(), nullable=False),
        sa.Column("metrics", sa.LargeBinary()),
        sa.Column("baselines", sa.LargeBinary()),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(
            ["skill_id", "skill_version"],
            ["skill_versions.skill_id", "skill_versions.version"],
            name="fk_runs_skill_id",
        ),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    op.create_table(
        "records",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("tick_at", sa.BigInteger(), nullable=False),
        sa.Column("prev_digest", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("covered", sa.LargeBinary(), nullable=False),
        sa.Column("extra", sa.LargeBinary(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_records"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_records_run_id"),
    )
    op.create_table(
        "run_states",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_states"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_states_run_id"),
    )
    op.create_table(
        "facts",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("row_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_facts"),
    )


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
