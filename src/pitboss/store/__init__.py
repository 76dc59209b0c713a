"""The database of a workspace, in SQLite or Postgres: runs with their records, the queue, skills, spending, accounts.

Every row is sealed by a digest, so that a change from outside is noticed (`sealed_rows`). `schema` has the tables, `migrations`
their history.
"""
