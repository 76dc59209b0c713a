"""A list of checks before something that matters, each with its result: the form of every preflight."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun


@noun
class Check:
    """One check and its result."""

    name: str
    ok: bool
    detail: str


class Refused(Exception):
    """A check that failed, with its reason."""


async def checked(checks: list[Check], name: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """Add the result of a check; return what it found, if anything.

    The work returns its detail, or its detail and a value; it fails by `Refused`, `UserError` or `TransientError`.
    """
    try:
        result = await work()
    except UserError as error:
        checks.append(Check(name, False, f"{error.message}; {error.hint}" if error.hint else error.message))
    except (TransientError, Refused) as error:
        checks.append(Check(name, False, str(error)))
    else:
        detail, value = result if isinstance(result, tuple) else (result, None)
        checks.append(Check(name, True, detail))
        return value
    return None


def checklist_document(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks as JSON: `{ok, checks: [{name, ok, detail}]}`."""
    rows = [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks]
    return {"ok": all(check.ok for check in checks), "checks": rows}
