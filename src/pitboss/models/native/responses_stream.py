"""Joins a stream of the Responses protocol into the response that its plain reply would be. Only the chat asks for one.

The last event of a stream holds the whole response. The items that were announced before are used where a server leaves
them out of it.
"""

from typing import Any

from pitboss.models.failures import NO_HEADERS, Failure, classify, malformed
from pitboss.models.json_body import as_dict, as_str

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "response.done"})


def join_stream(events: list[dict[str, Any]], name: str) -> dict[str, Any] | Failure:
    """The response that the events make."""
    response: dict[str, Any] | None = None
    items: dict[str, dict[str, Any]] = {}
    for event in events:
        kind = as_str(event.get("type"))
        if kind == "error" or (event.get("error") and not isinstance(event.get("response"), dict)):
            return classify(200, event if event.get("error") else {"error": event}, NO_HEADERS, name)
        if kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            items[str(event.get("output_index", len(items)))] = event["item"]
        elif kind in _LAST:
            response = as_dict(event.get("response"))
    if response is None:
        return malformed(name, "the stream ended in the middle of the reply")
    return response if response.get("output") else response | {"output": list(items.values())}
