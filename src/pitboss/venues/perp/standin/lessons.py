"""The stand-in's notes on its closed trades: sums and shares computed from the prompt; they are not advice.

The trades are parsed from the prompt text; a line that cannot be parsed is left out, and nothing between data marks is
ever read.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pitboss.prompt import render

TOOL = "write_lessons"
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_TRADE = re.compile(
    rf"^- (\S+) (?:long|short) (\w+): \d\d-\d\d \d\d:\d\d \S+ {_NUMBER} {_NUMBER} ({_NUMBER}) ({_NUMBER})% ({_NUMBER})% (\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Trade:
    symbol: str
    regime: str
    usd: float
    best_pct: float
    worst_pct: float
    ended: str


def write(message: str) -> Mapping[str, str]:
    """Return five notes; the same message always gives the same notes."""
    trades = [
        _Trade(symbol, regime, float(usd), float(best), float(worst), ended)
        for symbol, regime, usd, best, worst, ended in _TRADE.findall(message)
    ]
    if not trades:
        return dict.fromkeys(
            ("entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit"), "No trades seen."
        )
    won = sum(trade.usd > 0 for trade in trades)
    early = sum(trade.worst_pct > trade.best_pct for trade in trades)
    ends = ", ".join(f"{ending} {count}" for ending, count in sorted(Counter(trade.ended for trade in trades).items()))
    return {
        "entry_timing": f"{early} of {len(trades)} trades went further against me than with me.",
        "sizing": f"{won} of {len(trades)} trades won, {_usd(trades)} USD in all.",
        "symbol_selection": _by("symbol", trades),
        "exit_timing": f"Ended by: {ends}.",
        "regime_fit": _by("regime", trades),
    }


def _by(name: str, trades: Sequence[_Trade]) -> str:
    groups: dict[str, list[_Trade]] = {}
    for trade in trades:
        groups.setdefault(getattr(trade, name), []).append(trade)
    return "; ".join(f"{key} {_usd(groups[key])} USD" for key in sorted(groups)[:8]) + "."


def _usd(trades: Sequence[_Trade]) -> str:
    return render.amount(sum(trade.usd for trade in trades))
