"""The result of a look-ahead audit as lines of text and as a JSON document."""

from typing import Any

from pitboss.core.instant import iso
from pitboss.venues.perp.audit.lookahead import AuditSetup, Leak, LookaheadResult

HEADINGS = ("what", "compared", "of them errors", "differences")
NUMBERS = (1, 2, 3)


def cells(result: LookaheadResult) -> list[tuple[str, ...]]:
    """One row for each compared input."""
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
    for leak in result.leaks:
        output += _leak_lines(leak)
    if result.differences > len(result.leaks):
        output.append(f"and {result.differences - len(result.leaks):,} more")
    output += [f"not covered: {name}: {reason}" for name, reason in sorted(result.not_covered.items())]
    return output


def _leak_lines(leak: Leak) -> list[str]:
    arguments = f" {leak.arguments}" if leak.arguments else ""
    return [
        f"at {iso(leak.at)}, {leak.input_name}{arguments}, {leak.symbol}, when the future was {leak.future}:",
        f"   original: {leak.original}",
        f"  {leak.future:>9}: {leak.altered}",
    ]


def document(result: LookaheadResult, setup: AuditSetup, seed: int) -> dict[str, Any]:
    """The result as plain values."""
    ticks = setup.course.tick_at
    return {
        "audit": "lookahead",
        "passed": result.differences == 0,
        "cuts": result.cuts,
        "seed": seed,
        "from": iso(int(ticks[0])),
        "to": iso(setup.course.to_at),
        "ticks": len(ticks),
        "symbols": list(setup.course.tape.symbols),
        "comparisons": result.comparisons,
        "differences": result.differences,
        "covered": {
            name: {"compared": count.compared, "errors": count.failed, "differences": count.differences}
            for name, count in sorted(result.counts.items())
            if name not in result.not_covered
        },
        "not_covered": dict(sorted(result.not_covered.items())),
        "found": [
            {
                "at": iso(leak.at),
                "what": leak.input_name,
                "symbol": leak.symbol,
                "arguments": leak.arguments,
                "future": leak.future,
                "whole": leak.original,
                "without": leak.altered,
            }
            for leak in result.leaks
        ],
    }
