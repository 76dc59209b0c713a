"""A headline's mood by counting words: how many of a short list of good and bad ones it has.

It is no model and understands nothing: not negation, not irony, not who is meant. What it counted is shown, so that
whoever reads the score can see why.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z]+")

GOOD = frozenset(
    _WORD.findall(
        "accumulate accumulates accumulation adopt adopts adoption advance advances approval approve approved approves "
        "backs beat beats boost boosted boosts bounce bounces breakout bull bullish bulls buy buying buys climb climbs "
        "demand expand expands gain gains growth higher inflow inflows integrate integrates jump jumped jumps launch "
        "launches listed listing milestone optimism optimistic outperform outperforms partner partners partnership profit "
        "profits progress rallied rallies rally rebound rebounds recover recovers recovery resume resumes rise "
        "rises rising rose soar soared soars strong stronger success surge surged surges surpasses "
        "upgrade upgraded win wins"
    )
)
BAD = frozenset(
    _WORD.findall(
        "attack attacked ban banned bans bankrupt bankruptcy bear bearish bears breach charged charges collapse collapsed "
        "collapses concern concerns crackdown crash crashed crashes crime decline declines default defaults delay delayed "
        "delays delist delisted delisting dip dips downgrade downgraded drop dropped drops dump dumped dumps exploit "
        "exploited fail failed fails fall falling falls fear fears fell fine fined forced fraud freeze freezes frozen hack "
        "hacked hacker halt halted halts illegal insolvency insolvent investigate investigated investigation lawsuit "
        "leaked liquidated liquidation liquidations loses loss losses lower manipulation outage outflow outflows panic "
        "pessimism plummet plummets plunge plunged plunges ponzi probe risk risks rumour rumor scam scandal sell selling "
        "selloff sells slide slides slump slumps steal stolen sue sued sues suspend suspended suspends theft tumble "
        "tumbled tumbles unwind unwinds violation vulnerability warn warned warning warns weak weaker weighs worry"
    )
)

COINS = {
    "BTC": ("bitcoin",), "ETH": ("ethereum", "ether"), "SOL": ("solana",), "XRP": ("ripple",), "DOGE": ("dogecoin",),
    "BNB": ("binance coin",), "AVAX": ("avalanche",), "HYPE": ("hyperliquid",), "LINK": ("chainlink",), "SUI": (),
    "LTC": ("litecoin",), "ARB": ("arbitrum",), "ADA": ("cardano",),
}  # fmt: skip
"""What headlines call a coin when they do not write its ticker."""


@dataclass(frozen=True, slots=True)
class Mood:
    """What was counted in one text."""

    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def score(self) -> float | None:
        """(good − bad) / (good + bad), −1 to 1; None if no word of either list is there."""
        counted = len(self.good) + len(self.bad)
        return (len(self.good) - len(self.bad)) / counted if counted else None


def mood(text: str) -> Mood:
    """Every word of the lists, each counted once, in the order of the text."""
    words = list(dict.fromkeys(_WORD.findall(text.lower())))
    return Mood(tuple(word for word in words if word in GOOD), tuple(word for word in words if word in BAD))


def names(symbol: str, text: str) -> bool:
    """Whether a text writes the ticker (in capitals, as a word of its own) or the name of a coin."""
    return _named(symbol).search(text) is not None


@lru_cache(maxsize=256)
def _named(symbol: str) -> re.Pattern[str]:
    called = "|".join((re.escape(symbol), *(f"(?i:{re.escape(name)})" for name in COINS.get(symbol, ()))))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{called})(?![A-Za-z0-9])")
