"""Ranking headlines: against a slow reference, whatever was asked before, and blind to what has not arrived."""

import math
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent import news_ranking as relevance
from pitboss.agent.news_ranking import Ranking, Story, first_copies, fold, names, tokens, words_of
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS
from pitboss.core.market import NewsItem
from pitboss.venues.perp.sections import Memo, news
from venues.perp.prompt_scene import NOW, Scene, headline, market_of, skill_of

WORDS = words_of(["Funding resets precede breakouts.", "Do not trade before the halving."])

# A slow reference -----------------------------------------------------------------------------------------------------


def same_story(one: str, other: str) -> bool:
    mine, theirs = (
        [w for place, w in enumerate(ws) if w not in ws[:place] and w not in ("a", "an", "s", "the")] or [ws[0]]
        for ws in (tokens(one), tokens(other))
    )
    apart = set(mine) ^ set(theirs)
    if set(mine) - set(theirs) and set(theirs) - set(mine):
        return False
    return (
        min(len(mine), len(theirs)) / max(len(mine), len(theirs)) >= 0.8 - 1e-12
        and not any(re.search(r"\d", word) or word in relevance._TURNS for word in apart)
        and [w for w in mine if w in theirs] == [w for w in theirs if w in mine]
    )


def reference(items: list[NewsItem], symbols: list[str], words: frozenset[str], hours: float) -> list[Story]:
    """Every pair compared, every word counted anew, every item scored by the formula as it is written in books."""
    stories: list[list] = []
    for item in sorted(items, key=lambda i: (i.available_at, i.published_at, i.source, i.text, i.symbols)):
        for story in stories:
            if same_story(story[0].text, item.text):
                story[1] += 1
                break
        else:
            stories.append([item, 1])
    texts = [tokens(item.text) for item, _ in stories]
    counts = []
    for (item, _), text in zip(stories, texts, strict=True):
        found = Counter({("word", word): count for word, count in Counter(text).items() if word in words})
        for symbol in symbols:
            pattern = relevance.name_pattern(symbol)
            if times := len(pattern.findall(item.text)) + (symbol in item.symbols):
                found["name", symbol] = times
        counts.append(found)
    mean = sum(map(len, texts)) / max(1, len(texts))
    newest = max((item.available_at for item, _ in stories), default=0)
    scored = []
    for place, ((item, copies), text, found) in enumerate(zip(stories, texts, counts, strict=True)):
        score = 0.0
        for term, tf in found.items():
            n = sum(term in each for each in counts)
            idf = math.log(1 + (len(stories) - n + 0.5) / (n + 0.5)) * (3 if term[0] == "name" else 1)
            score += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
        score *= 0.5 ** ((newest - item.available_at) / (hours * HOUR_MS / 2))
        scored.append((-round(score, 9), -place, Story(item, copies)))
    return [story for _, _, story in sorted(scored, key=lambda each: each[:2])]


VOCABULARY = re.findall(
    r"\S+",
    "bitcoin BTC BTC, ether ETH Funding funding halving breakouts reset exchange says regulator wallet desk large Not 5% "
    "71,000 rises falls miners report the a fund market quarterly",
)
TEXTS = st.lists(st.sampled_from(VOCABULARY), min_size=0, max_size=9).map(" ".join)
ITEMS = st.lists(
    st.tuples(TEXTS, st.integers(0, 359), st.sampled_from(["wire", "desk"]), st.sampled_from([(), ("BTC",), ("SOL",)])),
    max_size=14,
).map(lambda rows: [headline(text, ago, source, symbols=tags) for text, ago, source, tags in rows])


def newest_first(items: list[NewsItem]) -> list[NewsItem]:
    return sorted(items, key=lambda item: -item.available_at)


@settings(max_examples=32)
@given(ITEMS, ITEMS)
def test_the_order_is_that_of_the_slow_reference_whatever_was_ranked_before(before, items):
    words = frozenset(WORDS)
    ranking = Ranking(["BTC", "ETH"], words, 6)
    ranking.choose(newest_first(before), 5)
    asked = newest_first(items)
    found = ranking.choose(asked, 100)
    assert found == reference(items, ["BTC", "ETH"], words, 6)
    assert ranking.choose(list(asked), 100) is found
    assert ranking.choose(asked, 3) == found[:3]


@settings(max_examples=60)
@given(TEXTS, TEXTS)
def test_near_copies_are_those_of_the_slow_comparison_and_the_relation_has_no_direction(one, other):
    assert are_copies(one, other) == same_story(one, other) == are_copies(other, one)
    assert are_copies(one, one)


def are_copies(one, other):
    return len(first_copies([headline(one, 2), headline(other, 1)])) == 1


PLAIN_WORDS = st.lists(st.text("abcde", min_size=2, max_size=9), unique=True, min_size=3, max_size=16)


