"""Scores the sentiment of headlines from −1 to 1, where the source gives none: VADER with a trading vocabulary.

VADER adds up the scores of everyday words and handles negation, emphasis and "but"; it has no understanding. Everyday
meanings mislead in finance (a trust is a fund, shares are no kindness), so those words are removed from its lexicon and
trading terms added. Computed once per headline when news is loaded; the figure of a source is never overwritten.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pitboss.core.market import NewsItem

READ_CHARS = 1_000
"""Characters of a text that are scored: more than is ever shown, and a bound on the cost of long texts."""

_NEUTRAL = (
    "asset assets block blocks chance credit debt energy fine fines free gross interest interested interests legal like "
    "natural number numbers share shared shares sharing security securities secure secured stock strike strikes supreme "
    "top treasuries treasury trust trusts united value values"
)
_STRENGTHS = {
    3.0: "moon mooning soar soared soars soaring skyrocket skyrockets skyrocketed parabolic",
    2.5: "bullish rally rallies rallied rallying surge surged surges surging breakout approve approves ath",
    2.0: "adoption adopt adopts bull bulls buy buys inflow inflows jump jumped jumps jumping outperform outperforms pump "
    "pumps rebound rebounds rebounded recover recovers recovered recovery accumulate accumulates accumulation upgrade "
    "upgraded upgrades",
    1.5: "backs bid boost boosted bounce bounces climb climbs climbed climbing demand expand expands higher launch launches "
    "listed listing milestone partnership partners rise rises rising rose oversubscribed uptrend upside integrates",
    0.8: "hodl halving support supports institutional resume resumes",
    -0.8: "volatile volatility short shorts shorting unlock unlocks inflation delay delays delayed",
    -1.5: "bear correction correct dip dips drops falls falling fell fall decline declines declined declining downside "
    "downtrend downgrade downgraded lower outage overbought probe probes resistance slide slides sliding slip slips "
    "slipped subpoena unwind unwinds weighs fined investigate investigates investigated investigation",
    -2.0: "bearish bears crackdown halt halts halted hack hacker hackers outflow outflows sell sells selling selloff "
    "sell-off slump slumps slumped sue sued sues suspend suspends suspended tumble tumbles tumbled charged charges "
    "delist delists delisted delisting depeg depegs depegged dumping dumps plummet plummets",
    -3.0: "bankruptcy capitulation collapse collapses collapsed crash crashed crashes crashing exploit exploits exploited "
    "fraud hacked insolvency insolvent liquidated liquidation liquidations plunge plunged plunges plunging ponzi rekt "
    "rug rugged rugpull stolen",
}
LEXICON = {word: strength for strength, words in _STRENGTHS.items() for word in words.split()}
"""Scores of trading terms, on VADER's scale from −4 to 4."""
NEUTRAL = frozenset(_NEUTRAL.split())
"""Words that are positive or negative in everyday English and neutral in finance."""


def mood(text: str) -> float:
    """The score of a text."""
    return float(_analyzer().polarity_scores(text[:READ_CHARS])["compound"])


def with_mood(items: Iterable[NewsItem]) -> list[NewsItem]:
    """The items, those without a sentiment of their source scored by their text."""
    moods: dict[str, float] = {}
    scored: list[NewsItem] = []
    for item in items:
        if item.sentiment is None and item.mood is None:
            if item.text not in moods:
                moods[item.text] = mood(item.text)
            item = replace(item, mood=moods[item.text])
        scored.append(item)
    return scored


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    # its lexicon is read from disk, so only when a headline is scored
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    analyzer.lexicon.update(LEXICON)
    for word in NEUTRAL:
        analyzer.lexicon.pop(word, None)
    return analyzer
