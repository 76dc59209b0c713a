"""A book of rules: what a rule is, how those of a venue are found, and what a case gets to hear from all of them.

A rule file has a docstring (it becomes documentation), a stable `CODE`, a `SCOPE` and `check(case)`: a `Finding`, or the
bare `Margin` where there is no objection. Adding a rule is adding a file. What a case is belongs to its venue.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.verdict import Margin


@noun
class Finding:
    """What one rule says: `refusal` is empty when it has no objection, `margin` is how far from its limit it is, and
    `reduced` tells of a cut that is no objection."""

    refusal: str = ""
    margin: Margin | None = None
    reduced: str = ""


PASS = Finding()
"""No objection, and no number to tell."""


@noun
class Rule:
    """One rule of a book. `scope` says for which actions it is asked."""

    code: str
    scope: str
    check: Callable[[Any], Finding | Margin]
    doc: str


@noun
class Execution:
    """What an allowed intent becomes: an order in the terms of the venue's broker, or the id of an order to cancel."""

    order: Any = None
    cancel_id: str | None = None
    opens: bool = False


@noun
class Weighed:
    """What all rules said: the first that refused names `code` and `detail`; `cut` is a rule that made it smaller.

    `broken` where a rule itself failed, which counts as its refusal.
    """

    code: str | None
    detail: str
    margins: tuple[Margin, ...]
    broken: bool
    cut: str | None
    cut_detail: str


def rules_of(package: str, path: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of a package, in the order of their file names."""
    names = sorted(info.name for info in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    return tuple(Rule(module.CODE, module.SCOPE, module.check, module.__doc__ or "") for module in modules)


def weigh(rules: Sequence[Rule], case: Any) -> Weighed:
    """Ask every rule, also after one has refused: each margin is told."""
    code, detail, broken = None, "", False
    cut, cut_detail = None, ""
    margins: list[Margin] = []
    for rule in rules:
        try:
            finding = rule.check(case)
        except Exception as error:  # noqa: BLE001 – a rule that breaks must refuse, never let through
            code, detail, broken = code or rule.code, detail or f"the rule itself failed: {error!r}", True
            continue
        if finding is PASS:
            continue
        if isinstance(finding, Margin):
            margins.append(finding)
            continue
        if finding.margin is not None:
            margins.append(finding.margin)
        if finding.refusal and code is None:
            code, detail = rule.code, finding.refusal
        if finding.reduced:
            cut, cut_detail = rule.code, finding.reduced
    return Weighed(code, detail, tuple(margins), broken, cut, cut_detail)
