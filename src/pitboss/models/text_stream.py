"""`TextStream`: the text of a streamed reply while it arrives, for a person who is waiting for it.

It reads the same events as `chat/stream.py` and `native/*_stream.py`, which read the whole reply when it has ended and alone decide
what it means: calls, errors and an early end are not looked for here.
"""

import codecs
from collections.abc import Callable
from typing import Any

from pitboss.models.json_body import parse_body
from pitboss.models.server_events import events


class TextStream:
    """Collects the text of one attempt. `tell` is called with all of it so far whenever more has arrived."""

    def __init__(
        self,
        text_of: Callable[[dict[str, Any]], str],
        tell: Callable[[str], None],
        hide: Callable[[str], str] | None = None,
    ) -> None:
        """`text_of` gives the piece of text that an event holds; `hide` removes secrets from a text."""
        self._text_of = text_of
        self._tell = tell
        self._hide = hide
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unread = ""
        self._text = ""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the response. An event counts once its blank line has arrived."""
        unread = (self._unread + self._decoder.decode(piece)).replace("\r\n", "\n")
        whole, _, self._unread = unread.rpartition("\n\n")
        before = len(self._text)
        for _, data in events(whole):
            event = parse_body(data)
            if isinstance(event, dict):
                self._text += self._text_of(event)
        if len(self._text) > before:
            self._tell(self._text if self._hide is None else self._hide(self._text))
