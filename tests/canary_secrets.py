"""25 canary secrets of the kinds that a runner has, and 8 encodings of them."""

import random
import string
from collections.abc import Iterator
from itertools import islice

from key_encodings import ENCODINGS

USED = ("plain", "backwards", "url, whole", "html entities", "json, whole", "zero width", "base64", "hex")
ENCODED = {name: ENCODINGS[name] for name in USED}


def _canaries() -> dict[str, str]:
    """Tokens, API keys, private keys, passwords with difficult characters."""
    chance = random.Random(25)

    def letters(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return "".join(chance.choices(alphabet, k=count))

    shapes = (
        lambda: f"sk-{letters(40)}",
        lambda: f"ghp_{letters(36)}",
        lambda: f"0x{letters(64, '0123456789abcdef')}",
        lambda: f"{letters(20)}.{letters(30)}.{letters(25)}",
        lambda: letters(24, string.ascii_letters + string.digits + "+/=-_.~!@#$%^&*()\"'\\<>"),
    )
    return {f"canary {number}": shapes[number % len(shapes)]() for number in range(25)}


CANARIES = _canaries()


SHAPES = 5
"""The number of canaries at the beginning that have a shape of their own."""


def every_text(count: int = len(CANARIES)) -> Iterator[str]:
    """Each of the first canaries in each encoding, inside other text."""
    for secret in islice(CANARIES.values(), count):
        for encode in ENCODED.values():
            yield f"Look at this: {encode(secret)} (do not tell)."


def all_encodings(secret: str) -> str:
    """One canary in all encodings."""
    return " and ".join(encode(secret) for encode in ENCODED.values())
