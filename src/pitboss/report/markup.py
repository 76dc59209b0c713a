"""HTML construction with escaping by default.

`Html` marks text that is already markup; `tag` builds an element and escapes every child and attribute that is not. Raw
text cannot pass unescaped by accident, because reports show text written by models and third parties.
"""

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "link", "input", "br", "hr"})
_DRAWN = frozenset({"path", "rect", "line", "circle", "use", "polyline"})

# Control characters break files; bidirectional overrides and lone surrogates can change how a line reads.
_UNPRINTABLE = dict.fromkeys(
    (
        *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0),
        *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF,
    ),
    "\ufffd",
)  # fmt: skip


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def text(value: object) -> Html:
    """Any value as escaped text."""
    if isinstance(value, Html):
        return value
    plain = str(value)
    if not plain.isprintable():
        plain = plain.replace("\r\n", "\n").translate(_UNPRINTABLE)
    return Html(escape(plain, quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Pieces one after another, each escaped unless it is markup."""
    return Html(text(between).join(text(part) for part in parts))


def with_code(value: str) -> Html:
    """Escaped text in which the parts between backticks are code. Only for sentences that the page itself writes."""
    return join(tag("code", part) if index % 2 else part for index, part in enumerate(value.split("`")))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. `class_` gives `class`, `data_x` gives `data-x`; None and False leave an attribute out."""
    element_head = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        element_head += f" {label}" if value is True else f' {label}="{text(value)}"'
    if name in _VOID:
        return Html(f"<{element_head}>")
    if name in _DRAWN and not children:
        return Html(f"<{element_head}/>")
    inner = "".join([child if isinstance(child, Html) else text(child) for child in children if child is not None])
    return Html(f"<{element_head}>{inner}</{name}>")
