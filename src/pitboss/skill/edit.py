"""Change one field in the text of a skill document and leave every other character as it is, comments included.

The change is made in the text itself: the value is replaced where it stands, a new key is written after its neighbour, a
removed key is removed with its lines. The result is parsed again and must hold exactly the changed document; texts in which that
cannot be done in place (flow style, anchors) are rewritten by a round trip through the YAML library. JSON has no comments and is
always rewritten. A text whose lines all end in CRLF keeps that.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import orjson
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.skill.parse import parse
from pitboss.skill.yaml_write import MOST_DIGITS, entry, inline, written

REMOVED = None
"""As the value of a field: remove it. No field of a skill has another meaning when it is null than when it is left out."""

Keys = Callable[[tuple[str, ...]], Sequence[str]]
"""The keys that exist at a path, in the order in which they are written."""


def no_order(path: tuple[str, ...]) -> Sequence[str]:
    """For documents whose keys have no order: new ones go to the end."""
    del path
    return ()


def edit(text: str, path: Sequence[str], value: Any, suffix: str = ".yaml", keys: Keys = no_order) -> str:
    """The text with the field at `path` set to a plain value, or removed for None.

    The path has the keys as they are written in the text. Sections that are missing are added; those that become empty are
    removed. Raises `UserError` for a text that cannot be parsed, or in which another value would change.
    """
    if "\r\n" in text and text.count("\r") == text.count("\n") == text.count("\r\n"):
        return edit(text.replace("\r\n", "\n"), path, value, suffix, keys).replace("\n", "\r\n")
    if not path:
        raise UserError("no field is named", "for example risk.max_leverage")
    before = parse(text, suffix).value
    if not isinstance(before, dict):
        raise UserError("a skill is a map of keys", "start with `pitboss: 1`")
    plain = cast("dict[str, Any]", before)
    target = changed(plain, path, value)
    if _is_same(target, plain):
        return text
    is_json = suffix.lower() == ".json" or text.lstrip().startswith("{")
    for attempt in (_as_json,) if is_json else (_in_place, _round_trip):
        try:
            result = attempt(text, plain, tuple(path), value, keys)
            if _is_same(parse(result, suffix).value, target):
                return result
        except (UserError, YAMLError, _NotInPlace):
            continue
    raise UserError(
        f"{'.'.join(path)[:200]} cannot be changed in this text",
        "change it in the text itself: it holds a number out of the range of JSON, or a character that is not printable"
        if is_json
        else "change it in the text itself: it uses anchors or tags",
    )


def _is_same(first: Any, second: Any) -> bool:
    """Whether two plain values mean the same. Python takes `1` and `true` as equal; a document does not."""
    return codec.dumps(codec.number_fragments(first)) == codec.dumps(codec.number_fragments(second))


def changed(plain: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The plain document after the change."""
    document = deepcopy(dict(plain))
    key, *rest = path
    if rest:
        inner = document.get(key)
        section = changed(cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}, rest, value)
        if section or (isinstance(inner, dict) and not inner):
            document[key] = section
        elif isinstance(inner, dict):
            document.pop(key)
    elif value is REMOVED:
        document.pop(key, None)
    else:
        document[key] = value
    return document


class _NotInPlace(Exception):
    """The text has a form that is rewritten instead."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A key and its value in the text."""

    key: Any
    value: Any


def _as_json(text: str, plain: Mapping[str, Any], path: tuple[str, ...], value: Any, keys: Keys) -> str:
    del text, keys
    target = changed(plain, path, value)
    if not _is_exact_in_json(target):
        raise _NotInPlace
    return orjson.dumps(codec.number_fragments(target), option=orjson.OPT_INDENT_2).decode() + "\n"


def _is_exact_in_json(value: Any) -> bool:
    """Whether `codec.number_fragments` replaces nothing in a plain value."""
    if isinstance(value, dict):
        return all(_is_exact_in_json(part) for item in cast("dict[str, Any]", value).items() for part in item)
    if isinstance(value, list | tuple):
        return all(map(_is_exact_in_json, cast("Sequence[Any]", value)))
    if isinstance(value, str):
        return codec.printable(value) == value
    if value is None or isinstance(value, bool):
        return True
    number = codec.json_number(value)
    return number is not None and (number != 0 or value == 0)


def _in_place(text: str, plain: Mapping[str, Any], path: tuple[str, ...], value: Any, keys: Keys) -> str:
    node: Any = cast("Any", YAML(typ="safe", pure=True)).compose(text)
    at: tuple[str, ...] = ()
    for index, name in enumerate(path):
        if not _is_map(node) or node.flow_style or node.anchor is not None:
            raise _NotInPlace
        places = _places(node)
        last = index == len(path) - 1
        if value is REMOVED and name in places and (last or not _section_remains(plain, path, index)):
            return _without(text, places[name])
        if value is REMOVED and name not in places:
            return text
        if name not in places:
            return _with(text, node, places, name, _nested(path[index + 1 :], value), keys(at))
        if last or not (_is_map(places[name].value) and places[name].value.value):
            return _replaced(text, places[name], written(_nested(path[index + 1 :], value), _column(places[name])))
        if places[name].value.flow_style and places[name].value.anchor is None:
            return _replaced(text, places[name], inline(_at(changed(plain, path, value), path[: index + 1])))
        node, at = places[name].value, (*at, name)
    raise _NotInPlace


