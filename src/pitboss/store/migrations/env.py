"""What Alembic executes for every step, on the connection and in the transaction of `store/migrate.py`."""

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
