"""Server-sent events, read from the whole text of a stream. The chat asks for one; some servers stream anyway."""

from collections.abc import Iterator
from typing import Any

from pitboss.models.json_body import parse_body

DONE = "[DONE]"
_FIELDS = ("data:", "event:", "id:", "retry:", ":")


def events(text: str) -> Iterator[tuple[str, str]]:
    """Name and data of every event. Comments are keep-alives; the last event may lack its blank line."""
    name, data = "", list[str]()
    for line in text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n"):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:
        yield name, "\n".join(data)


def json_events(text: str) -> list[dict[str, Any]] | None:
    """The data of every event as a JSON object; None where one of them is not an object."""
    objects: list[dict[str, Any]] = []
    for _, data in events(text):
        if data.strip() in ("", DONE):
            continue
        value = parse_body(data)
        if not isinstance(value, dict):
            return None
        objects.append(value)
    return objects


def is_stream(text: str) -> bool:
    """Whether a text consists of events, whatever its content type says."""
    return text.removeprefix("\ufeff").lstrip().startswith(_FIELDS)
