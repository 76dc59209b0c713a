"""Why an agent traded little, in a sentence: where its ticks and its proposals went."""

from collections.abc import Mapping

from pitboss.report import figures
from pitboss.report.meaning import FLAGS, RuleMeaning, unknown_rule
from pitboss.report.source import Plain, mapping, number

FEW_ACCEPTED = 2
"""Up to this many accepted proposals a run counts as one that traded little, unless most of its proposals were accepted."""
MOST_NAMED = 2


def why_idle(metrics: Plain, rules: Mapping[str, RuleMeaning]) -> str:
    """The sentence; empty for a run without metrics, and for one that traded."""
    ticks, proposed = number(metrics.get("total_ticks")), number(metrics.get("total_proposed_actions"))
    accepted = number(metrics.get("total_accepted_actions"))
    if not ticks or proposed is None or accepted is None:
        return ""
    refused = _counts(metrics.get("rejections_by_rule"))
    total_refused = sum(refused.values())
    if accepted > FEW_ACCEPTED and total_refused <= proposed / 2:
        return ""
    quiet = _counts(metrics.get("noops_by_flag"))
    parts: list[str] = []
    if quiet:
        parts.append(
            f"at {figures.count(sum(quiet.values()))} of {figures.plural(ticks, 'tick')} nothing was proposed "
            f"({_named(quiet, FLAGS)})"
        )
    if total_refused:
        names = {code: (rules.get(code) or unknown_rule(code)).name.lower() for code in refused}
        parts.append(
            f"the engine refused {figures.count(total_refused)} of {figures.plural(proposed, 'proposal')} "
            f"({_named(refused, names, code=True)})"
        )
    if not parts:
        return ""
    verb = "nothing was accepted" if not accepted else f"only {figures.plural(accepted, 'proposal')} passed"
    verb = verb if accepted <= FEW_ACCEPTED else "most proposals were refused"
    return f"Why it traded little: {'; '.join(parts)}; {verb}."


def _counts(value: object) -> dict[str, int]:
    counts = {str(key): int(number(item) or 0) for key, item in mapping(value).items()}
    return dict(sorted(((key, count) for key, count in counts.items() if count), key=lambda item: -item[1]))


def _named(counts: Mapping[str, int], names: Mapping[str, str], *, code: bool = False) -> str:
    texts = [
        f"{figures.count(count)} {f'by {key}, ' if code else ''}{names.get(key, key)}"
        for key, count in list(counts.items())[:MOST_NAMED]
    ]
    rest = sum(list(counts.values())[MOST_NAMED:])
    return ", ".join([*texts, *([f"{figures.count(rest)} other"] if rest else [])])
