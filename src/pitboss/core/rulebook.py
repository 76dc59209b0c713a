"""Rules: how those of a venue are loaded and evaluated.

A rule module has a docstring (it becomes documentation), a stable `CODE`, a `SCOPE` and `check(case)`, which returns a
`Finding`, or only a `Margin` if the rule does not refuse. Each venue defines what a case is.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pitboss.core.noun import noun
from pitboss.core.verdict import Margin


@noun
class Finding:
    """The result of one rule.

    `refusal` is empty if the rule does not refuse; a `RuleMessage` carries the values it was formatted from. `margin` is
    the distance from the rule's limit. `reduced` says how the intent was made smaller without being refused.
    """

    refusal: str = ""
    margin: Margin | None = None
    reduced: str = ""


PASS = Finding()
"""Not refused, and without a margin."""


@noun
class Rule:
    """One rule. `scope` says to which actions it applies."""

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
class RuleResults:
    """The results of all rules: `code` and `detail` of the first that refused, and every margin.

    `broken` is set if a rule itself failed, which counts as a refusal. `reduced_by` is the code of a rule that made the
    intent smaller.
    """

    code: str | None
    detail: str
    margins: tuple[Margin, ...]
    broken: bool
    reduced_by: str | None
    reduced_detail: str


def rules_of(package: str, path: Iterable[str]) -> tuple[Rule, ...]:
    """Load the rules of a package, in the order of their file names."""
    names = sorted(info.name for info in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    return tuple(Rule(module.CODE, module.SCOPE, module.check, module.__doc__ or "") for module in modules)


def evaluate(rules: Sequence[Rule], case: Any) -> RuleResults:
    """Check a case against every rule, also after one has refused, so that every margin is recorded."""
    code, detail, broken = None, "", False
    reduced_by, reduced_detail = None, ""
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
            reduced_by, reduced_detail = rule.code, finding.reduced
    return RuleResults(code, detail, tuple(margins), broken, reduced_by, reduced_detail)
