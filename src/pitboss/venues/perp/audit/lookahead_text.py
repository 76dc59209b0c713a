"""The result of a look-ahead audit as lines of text and as a JSON document."""

from typing import Any

from pitboss.core.instant import iso
from pitboss.venues.perp.audit.lookahead import AuditSetup, Leak, LookaheadResult

HEADINGS = ("what", "compared", "of them errors", "differences")
NUMBERS = (1, 2, 3)


def cells(result: LookaheadResult) -> list[tuple[str, ...]]:
    """One row for each compared input."""
    return [
        (what, f"{count.compared:,}", f"{count.failed:,}" if count.failed else "", f"{count.differences:,}")
        for what, count in sorted(result.counts.items())
    ]


def lines(result: LookaheadResult) -> list[str]:
    """The result as lines, the verdict first."""
    verdict = "no look-ahead found" if not result.differences else "LOOK-AHEAD"
    output = [
        f"{verdict}: {result.differences:,} differences in {result.comparisons:,} comparisons at {result.cuts:,} cuts"
    ]
    for leak in result.found:
        output += _leak_lines(leak)
    if result.differences > len(result.found):
        output.append(f"and {result.differences - len(result.found):,} more")
    output += [f"not covered: {what}: {why}" for what, why in sorted(result.not_covered.items())]
    return output


def _leak_lines(leak: Leak) -> list[str]:
    arguments = f" {leak.arguments}" if leak.arguments else ""
    return [
        f"at {iso(leak.at)}, {leak.what}{arguments}, {leak.symbol}, when the future was {leak.future}:",
        f"  as it was: {leak.whole}",
        f"  {leak.future:>9}: {leak.without}",
    ]


def document(result: LookaheadResult, setup: AuditSetup, seed: int) -> dict[str, Any]:
    """The result as plain values."""
    ticks = setup.script.tick_at
    return {
        "audit": "lookahead",
        "passed": result.differences == 0,
        "cuts": result.cuts,
        "seed": seed,
        "from": iso(int(ticks[0])),
        "to": iso(setup.script.to_at),
        "ticks": len(ticks),
        "symbols": list(setup.script.tape.symbols),
        "comparisons": result.comparisons,
        "differences": result.differences,
        "covered": {
            what: {"compared": count.compared, "errors": count.failed, "differences": count.differences}
            for what, count in sorted(result.counts.items())
            if what not in result.not_covered
        },
        "not_covered": dict(sorted(result.not_covered.items())),
        "found": [
            {
                "at": iso(leak.at),
                "what": leak.what,
                "symbol": leak.symbol,
                "arguments": leak.arguments,
                "future": leak.future,
                "whole": leak.whole,
                "without": leak.without,
            }
            for leak in result.found
        ],
    }
