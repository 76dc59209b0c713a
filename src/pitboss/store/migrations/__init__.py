"""The schema's history, one file per step in `versions/`, run by `store/migrate.py` when a database is opened.

A step that has been released is never edited; the next change is a new file and a new entry in `REVISIONS`.
"""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013")
"""Every revision, oldest first. Known without importing Alembic, which most starts do not need."""

HEAD = REVISIONS[-1]
"""The revision that this version of pitboss reads and writes."""
