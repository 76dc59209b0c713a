"""Text for people from values that strangers wrote: one line, no control or formatting characters, not too long."""

import unicodedata
from decimal import Context, Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.money import text

MOST_CHARS = 120
_WEI_PER_ETH = Decimal(10**18)
_EXACT = Context(prec=100)


def amount_text(wei: Any) -> str:
    """An amount in wei and in ETH, both exact."""
    if not isinstance(wei, str) or not wei.isascii() or not wei.isdigit() or len(wei) > 78:
        return "an unreadable amount"
    return f"{int(wei):,} wei ({eth_text(Decimal(wei))})"


def eth_text(wei: Decimal) -> str:
    """An amount of wei in ETH, exact."""
    return f"{text(_EXACT.divide(wei, _WEI_PER_ETH))} ETH"


def plain_text(value: Any, most: int = MOST_CHARS) -> str:
    """A value on one line, text as it is and others as JSON, without control or formatting characters, cut if too long."""
    written = value if isinstance(value, str) else codec.dumps(codec.number_fragments(value)).decode()
    shown = "".join(
        " " if letter.isspace() else letter if unicodedata.category(letter)[0] != "C" else "�" for letter in written
    )
    return shown if len(shown) <= most else f"{shown[:most]}… (and {len(shown) - most} more characters)"
