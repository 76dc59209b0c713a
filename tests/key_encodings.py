"""The encodings of a key that `docs/secrets.md` lists, implemented independently of the redactor."""

import base64
import html
import json
import struct
from collections.abc import Callable, Sequence
from urllib.parse import quote, quote_plus

Encoding = Callable[[str], str]


def split_by(separators: Sequence[str]) -> Encoding:
    """A separator between all letters, one after another."""

    def encode(text: str) -> str:
        return "".join(f"{letter}{separators[at % len(separators)]}" for at, letter in enumerate(text))

    return encode


def units(text: str) -> Sequence[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(data) // 2}H", data)


def wrapped(text: str) -> str:
    coded = base64.b64encode(text.encode()).decode()
    return "\r\n".join(coded[at : at + 19] for at in range(0, len(coded), 19))


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ESCAPES: dict[str, Encoding] = {
    "url": lambda text: quote(text, safe=""),
    "url, slashes kept": quote,
    "url, lower case": lambda text: quote(text, safe="").lower() if text.islower() else quote(text, safe=""),
    "url, whole": lambda text: "".join(f"%{code:02X}" for code in text.encode()),
    "url, whole, lower case": lambda text: "".join(f"%{code:02x}" for code in text.encode()),
    "url, twice": lambda text: quote("".join(f"%{code:02x}" for code in text.encode()), safe=""),
    "html": html.escape,
    "html entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "html entities, padded": lambda text: "".join(f"&#{ord(letter):06};" for letter in text),
    "html entities, hex": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "json": lambda text: json.dumps(text)[1:-1],
    "json, not ascii": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json, slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json, whole": lambda text: "".join(f"\\u{unit:04x}" for unit in units(text)),
    "json, twice": lambda text: "".join(f"\\\\u{unit:04X}" for unit in units(text)),
    "bytes": lambda text: "".join(f"\\x{code:02x}" for code in text.encode()),
}
SPLITS: dict[str, Encoding] = {
    "zero width": split_by(["\u200b", "\u200c\u200d", "\u2060", "\ufeff", "\u00ad"]),
    "controls": split_by(["\x01", "\x1b", "\x7f"]),
    "tag characters": split_by(["\U000e0041"]),
    "spaces": split_by([" "]),
    "white space": split_by(["\n", "\t", " \u2003", "\u00a0"]),
    "tags": split_by(["<b>", "</b>", "<i class='x'>", "<!-- -->"]),
}
BLOCKS: dict[str, Encoding] = {
    "base64": base64_of,
    "base64 unpadded": lambda text: base64_of(text).rstrip("="),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 wrapped": wrapped,
    "basic authorization": lambda text: base64_of(f"user:{text}"),
    "inside base64": lambda text: base64_of(f'{{"token": "{text}", "more": 1}}'),
    "hex": lambda text: text.encode().hex(),
    "hex, upper case": lambda text: text.encode().hex().upper(),
    "hex, bytes apart": lambda text: text.encode().hex(" "),
}
ENCODINGS: dict[str, Encoding] = {
    "plain": lambda text: text,
    "backwards": lambda text: text[::-1],
    **ESCAPES,
    **SPLITS,
    **BLOCKS,
    "form": quote_plus,
    "base64, twice": lambda text: base64_of(base64_of(text)),
}


def forms(key: str) -> set[str]:
    """A key in every encoding."""
    return {encode(key) for encode in ENCODINGS.values()}
