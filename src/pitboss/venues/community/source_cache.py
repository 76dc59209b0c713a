"""A cache of contract sources in memory. An entry is valid as long as the contract's row in the context is the same."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec

MOST_SOURCES = 100


class SourceCache:
    """Sources by contract id, the most recently used last. A row that has changed in any field drops its source."""

    def __init__(self, most: int = MOST_SOURCES) -> None:
        self._most = most
        self._sources: OrderedDict[str, tuple[str, Any]] = OrderedDict()

    def get(self, row: Mapping[str, Any]) -> Any | None:
        """The source of a contract; None if it is not here or the row has changed since."""
        contract_id = str(row.get("id"))
        digest, source = self._sources.get(contract_id, ("", None))
        if digest != _digest(row):
            self._sources.pop(contract_id, None)
            return None
        self._sources.move_to_end(contract_id)
        return source

    def put(self, row: Mapping[str, Any], source: Any) -> None:
        """Keep a source; of too many the least recently used is dropped."""
        self._sources[str(row.get("id"))] = (_digest(row), source)
        while len(self._sources) > self._most:
            self._sources.popitem(last=False)


def _digest(row: Mapping[str, Any]) -> str:
    return codec.digest(codec.number_fragments(dict(row)))
