"""News and events of a live run: what the lake has and what has arrived, and nothing else."""

import asyncio

import orjson
import pytest

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.market import NewsItem
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.venues.perp.lake_news import LakeNews
from pitboss.venues.perp.live_market import LiveMarket

NOON = parse_instant("2025-01-01T12:00:00Z")
MIDNIGHT = parse_instant("2025-01-02")


class NewsScene:
    def __init__(self, folder):
        self.folder = folder
        self.lake = Lake(folder / "lake")
        self.at = NOON
        self.market = LiveMarket()
        self.reads = 0
        self.news = LakeNews(self.find, "hyperliquid", self.market, lambda: self.at)

    def find(self):
        self.reads += 1
        return self.lake

    def add(self, *rows, name="news.jsonl"):
        path = self.folder / name
        path.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
        import_paths(self.lake, [path])

    def texts(self, at):
        self.at = at
        asyncio.run(self.news.refresh())
        return [item.text for item in self.market.market().view(at).news(800)]


def test_items_appear_when_they_have_arrived(tmp_path):
    scene = NewsScene(tmp_path)
    assert scene.texts(NOON) == []
    scene.add(
        {"published": NOON - HOUR_MS, "text": "old"},
        {"published": NOON - HOUR_MS, "text": "late", "first_seen_at": NOON + 5 * MINUTE_MS},
        {"published": parse_instant("2025-01-01"), "text": "dated"},
    )
    assert scene.texts(NOON) == ["old"]
    assert scene.texts(NOON + 5 * MINUTE_MS) == ["late", "old"]
    assert scene.texts(MIDNIGHT) == ["dated", "late", "old"]


def test_what_is_downloaded_during_the_run_is_read_at_the_next_time(tmp_path):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "first"})
    assert scene.texts(NOON) == ["first"]
    scene.add({"published": NOON, "text": "second", "first_seen_at": NOON + MINUTE_MS})
    assert scene.texts(NOON + 2 * MINUTE_MS) == ["second", "first"]


def test_an_unchanged_lake_changes_no_market(tmp_path):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "first"})
    scene.texts(NOON)
    market = scene.market.market()
    scene.texts(NOON + 10 * MINUTE_MS)
    assert scene.market.market() is market


def test_events_count_from_the_time_at_which_they_were_known(tmp_path):
    scene = NewsScene(tmp_path)
    (tmp_path / "events").mkdir()
    path = tmp_path / "events" / "fomc.csv"
    path.write_text("date,title,known_at\n2025-01-02T18:00:00Z,Rate decision,2025-01-01T13:00:00Z\n")
    import_paths(scene.lake, [path])
    scene.texts(NOON)
    assert scene.market.market().events == ()
    scene.texts(NOON + HOUR_MS)
    assert [event.title for event in scene.market.market().view(NOON + HOUR_MS).events(48)] == ["Rate decision"]


def test_old_news_are_not_kept(tmp_path):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - 40 * DAY_MS, "text": "ancient"}, {"published": NOON - 20 * DAY_MS, "text": "recent"})
    assert scene.texts(NOON) == ["recent"]


def test_a_lake_that_cannot_be_read_is_told_and_read_again(tmp_path):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "first"})

    def broken():
        raise UserError("no such lake")

    scene.news = LakeNews(broken, "hyperliquid", scene.market, lambda: scene.at)
    assert scene.texts(NOON) == []
    assert scene.news.problem == "the news of the lake cannot be read: no such lake"
    scene.news._find_lake = scene.find
    assert scene.texts(NOON) == ["first"]
    assert scene.news.problem == ""


def test_an_unforeseen_error_does_not_end_the_news_and_is_logged_once_for_each_kind(tmp_path, caplog):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "first"})
    errors = [ValueError("a bad row"), ValueError("another"), TypeError("no text"), None]
    notes = []

    def find():
        error = errors.pop(0)
        if error:
            raise error
        return scene.lake

    async def sleep(wait_s):
        notes.append(scene.news.problem)
        if not errors:
            raise asyncio.CancelledError

    scene.news = LakeNews(find, "hyperliquid", scene.market, lambda: scene.at)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scene.news.run(sleep=sleep))
    assert notes == [
        "the news of the lake cannot be read: ValueError('a bad row')",
        "the news of the lake cannot be read: ValueError('another')",
        "the news of the lake cannot be read: TypeError('no text')",
        "",
    ]
    assert [record.exc_info[0] for record in caplog.records] == [ValueError, TypeError]
    assert [item.text for item in scene.market.market().news] == ["first"]


def test_news_that_could_not_be_added_are_added_by_the_next_read(tmp_path, monkeypatch):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "first"})
    with monkeypatch.context() as patch:
        patch.setattr(scene.market, "add_news", lambda items: {}["a fault"])
        assert scene.texts(NOON) == []
    assert scene.texts(NOON) == ["first"]


def test_an_item_that_a_batch_has_twice_is_added_once():
    market = LiveMarket()
    item = NewsItem(NOON, NOON + MINUTE_MS, "wire", "twice")
    market.add_news([item, item])
    market.add_news([item, NewsItem(NOON, NOON, "wire", "once")])
    assert [each.text for each in market.market().news] == ["once", "twice"]


def test_news_of_a_generated_market_are_not_read(tmp_path):
    scene = NewsScene(tmp_path)
    scene.add({"published": NOON - HOUR_MS, "text": "made up"})
    scene.lake.mark_synthetic("hyperliquid", "generated")
    assert scene.texts(NOON) == []
