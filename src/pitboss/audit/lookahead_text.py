"""The result of a look-ahead audit as lines of text and as a JSON document."""

from typing import Any

from pitboss.audit.lookahead import NOT_PROVED, AuditSetup, Difference, LookaheadResult
from pitboss.core.instant import iso

HEADINGS = ("what", "compared", "of them errors", "differences")
NUMBERS = (1, 2, 3)


def cells(result: LookaheadResult) -> list[tuple[str, ...]]:
    """One row for each compared fact."""
    return [
        (name, f"{count.compared:,}", f"{count.failed:,}" if count.failed else "", f"{count.differences:,}")
        for name, count in sorted(result.counts.items())
    ]


def lines(result: LookaheadResult) -> list[str]:
    """The result as lines, the verdict first."""
    verdict = "no look-ahead found" if not result.differences else "LOOK-AHEAD"
    output = [
        f"{verdict}: {result.differences:,} differences in {result.comparisons:,} comparisons at {result.cuts:,} cuts"
    ]
    for difference in result.examples:
        output += _difference_lines(difference)
    if result.differences > len(result.examples):
        output.append(f"and {result.differences - len(result.examples):,} more")
    output += [f"not covered: {name}: {reason}" for name, reason in sorted(result.not_covered.items())]
    return output + [f"not proved: {text}" for text in NOT_PROVED]


def _difference_lines(difference: Difference) -> list[str]:
    return [
        f"at {iso(difference.at)}, {difference.fact} of {difference.run}, when the future was {difference.future}:",
        f"   original: {difference.original}",
        f"  {difference.future:>9}: {difference.altered}",
    ]


def document(result: LookaheadResult, setup: AuditSetup, seed: int) -> dict[str, Any]:
    """The result as plain values."""
    ticks = setup.ticks
    return {
        "audit": "lookahead",
        "passed": result.differences == 0,
        "cuts": result.cuts,
        "differences": result.differences,
        "examples": [
            {
                "at": iso(difference.at),
                "what": difference.fact,
                "run": difference.run,
                "future": difference.future,
                "original": difference.original,
                "altered": difference.altered,
            }
            for difference in result.examples
        ],
        "comparisons": result.comparisons,
        "runs": [run.name for run in setup.runs],
        "seed": seed,
        "from": iso(ticks[0]),
        "to": iso(setup.runs[0].prepared.request.to_at),
        "ticks": len(ticks),
        "covered": {
            name: {"compared": count.compared, "errors": count.failed, "differences": count.differences}
            for name, count in sorted(result.counts.items())
            if name not in result.not_covered
        },
        "not_covered": dict(sorted(result.not_covered.items())),
        "not_proved": list(NOT_PROVED),
    }
