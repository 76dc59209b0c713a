"""An audit's result as lines to read and as one JSON document."""

from typing import Any

from pitboss.audit.lookahead import AuditSetup, Leak, LookaheadResult
from pitboss.core.instant import iso

HEADINGS = ("what", "compared", "of them errors", "differences")
NUMBERS = (1, 2, 3)


def cells(result: LookaheadResult) -> list[tuple[str, ...]]:
    """A row for everything that was compared."""
    return [
        (what, f"{count.compared:,}", f"{count.failed:,}" if count.failed else "", f"{count.differences:,}")
        for what, count in sorted(result.counts.items())
    ]


def lines(result: LookaheadResult) -> list[str]:
    """What came of it, the verdict first."""
    verdict = "no look-ahead found" if not result.differences else "LOOK-AHEAD"
    said = [
        f"{verdict}: {result.differences:,} differences in {result.comparisons:,} comparisons at {result.cuts:,} cuts"
    ]
    for one in result.found:
        said += _told(one)
    if result.differences > len(result.found):
        said.append(f"and {result.differences - len(result.found):,} more")
    said += [f"not covered: {what}: {why}" for what, why in sorted(result.not_covered.items())]
    return said


def _told(one: Leak) -> list[str]:
    asked = f" {one.arguments}" if one.arguments else ""
    return [
        f"at {iso(one.at)}, {one.what}{asked}, {one.symbol}, when the future was {one.future}:",
        f"  as it was: {one.whole}",
        f"  {one.future:>9}: {one.without}",
    ]


def document(result: LookaheadResult, ground: AuditSetup, seed: int) -> dict[str, Any]:
    """Everything, as plain values."""
    ticks = ground.script.tick_at
    return {
        "audit": "lookahead",
        "passed": result.differences == 0,
        "cuts": result.cuts,
        "seed": seed,
        "from": iso(int(ticks[0])),
        "to": iso(ground.script.to_at),
        "ticks": len(ticks),
        "symbols": list(ground.script.tape.symbols),
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
                "at": iso(one.at),
                "what": one.what,
                "symbol": one.symbol,
                "arguments": one.arguments,
                "future": one.future,
                "whole": one.whole,
                "without": one.without,
            }
            for one in result.found
        ],
    }