def _is_map(node: Any) -> bool:
    return isinstance(node, MappingNode)


def _is_scalar(node: Any) -> bool:
    return isinstance(node, ScalarNode)


def _places(node: Any) -> dict[str, _Place]:
    return {str(key.value): _Place(key, value) for key, value in node.value}


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _at(plain: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        plain = plain[name]
    return plain


def _column(place: _Place) -> int:
    return place.key.start_mark.column


def _section_remains(plain: Mapping[str, Any], path: tuple[str, ...], index: int) -> bool:
    """Whether the section at this step of the path is still in the document after the field is removed."""
    after = changed(plain, path, REMOVED)
    for name in path[: index + 1]:
        if name not in after:
            return False
        after = after[name]
    return True


def _end(text: str, place: _Place) -> int:
    """Where the value ends: before the comments and blank lines that follow a block."""
    start, end = place.value.start_mark.index, place.value.end_mark.index
    if place.value.style not in ("|", ">") if _is_scalar(place.value) else place.value.flow_style:
        return end
    lines = text[start:end].split("\n")
    column = _column(place)
    while len(lines) > 1:
        stripped = lines[-1].strip()
        indent = len(lines[-1]) - len(lines[-1].lstrip())
        if stripped and not (stripped.startswith("#") and indent <= column) and (indent > column or stripped[0] == "-"):
            break
        lines.pop()
    return start + len("\n".join(lines))


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _replaced(text: str, place: _Place, new: str) -> str:
    colon = text.index(":", place.key.end_mark.index) + 1
    empty = place.value.start_mark.index == place.value.end_mark.index
    end = colon if empty else _end(text, place)
    rest = text[end : _line_end(text, end)]
    after = text[end + len(rest) :]
    head, _, body = new.partition("\n")
    gap = rest[: len(rest) - len(rest.lstrip())]
    comment = rest.strip()
    if comment and not comment.startswith("#"):
        raise _NotInPlace
    line = text[text.rfind("\n", 0, colon) + 1 : colon] + (f" {head}" if head else "")
    if comment:
        old = end - (text.rfind("\n", 0, end) + 1) + len(gap)
        # A comment stays in its column if the new value leaves room for it.
        line += " " * max(old - len(line), 1) + comment if "\n" not in text[colon:end] else f"  {comment}"
    before = text[: text.rfind("\n", 0, colon) + 1]
    return before + line + (f"\n{body}" if "\n" in new else "") + after


def _with(text: str, node: Any, places: Mapping[str, _Place], name: str, value: Any, order: Sequence[str]) -> str:
    earlier = order[: list(order).index(name)] if name in order else ()
    before = next((key for key in reversed(earlier) if key in places), None)
    place = places[before] if before is not None else list(places.values())[-1]
    end = _line_end(text, max(_end(text, place), place.key.end_mark.index))
    new = entry(name, value, node.start_mark.column)
    is_section = node.start_mark.column == 0 and isinstance(value, dict)
    return text[:end] + ("\n\n" if is_section else "\n") + new + (text[end:] or "\n")


def _without(text: str, place: _Place) -> str:
    start = text.rfind("\n", 0, place.key.start_mark.index) + 1
    if text[start : place.key.start_mark.index].strip():
        raise _NotInPlace  # the first key of a list entry
    end = _line_end(text, max(_end(text, place), place.key.end_mark.index))
    return text[:start] + text[end + 1 :]


def _round_trip(text: str, plain: Mapping[str, Any], path: tuple[str, ...], value: Any, keys: Keys) -> str:
    """The document rewritten by the YAML library, which keeps comments but not every space."""
    del plain, keys
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    document: Any = cast("Any", yaml).load(text)
    sections = [document]
    for name in path[:-1]:
        if not isinstance(sections[-1].get(name), dict):
            if value is REMOVED:
                return text
            sections[-1][name] = CommentedMap()
        sections.append(sections[-1][name])
    if value is REMOVED:
        sections[-1].pop(path[-1], None)
        for section, name in reversed(list(zip(sections, path[:-1], strict=False))):
            if not section[name]:
                section.pop(name)
    else:
        sections[-1][path[-1]] = _commented(value)
    stream = io.StringIO()
    cast("Any", yaml).dump(document, stream)
    return stream.getvalue()


def _commented(value: Any) -> Any:
    if isinstance(value, dict):
        return CommentedMap({key: _commented(item) for key, item in cast("dict[str, Any]", value).items()})
    if isinstance(value, list | tuple):
        items = CommentedSeq([_commented(item) for item in cast("list[Any]", value)])
        cast("Any", items).fa.set_flow_style()
        return items
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > MOST_DIGITS:
            raise _NotInPlace
        return int(value) if value == int(value) else float(value)
    return value
