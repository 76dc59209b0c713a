"""Recorded exchanges with providers: reads a file of them, and each exchange with the reader that live calls use.

A recording is a file, gzipped or not, with one session per line. An exchange in a protocol without a reader is
`Unsupported`, a value that can be counted.
"""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import urlsplit

from pitboss.core.errors import UserError
from pitboss.core.noun import noun
from pitboss.core.ports import ModelReply
from pitboss.models.chat import reply, stream
from pitboss.models.failures import Failure
from pitboss.models.json_body import parse_body
from pitboss.models.native import anthropic_reply, converse, google_reply, responses_reply
from pitboss.models.native.reply import ReplyContext
from pitboss.models.server_events import is_stream

Kind = Literal["chat", "anthropic", "google", "responses", "bedrock", "unsupported"]


@noun
class Exchange:
    """One request and its response. `id` names the recording and its position there."""

    id: str
    uri: str
    request: Any
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def streamed(self) -> bool:
        """Whether the response consists of server-sent events, whatever its headers say."""
        text = self.body.decode("utf-8", "replace") if isinstance(self.body, bytes) else self.body
        return isinstance(text, str) and is_stream(text)


@noun
class Unsupported:
    """An exchange in a protocol that pitboss does not speak."""

    uri: str


Outcome = ModelReply | Failure | Unsupported
MOST_LINE_BYTES = 64 * 2**20


def read(path: Path) -> Iterator[Exchange]:
    """Every exchange of a file, in order."""
    with _open(path) as lines:
        while line := lines.readline(MOST_LINE_BYTES + 1):  # a compressed line may be far longer than its file
            if len(line) > MOST_LINE_BYTES:
                raise UserError(
                    f"{path} has a line of more than {MOST_LINE_BYTES >> 20} MB", "one session in each line"
                )
            if not line.strip():
                continue
            session: Any = parse_body(line)
            for number, entry in enumerate(session["interactions"]):
                yield Exchange(
                    f"{session.get('cassette', '')}#{number}",
                    entry["uri"],
                    entry.get("request_body"),
                    _status(entry["status"]),
                    {str(name): _first(value) for name, value in (entry.get("response_headers") or {}).items()},
                    _body(entry.get("response_body")),
                )


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The lines of a file, compressed or not. A file that is missing or not of JSON lines is a `UserError`."""
    try:
        with path.open("rb") as plain:
            is_gzip = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if is_gzip else path.open("rb") as lines:
            yield lines  # pyright: ignore[reportReturnType]
    except (OSError, EOFError, AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise UserError(
            f"{path} cannot be read as recorded sessions: {error}", "JSON lines, each with a list of interactions"
        ) from None


def kind(exchange: Exchange) -> Kind:
    """The protocol, by the path of the address; the host does not matter."""
    path = urlsplit(exchange.uri).path.rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/v1/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/converse"):
        return "bedrock"
    return "google" if path.endswith((":generateContent", ":streamGenerateContent")) else "unsupported"


def parse(exchange: Exchange) -> Outcome:
    """What the response of an exchange means."""
    which = kind(exchange)
    if which == "unsupported":
        return Unsupported(exchange.uri)
    body, host = exchange.body, urlsplit(exchange.uri).netloc
    if which == "anthropic":
        return anthropic_reply.read(body, exchange.status, exchange.headers, ReplyContext("anthropic/recorded"))
    if which == "responses":
        return responses_reply.read(body, exchange.status, exchange.headers, ReplyContext(f"{host}/recorded"))
    if which == "bedrock":
        return converse.read(body, exchange.status, exchange.headers, ReplyContext("bedrock/recorded"))
    if which == "google":
        return google_reply.read(body, exchange.status, exchange.headers, ReplyContext("google/recorded"))
    if exchange.streamed and exchange.status < 300:
        return stream.read(body, host)
    plain = parse_body(body) if isinstance(body, str | bytes) else body
    if exchange.status >= 300:
        return reply.read_error(exchange.status, plain, exchange.headers, host)
    return reply.read(plain, host)


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _status(value: Any) -> int:
    """The status as a number, also where the recorder stored its text with it."""
    return int(value["code"] if isinstance(value, dict) else value)


def _body(value: Any) -> Any:
    """The body, also where the recorder stored it in a field of its own."""
    return value["string"] if isinstance(value, dict) and set(value) == {"string"} else value
