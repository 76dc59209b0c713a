"""Rules: how those of a venue are loaded, bound to an account and evaluated.

A rule module has a docstring (it becomes documentation), a stable `CODE`, a `SCOPE` and `check(case)`, which returns a
`Finding`, or only a `Margin` if the rule does not refuse. Each venue derives its own `RuleBook`, which says what a
case is.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.discovery import modules_of
from pitboss.core.noun import noun
from pitboss.core.rule_message import rule_message
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
class RuleCase:
    """An intent as the rules see it, for venues whose rules need no other values than those of their book."""

    book: Any
    proposal: Any
    problems: Sequence[str]


class RuleBook:
    """The rules of a venue, bound to the account and the instant at which an intent is judged.

    A venue derives a `@noun` with the values that its rules need and sets `decision` and `rules`. The first rule is the
    one about well-formed intents, the last one also stands for refusals by the broker.
    """

    __slots__ = ()

    decision: ClassVar[DecisionFormat]
    rules: ClassVar[Sequence[Rule]]

    @property
    def shape_code(self) -> str:
        """Code of the rule about well-formed intents."""
        return self.rules[0].code

    @property
    def venue_code(self) -> str:
        """Code of the rule about refusals by the broker."""
        return self.rules[-1].code

    def read(self, intent: Any) -> tuple[Any, list[str]]:
        """The typed proposal (None if malformed) and everything that is wrong with the intent."""
        return self.decision.read(intent)

    def is_hold(self, proposal: Any) -> bool:
        """Whether a well-formed proposal does nothing."""
        return proposal.action == self.decision.idle

    def rules_for(self, proposal: Any) -> Sequence[Rule]:
        """The rules that apply, by default all of them; `proposal` is None for a malformed intent."""
        del proposal
        return self.rules

    def case(self, proposal: Any, problems: Sequence[str]) -> Any:
        """The case that the rules evaluate. May raise `ArithmeticError`."""
        return RuleCase(self, proposal, problems)

    def execution(self, case: Any) -> Execution | None:
        """The order or cancellation that an allowed case leads to; None if there is nothing to execute.

        By default the proposal itself is the order.
        """
        return Execution(case.proposal, opens=True)


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


def rules_of(package: str) -> tuple[Rule, ...]:
    """Load the rules of a package, in the order of their file names."""
    modules = modules_of(package)
    return tuple(Rule(module.CODE, module.SCOPE, module.check, module.__doc__ or "") for module in modules)


def refuse_malformed(case: Any) -> Finding:
    """Refuse an intent that could not be read: the check of a venue's first rule."""
    return Finding(rule_message("{problems}", problems="; ".join(case.problems))) if case.problems else PASS


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
