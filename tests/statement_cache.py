"""Shares compiled SQL statements between all databases of one kind and version.

The database library compiles each statement once per open database, and the tests open thousands of them.
"""

from typing import Any

from sqlalchemy import util
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ClauseElement

from pitboss.store import journal

_dialects: dict[tuple[type[Dialect], object], Dialect] = {}
"""The first dialect of each kind and version, for which all statements are compiled."""
_statements: Any = util.LRUCache(2_000)
_compile = ClauseElement._compile_w_cache
_of_a_commit = journal._statements


def _first_alike(dialect: Dialect) -> Dialect:
    return _dialects.setdefault((type(dialect), getattr(dialect, "server_version_info", None)), dialect)


def _compile_once(statement: ClauseElement, dialect: Dialect, *, compiled_cache: Any, **how: Any) -> Any:
    if compiled_cache is None:
        return _compile(statement, dialect, compiled_cache=None, **how)
    return _compile(statement, _first_alike(dialect), compiled_cache=_statements, **how)


def _of_a_commit_once(dialect: Dialect) -> Any:
    return _of_a_commit(_first_alike(dialect))


def install() -> None:
    """Change the library for the rest of this process."""
    ClauseElement._compile_w_cache = _compile_once  # pyright: ignore[reportAttributeAccessIssue]
    journal._statements = _of_a_commit_once  # pyright: ignore[reportAttributeAccessIssue]
