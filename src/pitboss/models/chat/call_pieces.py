"""Tool calls that arrive in pieces: joins the deltas of a stream into whole calls.

Servers number pieces by index, by id, or not at all, and some repeat the name or draw a new id with every piece.
"""

from typing import Any

from pitboss.models.json_body import as_text, parse_body

MOST_INDEX_DIGITS = 9


class StreamedCall:
    """A call as it grows."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Any = None

    def is_followed_by(self, id_: str, name: str, has_arguments: bool) -> bool:
        """Whether a piece with a name is the first one of another call, from a server that gives all calls one index.

        Other servers repeat the name, or even draw a new id, with every piece of one call.
        """
        is_other_id = bool(id_ and self.id and id_ != self.id)
        if not self.name or (id_ and id_ == self.id):
            return is_other_id
        arguments = "".join(self.arguments)
        if name != self.name:
            return is_other_id or bool(arguments)
        if not arguments:
            return is_other_id
        return (is_other_id or has_arguments) and isinstance(parse_body(arguments), dict)

    def plain(self) -> dict[str, Any]:
        """The call as a plain reply has it."""
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        entry: dict[str, Any] = {"id": self.id, "function": function}
        return entry | ({"extra_content": self.extra} if self.extra else {})


class StreamedCalls:
    """The calls of one stream, in their order."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []

    def add(self, piece: dict[str, Any]) -> None:
        """Take one piece."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        index, id_, name = piece.get("index"), piece.get("id"), function.get("name")
        id_ = id_ if isinstance(id_, str) else ""
        name = name if isinstance(name, str) else ""
        arguments = function.get("arguments")
        call = self._slot(integer(index), id_, name, bool(arguments))
        call.id = call.id or id_
        if name and name != call.name and not call.arguments:
            call.name += name
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(as_text(arguments))
        if piece.get("extra_content"):
            call.extra = piece["extra_content"]

    def _slot(self, index: int | None, id_: str, name: str, has_arguments: bool) -> StreamedCall:
        """The call that a piece belongs to: by index, unless a new id or name marks another call."""
        if index is None:
            call = next((earlier for earlier in self.calls if id_ and earlier.id == id_), None)
            if call is None and self.calls and not id_ and not (name and self.calls[-1].arguments):
                call = self.calls[-1]
        else:
            call = next((earlier for earlier in reversed(self.calls) if earlier.index == index), None)
            if call is not None and name and call.is_followed_by(id_, name, has_arguments):
                call = None
        if call is None:
            call = StreamedCall(index)
            self.calls.append(call)
        return call


def integer(value: object) -> int | None:
    """An index as a number, also where it is written as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MOST_INDEX_DIGITS:
        return int(value)
    return value if isinstance(value, int) else None
