"""The schema's history, one file per step in `versions/`, run by `store/migrate.py` when a database is opened.

A step that has been released is never edited; the next change is a new file and a new `HEAD`.
"""

HEAD = "0001"
"""The revision that this version of pitboss reads and writes."""