@settings(max_examples=40)
@given(PLAIN_WORDS, st.lists(st.tuples(st.integers(0, 16), st.text("fgh", min_size=2, max_size=12)), max_size=4))
def test_a_headline_with_a_few_words_more_is_found_among_others_exactly_when_it_is_a_copy(words, more):
    longer = list(words)
    for place, word in more:
        longer.insert(place, word)
    one, other = " ".join(words), " ".join(longer)
    items = [headline("BTC", 9), headline(one, 3), headline("ETH", 2), headline(other, 1)]
    assert len(first_copies(items)) == (3 if same_story(one, other) else 4)


# What counts as relevant ----------------------------------------------------------------------------------------------


def ranked_texts(*items: NewsItem, symbols: tuple[str, ...] = ("BTC",)) -> list[str]:
    return [story.item.text for story in Ranking(symbols, WORDS, 6).choose(newest_first(list(items)), 10)]


def test_a_coin_counts_by_ticker_by_name_and_by_the_sources_own_tag():
    plain = headline("Oil slips again", 1)
    for named in (
        headline("BTC slips", 200),
        headline("Bitcoin slips", 200),
        headline("A coin slips", 200, symbols=("BTC",)),
    ):
        assert ranked_texts(plain, named)[0] == named.text
    assert ranked_texts(plain, headline("btc slips", 200))[0] == plain.text  # tickers are often words: only in capitals


@pytest.mark.parametrize(
    ("symbol", "text"), [("1000PEPE", "PEPE jumps"), ("kBONK", "BONK jumps"), ("LTC", "litecoin up")]
)
def test_coins_listed_by_the_thousand_are_known_by_their_own_name(symbol, text):
    assert names(symbol, text)
    assert not names(symbol, "Oil slips")


@pytest.mark.parametrize(
    ("symbol", "text", "named"),
    [
        ("BTC", "$BTC up", True),
        ("BTC", "BTCUSD up", False),
        ("BTC", "bitcoin up", True),
        ("BTC", "Bitcoins up", False),
        ("ETH", "Ether slips", True),
        ("ETH", "together", False),
        ("LINK", "see the link", False),
        ("LINK", "LINK slips", True),
        ("SUI", "sui generis", False),
        ("A.B", "AxB", False),
        ("NEW", "NEW coin", True),
    ],
)
def test_a_coin_is_named_by_its_ticker_in_capitals_or_by_its_name(symbol, text, named):
    assert names(symbol, text) is named


def test_of_two_that_say_the_same_much_the_fresher_comes_first():
    assert ranked_texts(headline("BTC and oil", 300), headline("BTC and gas", 20)) == ["BTC and gas", "BTC and oil"]


def test_a_rare_word_of_the_strategy_beats_a_name_that_everyone_writes():
    crowd = [headline(f"Bitcoin story {name}", 30) for name in ("one", "two", "three", "four", "five", "six", "seven")]
    assert ranked_texts(*crowd, headline("Funding resets across venues", 30))[0] == "Funding resets across venues"


def test_a_half_life_is_half_the_window():
    old, new = headline("BTC funding resets", 180), headline("BTC funding resets halving", 0)
    assert ranked_texts(old, new)[0] == new.text


def test_words_in_the_plural_are_the_same_word_but_turning_words_are_left_alone():
    assert fold("breakouts") == "breakout"
    assert fold("loss") == "loss"
    assert fold("rises") == "rises"


# Copies ---------------------------------------------------------------------------------------------------------------

LONG = "Exchange says withdrawals of all customers resume after a long pause on Tuesday"


@pytest.mark.parametrize(
    ("other", "copy"),
    [
        (LONG.upper() + "!", True),
        ("Update: " + LONG, True),
        (LONG + " - The Wire", True),
        (LONG.replace("a long", "the long"), True),
        (LONG.replace("Tuesday", "Wednesday"), False),
        (LONG.replace("Exchange", "Bank"), False),
        (LONG + " - The Very Lengthy Name of one Wire", False),
        (LONG.replace("resume", "halt"), False),
        (LONG.replace("says", "denies"), False),
        (LONG + " 2", False),
        ("Not: " + LONG, False),
        (" ".join(reversed(LONG.split())), False),
        ("Exchange says", False),
    ],
)
def test_a_headline_is_a_copy_only_if_it_says_the_same(other, copy):
    assert are_copies(LONG, other) is copy


def test_texts_without_a_word_are_compared_as_they_are():
    assert are_copies("🚀🚀", "🚀🚀")
    assert not are_copies("🚀🚀", "💥")
    assert are_copies("比特币上涨", "比特币上涨")


