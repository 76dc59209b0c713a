"""Reads and writes the description inside a PNG file: which figures the picture in README shows.

A picture of the demo's report is taken by hand, in a browser, 1200 × 2025. Its figures are written into the file with

    python -m pitboss_dev.docs.picture docs/report.png "return +1.56%, …"

so that a test can compare them with those of the demo.
"""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KIND, KEYWORD = b"iTXt", b"Description"
UNCOMPRESSED = b"\0\0\0\0\0"
"""End of the keyword, no compression, no language, no translated keyword."""


def description_of(picture: bytes) -> str:
    """The description of a picture; empty if it has none."""
    texts = [body for kind, body in _chunks(picture) if kind == KIND and body.startswith(KEYWORD + b"\0")]
    return texts[0][len(KEYWORD + UNCOMPRESSED) :].decode() if texts else ""


def described(picture: bytes, description: str) -> bytes:
    """The same picture with this description and no other text."""
    kept = [(kind, body) for kind, body in _chunks(picture) if not kind.endswith((b"EXt", b"TXt"))]
    kept.insert(1, (KIND, KEYWORD + UNCOMPRESSED + description.encode()))
    parts = (struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in kept)
    return SIGNATURE + b"".join(parts)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(picture):
        (length,) = struct.unpack_from(">I", picture, place)
        yield picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]
        place += length + 12


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_bytes(described(file.read_bytes(), sys.argv[2]))
