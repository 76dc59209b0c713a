"""How good or bad a headline reads, −1 to 1, where its source does not say: VADER with the words of this trade.

VADER adds up a list of everyday words and minds negation, emphasis and "but"; it understands nothing. Everyday meanings
mislead here (a trust is a fund, shares are no kindness), so those words are taken out of its list and the trade's own are
put in. Counted once a headline when news is loaded; the source's own figure is never overwritten.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pitboss.core.market import NewsItem

READ_CHARS = 1_000
"""As much of a text is read: more than is ever shown, and what a flood of words may cost has an end."""

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
"""What words mean to traders, on VADER's scale from −4 to 4."""
NEUTRAL = frozenset(_NEUTRAL.split())
"""Words that are good or bad in everyday English and mean neither here."""


def mood(text: str) -> float:
    """The score of a text."""
    return float(_analyzer().polarity_scores(text[:READ_CHARS])["compound"])


def with_mood(items: Iterable[NewsItem]) -> list[NewsItem]:
    """The items, those without a sentiment of their source's with one of their words."""
    known: dict[str, float] = {}
    scored: list[NewsItem] = []
    for item in items:
        if item.sentiment is None and item.mood is None:
            found = known.get(item.text)
            if found is None:
                found = known[item.text] = mood(item.text)
            item = replace(item, mood=found)
        scored.append(item)
    return scored


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    # Its word list is read from disk: not before there is a headline to score.
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    analyzer.lexicon.update(LEXICON)
    for word in NEUTRAL:
        analyzer.lexicon.pop(word, None)
    return analyzer
