"""When news could be known: latencies by source, drawn by the item alone, midnights, and first sightings."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, parse_instant
from pitboss.core.market import NewsItem
from pitboss.data.feed import data_digest, load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.news_latency import arrivals, parse_latency

NOON = parse_instant("2025-01-01T12:00:00Z")
EVER = NOON + 100 * DAY_MS


def item(text="BTC up", source="wire", published_at=NOON, available_at=None, **more) -> NewsItem:
    return NewsItem(published_at, published_at if available_at is None else available_at, source, text, **more)


def latency_of(each: NewsItem, text: str) -> int:
    (found,) = arrivals([each], parse_latency(text), EVER)
    return found.available_at - found.published_at


def test_a_fixed_latency_is_added_to_the_publication():
    assert latency_of(item(), "90s") == 90 * SECOND_MS
    assert latency_of(item(), "0s") == 0


def test_a_source_may_have_a_latency_of_its_own_in_any_case():
    text = "1m, CoinDesk = 10m"
    assert latency_of(item(), text) == MINUTE_MS
    assert latency_of(item(source="coindesk "), text) == 10 * MINUTE_MS
    assert latency_of(item(), "coindesk=10m") == 0


@settings(max_examples=25)
@given(st.text(max_size=30), st.text(max_size=10), st.integers(0, 10**7))
def test_a_drawn_latency_lies_in_its_bounds_and_hangs_on_the_item_alone(text, source, after):
    each = item(text, source, NOON + after)
    latency = latency_of(each, "30s..5m")
    assert 30 * SECOND_MS <= latency <= 5 * MINUTE_MS
    assert latency_of(replace(each, sentiment=0.5, symbols=("BTC",)), "30s..5m") == latency
    crowd = [item(f"other {index}") for index in range(3)]
    items = arrivals([*crowd, each], parse_latency("30s..5m,elsewhere=1h"), EVER)
    assert source == "elsewhere" or replace(each, available_at=each.published_at + latency) in items


def test_drawn_latencies_fill_their_range_evenly():
    latencies = [latency_of(item(f"story {index}"), "0s..10m") / MINUTE_MS for index in range(2_000)]
    assert min(latencies) < 0.1
    assert max(latencies) > 9.9
    assert sum(latencies) / len(latencies) == pytest.approx(5, abs=0.3)
    assert len(set(latencies)) > 1_900


def test_an_item_with_a_date_only_counts_from_the_next_midnight_and_no_latency_is_added():
    midnight = parse_instant("2025-01-02")
    assert latency_of(item(published_at=midnight, available_at=midnight + DAY_MS), "5h..9h") == DAY_MS
    assert latency_of(item(published_at=midnight, available_at=midnight + DAY_MS), "3d") == DAY_MS


def test_a_later_first_sighting_wins_and_an_earlier_one_does_not():
    seen = item(available_at=NOON + HOUR_MS)
    assert latency_of(seen, "5m") == HOUR_MS
    assert latency_of(seen, "2h") == 2 * HOUR_MS


def test_items_come_in_the_order_of_arrival_and_later_ones_are_left_out():
    first, second, third = item("a", "slow"), item("b"), item("c", published_at=NOON + HOUR_MS)
    items = arrivals([third, first, second], parse_latency("slow=30m"), NOON + 30 * MINUTE_MS)
    assert [each.text for each in items] == ["b", "a"]


def test_what_arrives_after_the_end_changes_nothing_before_it():
    items = [item(f"story {index}", published_at=NOON + index * MINUTE_MS) for index in range(200)]
    latency, cut = parse_latency("1m..90m"), NOON + 100 * MINUTE_MS
    early = arrivals(items, latency, cut)
    assert early == [each for each in arrivals(items, latency, EVER) if each.available_at <= cut]
    spoilt = [replace(each, text="x", symbols=("x",)) if each.published_at > cut else each for each in items]
    assert arrivals(spoilt, latency, cut) == early


@pytest.mark.parametrize(
    "text",
    ["", "5", "5m..", "5m..1m", "1m,2m", "=1m", "a=1m,A=2m", "a=", "-1m", "99999d", "1m..9e999d", "a=1m..2m..3m"],
)
def test_what_cannot_be_read_is_refused_in_one_line(text):
    with pytest.raises(UserError) as refused:
        parse_latency(text)
    assert "\n" not in str(refused.value)


def test_a_market_is_loaded_with_its_latencies_and_the_mood_of_items_without_a_sentiment(tmp_path):
    lake = Lake(tmp_path)
    opens = [NOON - DAY_MS + step * HOUR_MS for step in range(48)]
    bars = tmp_path / "1h" / "BTC.parquet"
    bars.parent.mkdir()
    prices = dict.fromkeys(("open", "high", "low", "close", "volume"), [100.0] * 48)
    pl.DataFrame({"time": opens} | prices).write_parquet(bars)
    result = tmp_path / "news.parquet"
    pl.DataFrame(
        {
            "published_at": [NOON, NOON],
            "text": ["Bitcoin plunges", "Bitcoin rallies"],
            "source": ["slow", "wire"],
            "sentiment": [None, 0.25],
        }
    ).write_parquet(result)
    import_paths(lake, [bars, result], venue="hyperliquid")
    market = load_market(lake, "hyperliquid", ["BTC"], ["1h"], EVER, news_latency=parse_latency("1m,slow=2h"))
    fast, slow = market.news
    assert (fast.text, fast.available_at - NOON, fast.sentiment, fast.mood) == (
        "Bitcoin rallies",
        MINUTE_MS,
        0.25,
        None,
    )
    assert (slow.text, slow.available_at - NOON, slow.sentiment) == ("Bitcoin plunges", 2 * HOUR_MS, None)
    assert slow.mood is not None
    assert slow.mood < 0
    # the mood is counted from what the digest covers already
    blank = replace(market, news=[replace(each, mood=None) for each in market.news])
    assert data_digest(blank, ["BTC"], ["1h"]) == data_digest(market, ["BTC"], ["1h"])
    later = replace(market, news=[replace(each, available_at=each.available_at + 1) for each in market.news])
    assert data_digest(later, ["BTC"], ["1h"]) != data_digest(market, ["BTC"], ["1h"])
