"""Arguments against a stranger's JSON Schema, in bounded time.

The schema was approved by a person, who could not see everything it does: patterns that take for ever, references in
circles, choices that multiply. Steps are counted, and patterns are left to the server, which checks them itself. What
cannot be checked is refused.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.tools.mcp.definition import shown

MOST_STEPS = 5_000
LONGEST_LINE = 300
_UNCHECKED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "format")


class _Spent(Exception):
    pass


def compiled(schema: Mapping[str, Any]) -> Callable[[Any], None]:
    """A check that raises `ToolFailed` with one line for arguments that do not fit."""
    from jsonschema import SchemaError, validators
    from referencing import Registry

    left = [0]
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)

    def counted(keyword: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, value: Any, instance: Any, parent: Any) -> Any:
            left[0] -= 1 + (len(value) // 50 if isinstance(value, list | dict) else 0)
            if left[0] < 0:
                raise _Spent
            if keyword == "additionalProperties" and "patternProperties" in parent:
                return
            yield from rule(validator, value, instance, parent) or ()

        return check

    rules = {name: counted(name, rule) for name, rule in kind.VALIDATORS.items() if name not in _UNCHECKED}
    rules |= dict.fromkeys(_UNCHECKED, _nothing) | {"uniqueItems": counted("uniqueItems", _unique)}
    bounded = validators.extend(kind, rules)
    try:
        kind.check_schema(dict(schema))
        usable = True
    except (SchemaError, RecursionError):
        usable = False
    checker = bounded(dict(schema), registry=Registry())

    def check(arguments: Any) -> None:
        left[0] = MOST_STEPS
        if not usable:
            raise ToolFailed("the tool cannot be used: its schema is not valid")
        try:
            error = next(iter(checker.iter_errors(arguments)), None)
        except (_Spent, RecursionError):
            raise ToolFailed("the tool cannot be used: its schema takes too long to check") from None
        except Exception as problem:  # noqa: BLE001 – a schema may break its checker in ways nobody lists
            raise ToolFailed(f"the tool cannot be used: its schema fails ({type(problem).__name__})") from None
        if error is not None:
            where = ".".join(str(part) for part in error.absolute_path) or "the arguments"
            raise ToolFailed(shown(f"{where}: {error.message}", LONGEST_LINE).replace("\n", " "))

    return check


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _unique(validator: Any, value: Any, instance: Any, parent: Any) -> Any:
    """Linear, where comparing each with each could take seconds."""
    from jsonschema import ValidationError

    if value and isinstance(instance, list):
        seen = {json.dumps(item, sort_keys=True) for item in instance}
        if len(seen) < len(instance):
            yield ValidationError("the items must differ")
