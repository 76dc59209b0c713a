"""Removes secret values from text that came from outside, in any documented encoding: the only place that does so.

`ValueRedactor.hide` serves results of MCP servers, replies and errors of providers, downloads, logs and output alike. It
works on known values, not on patterns, so it need not guess what a key looks like. The order is fixed: invisible characters
are ignored first, then escapes (`%41`, `&#65;`, `\\u0041`), white space and tags; then base64 and hex are decoded, and
what they hold is read in the same way. The list is in `docs/secrets.md`; other alphabets and ciphers are not recognised.

A text without a secret is returned as it is. In one with a secret only the characters that encode it are replaced.
"""

import html
import re
from base64 import b64encode, urlsafe_b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pitboss.core.rewrite import Rewrite, Span, TracedText, rewrite
from pitboss.prompt.render import INVISIBLE

HIDDEN = "***"
SHORTEST = 8
"""Shorter values are not removed: they are words (`ollama`, `none`) that occur in ordinary messages."""
MOST_LAYERS = 3
"""How many base64 or hex encodings may lie inside one another."""
MOST_PRECISE = 250_000
"""A longer text that holds an encoded secret is replaced whole: finding the place would take too long."""

_CONTROLS = bytes(code for code in (*range(32), 127) if not chr(code).isspace())
_INVISIBLE_BYTES = b"".join(character.encode("utf-8", "ignore")[:1] for character in INVISIBLE)
_TEXT_BYTES = {*range(32, 127), *b"\t\n\r", *range(0x80, 0xC0), *_INVISIBLE_BYTES}
"""Bytes of ASCII text and of the invisible characters that may split it."""


def _has_invisible(text: str) -> bool:
    return not text.isascii() or len(text.encode().translate(None, _CONTROLS)) < len(text)


def _has_escape(text: str) -> bool:
    return "\\" in text or "%" in text or "&" in text


_NOT_HEX = re.compile(r"[%\\x]+")


def _unescaped(match: "re.Match[str]") -> str:
    """The characters that an escape stands for; nothing for an escaped line end."""
    code = match[1] or match[2] or match[4]
    if code:
        return chr(int(code, 16))
    if match[5]:
        return bytes.fromhex(_NOT_HEX.sub("", match[5])).decode("utf-8", "ignore")
    return _entity(match[0]) if match[0][0] == "&" else match[3] or ""


_entity = lru_cache(maxsize=4_096)(html.unescape)

_NO_INVISIBLE = Rewrite(re.compile(f"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{INVISIBLE}]+"), may_match=_has_invisible)
_NO_ESCAPES = Rewrite(
    re.compile(
        # It begins with a set of characters, by which the engine skips text without escapes.
        r"""[\\%&](?:(?<=\\)(?:u([0-9A-Fa-f]{4})|x([0-7][0-9A-Fa-f])|[nrtbf]|(["'/\\]))"""
        r"|(?<=%)([0-7][0-9A-Fa-f])"
        r"|(?:(?<=%)|(?<=\\)x)([89A-Fa-f][0-9A-Fa-f](?:(?:%|\\x)[89A-Fa-f][0-9A-Fa-f])*)"
        # Without its semicolon an entity may be cut by something that is removed only afterwards.
        r"|(?<=&)(?:#0*+[0-9]{1,7}+|#[xX]0*+[0-9A-Fa-f]{1,6}+|[A-Za-z][A-Za-z0-9]{1,30}+)(?:;|(?![\\%<\s])))"
    ),
    _unescaped,
    _has_escape,
)
_NO_SPACE = Rewrite(re.compile(r"\s+"), may_match=lambda text: text.split(None, 1) != [text])
_NO_TAGS = Rewrite(re.compile("<[^<>]*>"), may_match=lambda text: "<" in text)
_READ_PLAIN = (_NO_INVISIBLE, _NO_ESCAPES)
_READ_JOINED = (_NO_INVISIBLE, _NO_SPACE, _NO_ESCAPES)
_READ_UNTAGGED = (_NO_INVISIBLE, _NO_SPACE, _NO_TAGS, _NO_ESCAPES)
_READINGS = (_READ_PLAIN, _READ_JOINED, _READ_UNTAGGED)
"""A text is searched after each of these, because a tag or an escape may also be a part of a secret, or hold one."""

_FROM_UTF8 = (
    Rewrite(
        re.compile("[\xc2-\xf4][\x80-\xbf]{1,3}|[\x80-\xff]"),
        lambda match: match[0].encode("latin-1").decode("utf-8", "ignore"),
    ),
)


