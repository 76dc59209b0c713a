"""The scopes of tokens of the API. A token from before has none stored, and may do what its role allows.

The seal of a token covers its scopes, so every intact row is sealed again. A row that was not intact keeps a seal that does not fit.
"""

import sqlalchemy as sa
from alembic import op

from pitboss.store.sealed_rows import encode, seal

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SEAL = "row_sha256"
_TOKEN = ("id", "digest", "user_name", "label", "role", "created_at", "last_used_at", "expires_at", "revoked")


def upgrade() -> None:
    op.add_column("api_tokens", sa.Column("scopes", sa.Text().with_variant(sa.Text(collation="C"), "postgresql")))
    connection = op.get_bind()
    # Without types: the seal is over what the driver gives.
    table = sa.table("api_tokens", *[sa.column(column) for column in (*_TOKEN, SEAL)])
    for row in connection.execute(sa.select(*table.columns)).mappings().all():
        before = [encode(row[column]) for column in _TOKEN]
        if seal("api_tokens", before) == row[SEAL]:
            after = seal("api_tokens", [*before, encode(None)])
            connection.execute(sa.update(table).where(table.c.id == row["id"]).values({SEAL: after}))


def downgrade() -> None:
    raise NotImplementedError("a pitboss database only goes forward: copy the file before an upgrade to go back")
