"""`guard`: checks one intent against the rules of a venue.

Pure and total: any JSON value gets a verdict, nothing raises. The first rule that refuses determines the verdict; the
margins of all rules are recorded. The guard is the same for all venues: the meaning of an intent, the rules that
apply to it and the resulting order come from the venue's `RuleBook`. Orders are sent by `engine.execute`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.intent import sealed_intent
from pitboss.core.money import exact
from pitboss.core.noun import noun
from pitboss.core.rulebook import RuleBook, evaluate
from pitboss.core.verdict import Verdict


@noun
class Judgement:
    """A verdict and what to execute because of it; an order and a cancel id are both None where nothing is sent.

    `key` identifies the intent within its run, `content` is the intent in canonical bytes, as it is hashed and stored.
    `broken` is set where a rule itself failed. `venue_code` is the rule code of a refusal by the broker.
    """

    verdict: Verdict
    key: str
    content: bytes = b"null"
    order: Any = None
    cancel_id: str | None = None
    opens: bool = False
    broken: bool = False
    venue_code: str = ""


@exact
def guard(book: RuleBook, earlier_verdicts: Mapping[str, Verdict], intent: Any, tick_at: Instant) -> Judgement:
    """Judge one intent of the tick at `tick_at`. `earlier_verdicts` are those of the same tick, by intent key."""
    key, content = sealed_intent(tick_at, intent)
    earlier = earlier_verdicts.get(key)
    if earlier is not None:  # the duplicate rule comes first: a repeated intent keeps the verdict it was given
        return Judgement(replace(earlier, duplicate=True), key, content)
    proposal, problems = book.read(intent)
    if intent is None or (proposal is not None and book.is_hold(proposal)):
        return Judgement(Verdict("noop"), key, content)
    try:
        case = book.case(proposal, problems)
    except ArithmeticError as error:
        return Judgement(Verdict("refused", book.shape_code, f"cannot be worked out: {error!r}"), key, content)
    result = evaluate(book.rules_for(proposal), case)
    if result.code is not None or proposal is None:
        verdict = Verdict("refused", result.code or book.shape_code, result.detail, result.margins)
        return Judgement(verdict, key, content, broken=result.broken)
    execution = book.execution(case)
    if execution is None:
        detail = result.detail or "there is nothing to trade"
        return Judgement(Verdict("refused", book.venue_code, detail, result.margins), key, content)
    outcome = "allowed" if result.reduced_by is None else "reduced"
    verdict = Verdict(outcome, result.reduced_by, result.reduced_detail, result.margins)
    return Judgement(
        verdict, key, content, execution.order, execution.cancel_id, execution.opens, venue_code=book.venue_code
    )
