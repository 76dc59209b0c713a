"""The sentiment of headlines: traders' terms, everyday words without meaning here, and the source's own score."""

import pytest

from pitboss.core.market import NewsItem
from pitboss.data.sentiment import LEXICON, NEUTRAL, READ_CHARS, mood, with_mood


@pytest.mark.parametrize(
    "text", ["Bitcoin rallies on ETF inflows", "BTC breakout: bulls are back", "ETH soars to a new high"]
)
def test_what_traders_like_reads_good(text):
    assert mood(text) > 0.3


@pytest.mark.parametrize(
    "text", ["Exchange hacked, funds stolen", "Longs rekt as BTC plunges", "Bearish outflows weigh", "Token delisted"]
)
def test_what_traders_fear_reads_bad(text):
    assert mood(text) < -0.3


@pytest.mark.parametrize(
    "text", ["Grayscale Bitcoin Trust shares", "Interest rates of the United States Treasury", "Block 840000", ""]
)
def test_everyday_words_that_mean_nothing_here_count_for_nothing(text):
    assert mood(text) == 0


def test_a_negation_turns_the_mood():
    assert mood("This is not bullish") < 0 < mood("This is bullish")


def test_the_lists_do_not_contradict_each_other_and_stay_on_the_scale():
    assert not NEUTRAL & LEXICON.keys()
    assert all(-4 <= strength <= 4 and strength for strength in LEXICON.values())
    assert all(word == word.lower() and " " not in word for word in LEXICON)


def test_a_sources_own_figure_is_left_alone_and_the_rest_is_counted_once(monkeypatch):
    counted = []
    monkeypatch.setattr("pitboss.data.sentiment.mood", lambda text: counted.append(text) or -0.5)
    own = NewsItem(1, 1, "wire", "BTC crashes", 0.0)
    result = [NewsItem(at, at, "wire", "BTC crashes") for at in (1, 2)]
    items = with_mood([own, *result])
    assert items[0] is own
    assert [item.mood for item in items[1:]] == [-0.5, -0.5]
    assert counted == ["BTC crashes"]
    assert with_mood(items) == items


def test_a_flood_of_words_costs_no_more_than_its_beginning():
    flood = "crash but " * 100_000
    assert mood(flood) == mood(flood[:READ_CHARS])