def test_copies_do_not_make_a_headline_rarer_commoner_or_fresher():
    one, other = headline("BTC funding resets", 100), headline("BTC halving soon", 90)
    alone = Ranking(["BTC"], WORDS, 6).choose(newest_first([one, other]), 9)
    echoes = [headline("BTC funding resets", ago, "echo") for ago in range(1, 60)]
    result = Ranking(["BTC"], WORDS, 6).choose(newest_first([one, other, *echoes]), 9)
    assert [story.item for story in result] == [story.item for story in alone]
    assert {story.item.text: story.copies for story in result} == {one.text: 60, other.text: 1}


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_a_flood_is_looked_at_from_its_newest_end_and_what_is_kept_stays_small():
    ranking = Ranking(["BTC"], WORDS, 6)
    for flood in range(4):
        items = [headline(f"BTC number {flood} {place}", place / 10) for place in range(1_500)]
        found = ranking.choose(newest_first(items), 2_000)
        assert len(found) == relevance.MOST_ITEMS
        assert min(story.item.available_at for story in found) == items[relevance.MOST_ITEMS - 1].available_at
        assert len(ranking._headlines._headlines) <= 3 * relevance.MOST_ITEMS


def test_only_new_headlines_are_read(monkeypatch):
    read = []
    monkeypatch.setattr(relevance, "tokens", lambda text: read.append(text) or tokens(text))
    ranking = Ranking(["BTC"], WORDS, 6)
    items = [headline(f"BTC story {place}", place) for place in range(20)]
    for tick in range(20):
        ranking.choose(items[19 - tick :], 10)
    assert sorted(read) == sorted(item.text for item in items)


# The section at T does not know what comes after T --------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.lists(st.tuples(TEXTS, st.integers(-300, 359), st.integers(0, 120)), max_size=14),
    st.randoms(use_true_random=False),
)
def test_the_section_is_the_same_when_everything_later_is_cut_off_or_corrupted(rows, random):
    items = [
        NewsItem(NOW - (ago + late) * MINUTE_MS, NOW - ago * MINUTE_MS, "wire", text, 0.1) for text, ago, late in rows
    ]
    known = [item for item in items if item.available_at <= NOW]
    later = [
        NewsItem(NOW - HOUR_MS, item.available_at, "liar", random.choice(rows)[0] + " BTC funding", 1.0, ("BTC",))
        for item in items
        if item.available_at > NOW
    ]
    skill = skill_of(context={"news_top_k": 5})
    memo = Memo(skill)

    def section(facts, memo):
        return news.render(Scene(skill, market_of(news=facts)).observe(), memo)

    honest = section(items, Memo(skill))
    assert section(known, Memo(skill)) == honest
    assert section([*known, *later], memo) == honest
    ahead = Scene(skill, market_of(news=items), at=NOW + 6 * HOUR_MS).observe()
    news.render(ahead, memo)  # a tick asked ahead leaves nothing behind
    assert section(items, memo) == honest


# Real news ------------------------------------------------------------------------------------------------------------

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "news" / "btc_2021_2024.parquet"


@pytest.fixture(scope="module")
def recorded_news() -> list[NewsItem]:
    if not SHARED.is_file():
        pytest.skip("needs ../shared/data/news")
    rows = pl.read_parquet(SHARED).with_columns(pl.col("published").dt.epoch("ms")).iter_rows()
    items = [NewsItem(at, at + (0 if at % DAY_MS else DAY_MS), "wire", text, mood) for at, text, mood in rows]
    return sorted(items, key=lambda item: (item.available_at, item.published_at, item.text))


def check_cuts(recorded_news: list[NewsItem], cuts: int) -> None:
    random = Random(5)
    skill = skill_of(context={"news_lookback_hours": 24})
    words, warm = words_of(skill.strategy.texts().values()), Memo(skill)
    whole = market_of(news=recorded_news)
    arrivals = [item.available_at for item in recorded_news]
    filled = 0
    for _ in range(cuts):
        at = random.choice(arrivals) + random.choice((-1, 0, 1, 7 * MINUTE_MS))
        known = recorded_news[max(0, bisect_right(arrivals, at) - 400) : bisect_right(arrivals, at)]
        spoilt = [
            replace(item, text=f"BTC funding {item.text}", sentiment=1.0)
            for item in recorded_news
            if item.available_at > at
        ]
        scene = Scene(skill, whole, at=at)
        shown = news.render(scene.observe(), warm)
        filled += shown is not None
        for facts in (known, known + spoilt[:400]):
            assert news.render(Scene(skill, market_of(news=facts), at=at).observe(), Memo(skill)) == shown
        window = whole.view(at).news(24)
        assert Ranking(["BTC"], words, 24).choose(window, 10) == reference(window, ["BTC"], words, 24)[:10]
    assert filled > cuts // 2  # most cuts have news to compare


def test_real_news_rank_as_the_reference_says_and_know_nothing_of_later_ones(recorded_news):
    check_cuts(recorded_news, 12)


@pytest.mark.proof
def test_real_news_hold_at_many_cuts(recorded_news):
    check_cuts(recorded_news, 1_000)
