"""What Alembic runs for every step: the connection is `store/migrate.py`'s own, already inside its transaction."""

from alembic import context

from pitboss.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter a column in place
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
