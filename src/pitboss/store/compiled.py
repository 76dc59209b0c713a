"""Precompiled statements: hot paths talk to the driver directly, and the SQL stays portable."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import Select


class CompiledStatement:
    """A statement compiled once for a dialect. `sets` names the values to write, `finds` those that select the row."""

    def __init__(
        self, statement: UpdateBase | Select[Any], sets: Sequence[str], finds: Sequence[str], dialect: Dialect
    ) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=list(sets))
        self.sql = str(compiled)
        order = cast("Sequence[str] | None", getattr(compiled, "positiontup", None))
        self._names = (*sets, *finds)
        self._positions = None if order is None else tuple(self._names.index(name) for name in order)
        self._in_order = self._positions == tuple(range(len(self._names)))

    def bind(self, values: Sequence[object]) -> Any:
        """The values, in the order of `sets` and `finds`, in the form that the driver expects."""
        if self._in_order:
            return values
        if self._positions is None:
            return dict(zip(self._names, values, strict=True))
        return tuple(values[position] for position in self._positions)
