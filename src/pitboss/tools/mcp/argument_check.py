"""Validation of arguments against an untrusted JSON Schema, in bounded time.

The user approved the schema but may not have seen its cost: slow patterns, circular references, combinatorial choices.
Validation steps are counted; patterns are left to the server, which checks them itself. Arguments that cannot be checked
are refused.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.tools.mcp.definition import clean_text

MAX_STEPS = 5_000
MAX_LINE_CHARS = 300
_UNCHECKED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "format")


class _StepsExceeded(Exception):
    pass


def compile_check(schema: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function that raises `ToolFailed` with one line for arguments that do not match the schema."""
    from jsonschema import validators
    from referencing import Registry

    steps_left = [0]

    def with_limit(keyword: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, value: Any, instance: Any, parent: Any) -> Any:
            steps_left[0] -= 1 + (len(value) // 50 if isinstance(value, list | dict) else 0)
            if steps_left[0] < 0:
                raise _StepsExceeded
            if keyword == "additionalProperties" and "patternProperties" in parent:
                return
            yield from rule(validator, value, instance, parent) or ()

        return check

    checker: Any = None
    with suppress(Exception):  # an untrusted schema may make the library raise anything
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        kind.check_schema(dict(schema))
        rules = {name: with_limit(name, rule) for name, rule in kind.VALIDATORS.items() if name not in _UNCHECKED}
        rules |= dict.fromkeys(_UNCHECKED, _no_errors) | {"uniqueItems": with_limit("uniqueItems", _unique)}
        checker = validators.extend(kind, rules)(dict(schema), registry=Registry())

    def check(arguments: Any) -> None:
        steps_left[0] = MAX_STEPS
        if checker is None:
            raise ToolFailed("the tool cannot be used: its schema is not valid")
        try:
            error = next(iter(checker.iter_errors(arguments)), None)
        except (_StepsExceeded, RecursionError):
            raise ToolFailed("the tool cannot be used: its schema takes too long to check") from None
        except Exception as problem:  # noqa: BLE001 – an untrusted schema may make the validator raise anything
            raise ToolFailed(f"the tool cannot be used: its schema fails ({type(problem).__name__})") from None
        if error is not None:
            path = ".".join(str(part) for part in error.absolute_path) or "the arguments"
            raise ToolFailed(clean_text(f"{path}: {error.message}", MAX_LINE_CHARS).replace("\n", " "))

    return check


def _no_errors(*_: Any) -> tuple[()]:
    return ()


def _unique(validator: Any, value: Any, instance: Any, parent: Any) -> Any:
    """`uniqueItems` in linear time; the library compares all pairs, which could take seconds."""
    from jsonschema import ValidationError

    if value and isinstance(instance, list):
        distinct = {json.dumps(item, sort_keys=True) for item in instance}
        if len(distinct) < len(instance):
            yield ValidationError("the items must differ")
