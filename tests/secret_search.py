"""Searches files, databases, archives and output of a program for secrets.

It shares no code with the redactor, so that it finds what the redactor misses.
"""

import base64
import bz2
import gzip
import io
import lzma
import re
import sqlite3
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import quote

import zstandard

DEEPEST = 6
MOST_DECODED = 200_000
_CONTROLS = bytes([*range(0x21), 0x7F])
_SPLITTING = re.compile(rb"\\[nrt]|\xc2[\xa0\xad]|\xe2\x80[\x80-\x8f]|\xe2\x81\xa0|\xef\xbb\xbf|\xf3\xa0..|<[^<>]*>")
_ESCAPED = re.compile(
    rb"\\+(?:u00|x)([0-9a-fA-F]{2})|\\+u(?:[dD][89a-fA-F]|20)[0-9a-fA-F]{2}|\\+u(?:feff|FEFF)|%([0-9a-fA-F]{2})|&#0*([0-9]+);|&#x([0-9a-f]+);"
)
_RUNS = re.compile(rb"[A-Za-z0-9+/]{40,}")


def _letter(match: "re.Match[bytes]") -> bytes:
    if match[3]:
        return chr(int(match[3])).encode() if int(match[3]) < 0xD800 else b""
    code = match[1] or match[2] or match[4]
    return bytes([int(code, 16)]) if code and len(code) <= 2 else b""


@cache
def shapes(secret: str) -> dict[str, bytes]:
    """The ways in which a secret may be written. Halves, because a text that was cut may hold one."""
    plain = secret.encode()
    middle = len(secret) // 2
    found = {
        "plain": plain,
        "first half": plain[:middle],
        "second half": plain[middle:],
        "lower case": plain.lower(),
        "upper case": plain.upper(),
        "hex": plain.hex().encode(),
        "upper hex": plain.hex().upper().encode(),
        "url": quote(secret, safe="").encode(),
        "lower url": quote(secret, safe="").lower().encode(),
        "escaped slashes": secret.replace("/", "\\/").encode(),
        "escaped letters": "".join(f"\\u{ord(letter):04x}" for letter in secret).encode(),
        "utf-16": secret.encode("utf-16-le"),
        "backwards": plain[::-1],
    }
    for shift in range(3):
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            coded = encode(b"\0" * shift + plain)
            found[f"{name}, {shift} off"] = coded[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6]
    return found


def leaks(secrets: dict[str, str], content: bytes, where: str) -> list[str]:
    """Every secret that is in there, as a line each. The line does not hold the secret itself."""
    wanted = [(name, form, shape) for name, secret in secrets.items() for form, shape in shapes(secret).items()]
    found: list[str] = []
    for place, layer in _table_layers(content) if content.startswith(b"PAR1") else _layers(content, "", 0):
        found += [f"{name} ({form}) in {where}{place}" for name, form, shape in wanted if shape in layer]
    return found


def leaks_below(secrets: dict[str, str], folder: Path) -> list[str]:
    """The same over every file of a folder and their names."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found += leaks(secrets, name.encode(), f"the name {name}")
        if path.is_file():
            found += leaks(secrets, path.read_bytes(), name)
    return found


@lru_cache(maxsize=256)
def _table_layers(content: bytes) -> tuple[tuple[str, bytes], ...]:
    """The same for files of market data, which many workspaces have copies of."""
    return tuple(_layers(content, "", 0))


def _layers(content: bytes, where: str, depth: int) -> Iterator[tuple[str, bytes]]:
    """The content itself, as it reads without what splits or escapes letters, and everything that is packed into it."""
    yield where, content
    plain = content
    while (joined := _ESCAPED.sub(_letter, _SPLITTING.sub(b"", plain.translate(None, _CONTROLS)))) != plain:
        yield f"{where}, joined", joined
        plain = joined
    for run in _RUNS.findall(plain) if depth < DEEPEST and len(plain) < MOST_DECODED else ():
        with suppress(ValueError):
            yield f"{where}, decoded", base64.b64decode(base64.b64decode(run + b"=" * (-len(run) % 4)) + b"==")
    if depth < DEEPEST:
        for name, inner in _inside(content):
            yield from _layers(inner, f"{where} > {name}", depth + 1)


def _inside(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
            yield "zstd", reader.read()
    elif content.startswith(b"\x1f\x8b"):
        yield "gzip", gzip.decompress(content)
    elif content.startswith(b"BZh"):
        yield "bz2", bz2.decompress(content)
    elif content.startswith(b"\xfd7zXZ"):
        yield "xz", lzma.decompress(content)
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                handle = archive.extractfile(member)
                if handle is not None:
                    yield member.name, handle.read()
    elif content.startswith(b"SQLite format 3\0"):
        yield from _cells(content)


def _cells(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Every value of a database; the caller unpacks packed ones."""
    connection = sqlite3.connect(":memory:")
    try:
        header = bytearray(content)
        header[18:20] = b"\x01\x01"  # a copy without its write-ahead log: read what the file itself holds
        connection.deserialize(bytes(header))
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, str | bytes):
                        yield table, value.encode("utf-8", "replace") if isinstance(value, str) else value
    finally:
        connection.close()