class ValueRedactor:
    """Removes values from texts. Values too short to be secrets are ignored."""

    __slots__ = ("_base64", "_bytes", "_hex", "_lower", "_pattern", "_shortest", "_texts")

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._lower = tuple(dict.fromkeys(form.lower() for form in longest_first))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)
        self._shortest = min(map(len, forms), default=0)
        least = max(self._shortest, 1)
        self._base64 = re.compile(f"[A-Za-z0-9+/]{{{least * 8 // 6},}}")
        self._hex = re.compile(f"[0-9A-Fa-f]{{{least * 2},}}")
        self._texts = re.compile(b"[^\\0]{%d,}" % least)
        text_bytes = _TEXT_BYTES.union(*(form.encode("utf-8", "ignore") for form in forms))
        self._bytes = bytes(code if code in text_bytes else 0 for code in range(256))

    def hide(self, text: str) -> str:
        """The text without the values."""
        if not self._lower or len(text) < self._shortest or not self._holds(text, MOST_LAYERS):
            return text
        if len(text) > MOST_PRECISE:
            hidden = self._pattern.sub(HIDDEN, text)
        else:
            hidden = _without(text, sorted(self._spans(text, MOST_LAYERS)))
        return HIDDEN if self._holds(hidden, MOST_LAYERS) else hidden

    def _is_in(self, text: str) -> bool:
        lower = text.lower()  # nearly always there is no match, and this is ten times faster than the pattern
        return any(form in lower for form in self._lower)

    def _holds(self, text: str, layers: int) -> bool:
        """Whether a value is in a text, at most `layers` encodings in base64 or hex deep."""
        if self._is_in(text):
            return True
        dense = "".join(text.split())  # much faster than the pattern
        joined = rewrite(dense, _READ_JOINED)
        untagged = rewrite(dense, _READ_UNTAGGED) if "<" in joined else joined
        views = {rewrite(text, _READ_PLAIN), joined, untagged} - {text}
        return any(self._is_in(view) for view in views) or any(
            self._is_encoded_in(view, layers) for view in {joined, untagged}
        )

    def _is_encoded_in(self, view: str, layers: int) -> bool:
        if not layers:
            return False
        decoded = ",".join(dict.fromkeys(self._decoded(view)))
        return len(decoded) >= self._shortest and self._holds(decoded, layers - 1)

    def _decoded(self, view: str) -> Iterator[str]:
        """What may be encoded in a text, at every alignment. Runs of characters are decoded together, which is faster."""
        runs = self._base64.findall(_standard(view))
        for shift in range(4) if runs else ():
            yield self._text(a2b_base64("LCws".join([run[shift:] + "AAA"[: (shift - len(run)) % 4] for run in runs])))
        runs = self._hex.findall(view)
        for shift in range(2) if runs else ():
            yield self._text(bytes.fromhex("2c".join([run[shift:] + "0"[: (shift - len(run)) % 2] for run in runs])))

    def _text(self, data: bytes) -> str:
        """The texts among decoded bytes that are long enough for a value."""
        return b",".join(self._texts.findall(data.translate(self._bytes, _CONTROLS))).decode("utf-8", "ignore")

    def _spans(self, text: str, layers: int) -> Iterator[Span]:
        """The places of the values in a text that holds some."""
        for reading in ((), *_READINGS):
            traced = TracedText(text)
            traced.rewrite(reading)
            if self._is_in(traced.text):
                yield from (traced.source(match.span()) for match in self._pattern.finditer(traced.text))
            if reading in (_READ_JOINED, _READ_UNTAGGED) and self._is_encoded_in(traced.text, layers):
                yield from (traced.source(span) for span in self._encoded_spans(traced.text, layers - 1))

    def _encoded_spans(self, view: str, layers: int) -> Iterator[Span]:
        for pattern, bits, unit in ((self._base64, 6, 4), (self._hex, 4, 2)):
            for match in pattern.finditer(_standard(view) if bits == 6 else view):
                for shift in range(min(unit, len(match[0]))):
                    run = match[0][shift:] + "AAA"[: (shift - len(match[0])) % unit]
                    data = a2b_base64(run) if bits == 6 else bytes.fromhex(run)
                    if not self._holds(self._text(data), layers):
                        continue
                    decoded = TracedText(data.decode("latin-1"))
                    decoded.rewrite(_FROM_UTF8, rounds=1)
                    at = match.start() + shift
                    for span in self._spans(decoded.text, layers):
                        start, end = decoded.source(span)
                        yield at + start * 8 // bits, min(match.end(), at - (-end * 8 // bits))


def _forms(value: str) -> set[str]:
    """A value as each reading shows it, also backwards, and in base64, which can only be decoded with its case unchanged."""
    data = value.encode("utf-8", "surrogatepass")
    forms = {value, value.replace(" ", "+")}
    for reading in _READINGS:
        value = rewrite(value, reading)
        forms.add(value)
    forms |= {form[::-1] for form in forms}
    for shift in range(3):
        # The characters that do not depend on what surrounds the value: it may be encoded with a text around it.
        inner = slice(-(-shift * 8 // 6), (shift + len(data)) * 8 // 6)
        forms |= {encode(b"\0" * shift + data).decode()[inner] for encode in (b64encode, urlsafe_b64encode)}
    return {form for form in forms if len(form) >= SHORTEST}


def _standard(text: str) -> str:
    """base64url in the alphabet of base64."""
    return text.replace("-", "+").replace("_", "/")


def _without(text: str, spans: Iterable[Span]) -> str:
    pieces, at = list[str](), -1
    for start, end in spans:
        if start > at:
            pieces += (text[max(at, 0) : start], HIDDEN)
        at = max(at, end)
    return "".join((*pieces, text[max(at, 0) :]))
