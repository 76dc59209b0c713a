"""Recorded exchanges with providers: reading a file of them and what each one amounts to in our own terms.

A recording is a file, gzipped or not, with one session a line. The readers are the ones that live calls use; this only finds out
which of them an exchange is for. What no reader is for (other protocols) is `Unsupported`, a value to be counted.
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

Kind = Literal["chat", "anthropic", "google", "unsupported"]


@noun
class Exchange:
    """One request and what was answered. `place` says where in the recording it stands."""

    place: str
    uri: str
    asked: Any
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def streamed(self) -> bool:
        """Whether the answer came as server-sent events, whatever its headers say."""
        text = self.body.decode("utf-8", "replace") if isinstance(self.body, bytes) else self.body
        return isinstance(text, str) and stream.is_stream(text)


@noun
class Unsupported:
    """An exchange in a protocol that pitboss does not speak."""

    uri: str


Outcome = ModelReply | Failure | Unsupported


def read(path: Path) -> Iterator[Exchange]:
    """Every exchange of a file, in its order."""
    with _open(path) as lines:
        for line in lines:
            if not line.strip():
                continue
            session: Any = reply.parse(line)
            for number, one in enumerate(session["interactions"]):
                yield Exchange(
                    f"{session.get('cassette', '')}#{number}",
                    one["uri"],
                    one.get("request_body"),
                    _status(one["status"]),
                    {str(name): _first(value) for name, value in (one.get("response_headers") or {}).items()},
                    _body(one.get("response_body")),
                )


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """Pressed or plain; what is neither JSON lines nor there is the person's to put right."""
    try:
        with path.open("rb") as plain:
            pressed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if pressed else path.open("rb") as lines:
            yield lines  # pyright: ignore[reportReturnType]
    except (OSError, EOFError, AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise UserError(
            f"{path} cannot be read as recorded sessions: {error}", "JSON lines, each with a list of interactions"
        ) from None


def kind(exchange: Exchange) -> Kind:
    """The protocol, judged by the address alone; hosts do not matter."""
    path = urlsplit(exchange.uri).path.rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/v1/messages"):
        return "anthropic"
    return "google" if path.endswith((":generateContent", ":streamGenerateContent")) else "unsupported"


def parse(exchange: Exchange) -> Outcome:
    """What an exchange amounts to."""
    which = kind(exchange)
    if which == "unsupported":
        return Unsupported(exchange.uri)
    body = exchange.body
    if which != "chat":
        # The native adapters need packages that not everybody has.
        from pitboss.models.native.recordings import parse_native

        return parse_native(which, body, exchange.status, exchange.headers)
    asked = urlsplit(exchange.uri).netloc
    if exchange.streamed and exchange.status < 300:
        return stream.read(body, asked)
    plain = reply.parse(body) if isinstance(body, str | bytes) else body
    if exchange.status >= 300:
        return reply.read_error(exchange.status, plain, exchange.headers, asked)
    return reply.read(plain, asked)


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _status(value: Any) -> int:
    """The number, also where a recorder keeps the words beside it."""
    return int(value["code"] if isinstance(value, dict) else value)


def _body(value: Any) -> Any:
    """The body itself, also where a recorder keeps it as a field of its own."""
    return value["string"] if isinstance(value, dict) and set(value) == {"string"} else value
