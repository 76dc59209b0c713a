"""The rules of the predict engine, one file each, in the order of their file names.

A rule file has a docstring (it becomes documentation), a stable `CODE`, a `SCOPE` (`every` action or only `mints`) and
`check(case)`: a `Finding`, or the bare `Margin` where there is no objection. Adding a rule is adding a file.
"""

import importlib
import pkgutil
from collections.abc import Callable

from pitboss.core.noun import noun
from pitboss.core.verdict import Margin
from pitboss.venues.predict.case import Case, Finding, Scope


@noun
class Rule:
    """One rule of the book."""

    code: str
    scope: Scope
    check: Callable[[Case], Finding | Margin]
    doc: str


def _load() -> tuple[Rule, ...]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(Rule(module.CODE, module.SCOPE, module.check, module.__doc__ or "") for module in modules)


RULES: tuple[Rule, ...] = _load()
