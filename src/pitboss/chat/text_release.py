"""`TextRelease`: shows the text of an answer while the model writes it, and never a number that was not checked.

Text is released by the sentence: a sentence is shown when it has ended and the facts that were read so far hold its numbers. The
first one that does not pass holds back everything after it until the answer is complete and was judged. A reply that turns out not
to be the answer (it calls tools, is refused, breaks off) is withdrawn.
"""

import json
import re
from collections.abc import Callable, Iterator

from pitboss.chat.number_check import FactNumbers, unsupported_numbers
from pitboss.core import codec
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.call import CallContext, ModelClient

PIECE = 80
_SENTENCE_END = re.compile(r"[.!?:][\"')\]]*\s+|\n+")
_ANSWER_OBJECT = re.compile(r'\s*\{\s*"text"\s*:\s*"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')


class TextRelease:
    """The text of one answer on its way. `tell` is given the next piece, or None when all pieces before are withdrawn."""

    def __init__(self, facts: FactNumbers, tell: Callable[[str | None], None]) -> None:
        self._facts = facts
        self._tell = tell
        self._released = ""

    def arrived(self, text: str) -> None:
        """Release what can be released of a reply that has come this far."""
        answer = codec.printable(answer_so_far(text))
        if not answer.startswith(self._released):
            self.withdraw()
        checked = self._released
        for end in _sentence_ends(answer, len(checked)):
            if unsupported_numbers(answer[:end], self._facts):
                break
            checked = answer[:end]
        self._release(checked)

    def withdraw(self) -> None:
        """Take back what was released: it is not the answer."""
        if self._released:
            self._released = ""
            self._tell(None)

    def finish(self, text: str) -> None:
        """Release the rest of the answer, which was judged as a whole, in pieces of some words."""
        if not text.startswith(self._released):
            self.withdraw()
        for end in _piece_ends(text, len(self._released)):
            self._release(text[:end])

    def _release(self, text: str) -> None:
        delta, self._released = text[len(self._released) :], text
        if delta:
            self._tell(delta)


class StreamedModel:
    """A model whose text is given to `on_text` while it arrives, where its client can stream."""

    def __init__(self, client: ModelClient, on_text: Callable[[str], None]) -> None:
        self.name = client.name
        self._client = client
        self._on_text = on_text

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make the call; the reply is the whole one."""
        return (await self._client.call(request, CallContext(on_text=self._on_text))).reply_or_raise()


def answer_so_far(text: str) -> str:
    """The beginning of the answer in the beginning of a reply: the text itself, or `text` of a JSON object."""
    if not text.lstrip().startswith("{"):
        return text.lstrip()
    match = _ANSWER_OBJECT.match(text)
    return "" if match is None else json.loads(f'"{match[1]}"', strict=False).lstrip()


def _sentence_ends(text: str, start: int) -> Iterator[int]:
    """Where sentences end after a place, outside of citations."""
    for match in _SENTENCE_END.finditer(text, start):
        before = text[: match.end()]
        if before.rfind("[") <= before.rfind("]"):
            yield match.end()


def _piece_ends(text: str, start: int) -> Iterator[int]:
    while start < len(text):
        end = text.find(" ", start + PIECE)
        start = len(text) if end < 0 else end + 1
        yield start
