"""A statement compiled once for the driver at hand, so that the hot path speaks to the driver and the SQL stays portable."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import Select


class CompiledStatement:
    """A statement compiled once for the driver at hand: the values to set first, then those to find the row by."""

    def __init__(
        self, statement: UpdateBase | Select[Any], sets: Sequence[str], finds: Sequence[str], dialect: Dialect
    ) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=list(sets))
        self.sql = str(compiled)
        order = cast("Sequence[str] | None", getattr(compiled, "positiontup", None))
        self._names = (*sets, *finds)
        self._places = None if order is None else tuple(self._names.index(name) for name in order)
        self._as_is = self._places == tuple(range(len(self._names)))

    def bind(self, values: Sequence[object]) -> Any:
        """The values in the form that the driver wants."""
        if self._as_is:
            return values
        if self._places is None:
            return dict(zip(self._names, values, strict=True))
        return tuple(values[place] for place in self._places)
