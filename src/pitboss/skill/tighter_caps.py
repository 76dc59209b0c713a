"""Whether caps are at least as tight as others: a deployment may tighten those of its skill, never loosen them. Pure.

It reads the `risk` part of two documents of one venue. A lower number is tighter, except for fields that begin with `min_`,
where a higher one is; a limit is tighter than none; of lists, a part is tighter than the whole, and an empty list, which
means no restriction, is the loosest. Any other change counts as loosening: what cannot be compared is not allowed.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

Numbers = int | float | Decimal


def loosened(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "risk") -> list[str]:
    """The fields that `after` loosens, by their path."""
    names = sorted({*before, *after})
    return [each for name in names for each in _field(f"{path}.{name}", name, before.get(name), after.get(name))]


def tightened(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The caps `before` with those fields of `after` that are tighter, and no others."""
    fields: dict[str, Any] = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            fields[name] = tightened(cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", new))
            continue
        chosen = after if old != new and _is_tighter(name, old, new) else before
        if name in chosen:
            fields[name] = chosen[name]
    return fields


def _field(path: str, name: str, before: Any, after: Any) -> list[str]:
    if before == after:
        return []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return loosened(cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after), path)
    return [] if _is_tighter(name, before, after) else [path]


def _is_tighter(name: str, before: Any, after: Any) -> bool:
    if before is None:
        return not name.startswith("min_") or _is_number(after)
    if _is_number(before) and _is_number(after):
        return bool(after > before) if name.startswith("min_") else bool(after < before)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        rest, whole = cast("Sequence[Any]", after), cast("Sequence[Any]", before)
        return bool(rest) and (not whole or all(each in whole for each in rest))
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, Numbers) and not isinstance(value, bool)
