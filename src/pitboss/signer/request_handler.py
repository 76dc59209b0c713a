"""`RequestHandler`: one line in, one reply out. It holds the key and uses it after the policy and the journal have agreed.

The key is kept in a closure: no attribute, repr or pickle contains it, and no exception passes its text on.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from pitboss.build import build
from pitboss.core.instant import Instant
from pitboss.signer.installed_schemes import scheme_named
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import (
    SCHEME,
    UNAVAILABLE,
    VERSION,
    SigningRefusal,
    SigningRequest,
    read_request,
    refuse,
)
from pitboss.signer.scheme_definition import Reservation, SigningScheme


class RequestHandler:
    """Answers the requests of one signing process."""

    __slots__ = ("_journal", "_now", "_scheme", "_sign", "address", "build")

    def __init__(self, key: bytes, scheme: SigningScheme, journal: SigningJournal, now: Callable[[], Instant]) -> None:
        self.address = scheme_named(scheme.name).keys.address(key)
        self.build = build()
        scheme.check_key(self.address)
        journal.make_tables(scheme.tables)
        self._sign: Callable[[Any], Any] = _signing(key, scheme)
        self._scheme = scheme
        self._journal = journal
        self._now = now

    def handle(self, line: bytes) -> dict[str, Any]:
        """Answer one request. A failure of the journal is a refusal: what cannot be counted is not signed."""
        request = read_request(line)
        if isinstance(request, SigningRefusal):
            return request.reply()
        try:
            return self._describe() if request.op == "describe" else self._signed(request)
        except sqlite3.Error:
            return refuse(UNAVAILABLE).reply()

    def _signed(self, request: SigningRequest) -> dict[str, Any]:
        scheme = self._scheme
        if request.scheme != scheme.name:
            return refuse(SCHEME).reply()
        content = scheme.read(request.payload)
        if isinstance(content, SigningRefusal):
            return content.reply()
        refusal = scheme.check(content)
        if refusal is not None:
            return refusal.reply()
        place = scheme.reserve(self._journal, request.request_id, content, self._now())
        if not isinstance(place, Reservation):
            return place.reply()
        signed = place.signed
        if signed is None:
            signed = self._sign(place.content)
            scheme.store(self._journal, place, signed)
        return {"ok": True, "build": self.build, **scheme.reply(place, signed)}

    def _describe(self) -> dict[str, Any]:
        facts = self._scheme.describe(self._journal, self._now())
        process = {"version": VERSION, "build": self.build, "schemes": [self._scheme.name], "address": self.address}
        return {"ok": True, **process, **facts}

    def __repr__(self) -> str:
        return f"RequestHandler({self.address})"

    def __reduce__(self) -> str:
        raise TypeError("what holds a key is never pickled or copied")


def _signing(key: bytes, scheme: SigningScheme) -> Callable[[Any], Any]:
    def sign(content: Any) -> Any:
        return scheme.sign(content, key)

    return sign
