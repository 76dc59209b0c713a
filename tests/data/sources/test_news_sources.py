import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from source_servers import FakeTime, closing, serving_app

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.core.redaction import ValueRedactor
from pitboss.data.download import DownloadResult, download
from pitboss.data.lake import Lake
from pitboss.data.series import series
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import names, source
from pitboss.data.sources.calendar import read_calendar
from pitboss.data.sources.rss import clean, read_feed

NOW = parse_instant("2025-03-01T12:00:00")
ITEM = "<item><title>{}</title><guid>{}</guid><pubDate>{}</pubDate></item>"
EARLY, LATE = "Sat, 01 Mar 2025 09:00:00 GMT", "Sat, 01 Mar 2025 15:00:00 GMT"


def feed(*items: tuple[str, str, str]) -> bytes:
    inside = "".join(ITEM.format(*item) for item in items)
    return f"<rss version='2.0'><channel><title>Wire</title>{inside}</channel></rss>".encode()


class NewsServer:
    def __init__(self, content: bytes = b"", media_type: str = "application/rss+xml") -> None:
        self.content, self.media_type, self.queries = content, media_type, []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.reply)
        return app

    async def reply(self, request: web.Request) -> web.Response:
        self.queries.append(request.query)
        return web.Response(body=self.content, content_type=self.media_type)


def run_download(
    lake: Lake, site: NewsServer, name: str = "rss", at: int = NOW, path: str = "/feed", **more: Any
) -> list[DownloadResult]:
    fetcher = FakeTime(at).fetcher()
    with serving_app(site.app()) as url:
        where = {"base_url": url} if name == "cryptopanic" else {"urls": (url + path,)}
        request = DownloadRequest("calm", **(where | more))
        return asyncio.run(closing(fetcher, download(lake, source(name), request, fetcher)))


def test_every_source_is_found_by_looking_into_the_folder() -> None:
    assert names() == ["binance", "calendar", "cryptopanic", "hyperliquid", "pyth", "rss"]
    assert all(source(name).name == name for name in names())
    with pytest.raises(UserError) as caught:
        source("hyperlquid")
    assert caught.value.hint == "did you mean hyperliquid?"


def test_an_item_counts_from_the_later_of_its_date_and_its_first_sight(lake: Lake) -> None:
    run_download(lake, NewsServer(feed(("Old one", "1", EARLY), ("Coming one", "2", LATE), ("Undated", "3", ""))))
    arrived = {item.text: item.available_at for item in lake.news("calm")}
    assert arrived == {"Old one": NOW, "Coming one": NOW + 3 * 3_600_000, "Undated": NOW}


def test_an_item_met_again_stays_as_it_was_first_met(lake: Lake) -> None:
    run_download(lake, NewsServer(feed(("Fed holds", "1", EARLY))))
    again = run_download(
        lake, NewsServer(feed(("Fed holds", "1", EARLY), ("FED  holds!", "9", EARLY))), at=NOW + DAY_MS
    )
    assert [item.available_at for item in lake.news("calm")] == [NOW]
    assert again[0].added == 0
    assert "2 items stored before" in again[0].notes


def test_an_item_whose_headline_was_changed_is_known_by_its_id(lake: Lake) -> None:
    site = NewsServer(feed(("Fed holds", "id-1", EARLY)))
    fetcher = FakeTime(NOW).fetcher()

    async def twice(url: str) -> None:
        request = DownloadRequest("calm", urls=(f"{url}/feed",))
        await download(lake, source("rss"), request, fetcher)
        site.content = feed(("Fed holds, dollar falls", "id-1", EARLY))
        await download(lake, source("rss"), request, fetcher)

    with serving_app(site.app()) as url:
        asyncio.run(closing(fetcher, twice(url)))
    assert [item.text for item in lake.news("calm")] == ["Fed holds"]


def test_a_lost_memory_of_ids_does_not_store_a_headline_twice(lake: Lake) -> None:
    run_download(lake, NewsServer(feed(("Fed holds", "1", EARLY))))
    for path in (lake.root / ".seen").iterdir():
        path.write_bytes(b"{ damaged")
    run_download(lake, NewsServer(feed(("Fed holds", "1", EARLY))), at=NOW + DAY_MS)
    assert [item.available_at for item in lake.news("calm")] == [NOW]


def test_atom_is_read_and_symbols_are_found_as_whole_words(lake: Lake) -> None:
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry><id>1</id>
    <title type="html">BTC &amp;amp; &lt;b&gt;ETHER&lt;/b&gt;</title><updated>2025-03-01T10:00:00Z</updated></entry></feed>"""
    run_download(lake, NewsServer(atom, "application/atom+xml"), symbols=("BTC", "ETH"))
    assert [(item.text, item.symbols, item.source) for item in lake.news("calm")] == [("BTC & ETHER", ("BTC",), "A")]


BOMB = b"""<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<rss version="2.0"><channel><title>x</title><item><title>&b;</title></item></channel></rss>"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (BOMB, "declares entities"),
        (BOMB.decode().encode("utf-16"), "declares entities"),
        (b"<html><body>hello</body></html>", "not an RSS or Atom feed"),
        (b"", "not an RSS or Atom feed"),
        (b"\x00\xff\xfe" * 50, "not an RSS or Atom feed"),
        (b"x" * (4 * 2**20 + 1), "sent more than"),
    ],
)
def test_a_hostile_feed_is_refused_in_plain_words(lake: Lake, content: bytes, text: str) -> None:
    with pytest.raises(UserError, match=text):
        run_download(lake, NewsServer(content))
    assert lake.news("calm") == []


def test_of_several_feeds_one_that_fails_is_reported_and_the_others_come(lake: Lake) -> None:
    fetcher = FakeTime(NOW).fetcher()
    with (
        serving_app(NewsServer(BOMB).app()) as bad,
        serving_app(NewsServer(feed(("Fed holds", "1", EARLY))).app()) as good,
    ):
        request = DownloadRequest("calm", urls=(f"{bad}/feed", f"{good}/feed"))
        results = asyncio.run(closing(fetcher, download(lake, source("rss"), request, fetcher)))
    assert "declares entities" in results[0].notes[0]
    assert [item.text for item in lake.news("calm")] == ["Fed holds"]


def test_an_outside_entity_is_never_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    text = f'<?xml version="1.0"?><!DOCTYPE r SYSTEM "file://{secret}"><rss version="2.0"><channel><title>t</title>'
    text += "<item><title>words &amp; more</title></item></channel></rss>"
    items = read_feed(text.encode(), "text/xml", NOW, "host")
    assert [item.text for item in items] == ["words & more"]


def test_bad_encodings_and_broken_xml_give_what_can_be_read() -> None:
    text = b"<?xml version='1.0' encoding='utf-8'?>" + feed(("caf\xe9 \x02 news", "1", EARLY)).replace(
        "caf\xe9".encode(), b"caf\xe9"
    )
    items = read_feed(text, "text/xml; charset=ascii", NOW, "host")
    assert len(items) == 1
    assert items[0].text.isprintable()


@settings(max_examples=30)
@given(st.binary(max_size=300), st.text(max_size=80))
def test_no_feed_whatever_its_bytes_ends_in_anything_but_items_or_a_refusal(content: bytes, text: str) -> None:
    for each in (content, b"<rss><channel><item><title>" + content + b"</title></item></channel></rss>"):
        try:
            items = read_feed(each, "", NOW, "host")
        except UserError:
            continue
        assert all(item.text and item.text.isprintable() for item in items)
    assert len(clean(text)) <= 1_000


def posts(more: bool = False) -> bytes:
    one = {
        "id": 7,
        "title": "BTC moves",
        "published_at": "2025-03-01T11:00:00Z",
        "url": "https://example.com/7",
        "source": {"title": "Desk"},
        "currencies": [{"code": "BTC"}, {"nothing": 1}],
        "votes": {"positive": 3, "negative": 1},
    }
    odd = [None, {"title": 5}, {"title": "No date", "votes": {"positive": -1, "negative": "x"}}]
    return json.dumps({"results": [one, *odd], "next": "https://elsewhere.example" if more else None}).encode()


def test_posts_bring_symbols_and_mood_and_the_key_goes_to_the_service_alone(lake: Lake) -> None:
    site = NewsServer(posts(), "application/json")
    results = run_download(
        lake, site, "cryptopanic", symbols=("BTC",), key=lambda name: "k3y" if "PANIC" in name else ""
    )
    items = {item.text: (item.source, item.sentiment, item.symbols) for item in lake.news("calm")}
    assert items == {"BTC moves": ("Desk", 0.5, ("BTC",)), "No date": ("cryptopanic", None, ())}
    assert site.queries[0]["auth_token"] == "k3y"
    assert "k3y" not in str(results)


@pytest.mark.parametrize("date", ["8000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "1970-01-02T00:00:01Z"])
def test_a_post_with_an_impossible_date_leaves_the_others_as_they_are(lake: Lake, date: str) -> None:
    odd = {"title": "odd", "published_at": date}
    content = json.dumps({"results": [*json.loads(posts())["results"], odd]}).encode()
    run_download(lake, NewsServer(content, "application/json"), "cryptopanic", key=lambda name: "k3y")
    published = {item.text: item.published_at for item in lake.news("calm")}
    assert published["BTC moves"] == parse_instant("2025-03-01T11:00:00Z")
    assert published["No date"] == NOW


def test_a_feed_of_old_items_alone_has_their_dates(lake: Lake) -> None:
    run_download(lake, NewsServer(feed(("old", "1", "Fri, 02 Jan 1970 10:00:00 GMT"))))
    assert [item.published_at for item in lake.news("calm")] == [parse_instant("1970-01-02T10:00:00Z")]


def test_a_next_page_is_asked_of_the_same_service_and_ends(lake: Lake) -> None:
    site = NewsServer(posts(more=True), "application/json")
    run_download(lake, site, "cryptopanic", key=lambda name: "k3y")
    assert [query["page"] for query in site.queries] == ["1", "2", "3", "4", "5"]
    assert len(lake.news("calm")) == 2


def test_no_key_is_reported_with_how_to_keep_one(lake: Lake) -> None:
    with pytest.raises(UserError) as caught:
        run_download(lake, NewsServer(), "cryptopanic")
    assert caught.value.hint.startswith("`pitboss secrets set CRYPTOPANIC_API_KEY`")


def test_a_failure_never_shows_the_key(lake: Lake) -> None:
    with pytest.raises(TransientError) as caught:
        run_download(lake, NewsServer(b"<html>", "text/html"), "cryptopanic", key=lambda name: "k3y")
    assert "k3y" not in str(caught.value)


def test_a_key_that_the_service_repeats_in_a_headline_is_not_stored(lake: Lake) -> None:
    key = "panic-0123456789"
    posts = [{"id": 1, "title": "\u200b".join(key), "source": {"title": key[::-1]}}, {"id": 2, "title": "BTC moves"}]
    site = NewsServer(json.dumps({"results": posts}).encode(), "application/json")
    run_download(lake, site, "cryptopanic", key=lambda name: key, hide=ValueRedactor([key]).hide)
    assert {(item.text, item.source) for item in lake.news("calm")} == {("***", "***"), ("BTC moves", "cryptopanic")}


def test_a_key_is_not_sent_over_plain_http_to_another_machine(lake: Lake) -> None:
    with pytest.raises(UserError, match=r"http:// to box is refused") as caught:
        run_download(lake, NewsServer(), "cryptopanic", key=lambda name: "k3y", base_url="http://box:9")
    assert "PITBOSS_HTTP_HOSTS=box" in caught.value.hint


ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:CPI\\, for
  February
CATEGORIES:inflation
DTSTART;TZID=America/New_York:20250312T083000
END:VEVENT
BEGIN:VEVENT
SUMMARY:Past meeting
DTSTART:20250129T190000Z
END:VEVENT
BEGIN:VEVENT
SUMMARY:Called off
STATUS:CANCELLED
DTSTART:20250401T190000Z
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n").encode()


def test_a_calendar_is_known_from_its_first_sight_and_stays_so(lake: Lake) -> None:
    run_download(lake, NewsServer(ICS, "text/calendar"), "calendar", path="/a.ics")
    run_download(lake, NewsServer(ICS, "text/calendar"), "calendar", path="/a.ics", at=NOW + DAY_MS)
    assert [(event.title, event.kind, event.scheduled_at, event.known_at) for event in lake.events("calm")] == [
        ("Past meeting", "event", parse_instant("2025-01-29T19:00:00"), parse_instant("2025-01-29T19:00:00")),
        ("CPI, for February", "inflation", parse_instant("2025-03-12T12:30:00"), NOW),
    ]


def test_an_event_of_the_far_future_leaves_the_times_of_the_others_as_they_are() -> None:
    frame, _ = read_calendar(ICS.replace(b"20250129T190000Z", b"99991231T190000Z"), NOW, "host")
    assert frame["scheduled_at"].dt.epoch("ms").to_list() == [
        parse_instant("2025-03-12T12:30:00"),
        parse_instant("9999-12-31T19:00:00"),
    ]


def test_a_calendar_may_begin_with_spaces_and_empty_lines() -> None:
    frame, _ = read_calendar(b" \r\n\t" + ICS, NOW, "host")
    assert frame["title"].to_list() == ["Past meeting", "CPI, for February"]


def test_a_csv_calendar_says_what_was_assumed_about_when_it_was_known(lake: Lake) -> None:
    content = b"release_utc,kind\n2025-03-19T18:00:00Z,FOMC statement\n"
    results = run_download(lake, NewsServer(content, "text/csv"), "calendar", path="/fomc.csv")
    assert [event.known_at for event in lake.events("calm")] == [NOW]
    assert any("counts as known from its first download" in note for note in results[0].notes)


def test_a_known_at_of_the_calendar_itself_is_taken(lake: Lake) -> None:
    content = b"release_utc,kind,known_at\n2025-03-19T18:00:00Z,FOMC statement,2024-08-01\n"
    run_download(lake, NewsServer(content, "text/csv"), "calendar")
    assert [event.known_at for event in lake.events("calm")] == [parse_instant("2024-08-01")]


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n", b"BEGIN:VCALENDAR\nEND:VCALENDAR", ICS.replace(b"20250129", b"nonsense")]
)
def test_what_is_no_calendar_is_refused(lake: Lake, content: bytes) -> None:
    with pytest.raises(UserError):
        run_download(lake, NewsServer(content, "text/plain"), "calendar")
    assert lake.events("calm") == []


def calendar_with(*lines: str) -> bytes:
    text = "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:CPI", *lines, "END:VEVENT", "END:VCALENDAR", ""])
    return text.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    ("start", "instant"),
    [
        ("DTSTART;VALUE=DATE:20250312", "2025-03-12T00:00:00"),
        ("DTSTART:20250312T083000", "2025-03-12T08:30:00"),  # without a zone: UTC
        ("DTSTART;TZID=W. Europe Standard Time:20250312T083000", "2025-03-12T07:30:00"),
        ('DTSTART;TZID="Asia/Tokyo":20250312T083000', "2025-03-11T23:30:00"),
    ],
)
def test_an_event_of_a_calendar_starts_by_its_own_time_zone_or_at_midnight(start: str, instant: str) -> None:
    frame, _ = read_calendar(calendar_with(start), NOW, "host")
    assert frame["scheduled_at"].dt.epoch("ms").to_list() == [parse_instant(instant)]


ENDLESS_ZONE = """BEGIN:VTIMEZONE
TZID:Mine
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=SECONDLY
END:STANDARD
END:VTIMEZONE
"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (calendar_with("DTSTART;TZID=Nowhere/Else:20250312T083000"), "the event 'CPI' has no start time"),
        (calendar_with("DTSTART:20250312T083000Z", "RRULE:FREQ=SECONDLY"), "the event 'CPI' repeats"),
        (calendar_with("CATEGORIES:x"), "the event 'CPI' has no start time"),
        (calendar_with("DTSTART;TZID=America/New_York:99991231T230000"), "the event 'CPI' has no start time"),
        (calendar_with("DTSTART:20250312T083000Z", "SUMMARY" + ";a=b" * 6_000 + ":x"), "a SUMMARY line of 24,009"),
        (calendar_with(*["BEGIN:VEVENT"] * 20_001), "20,003 events"),
        (calendar_with("DTSTART:20250312T083000Z").replace(b"END:VCALENDAR", b""), "no events"),
        (
            ICS.replace(b"BEGIN:VEVENT", ENDLESS_ZONE.encode() + b"BEGIN:VEVENT", 1).replace(
                b"America/New_York", b"Mine"
            ),
            "has no start time",
        ),
    ],
)
def test_a_hostile_or_repeating_calendar_is_refused_with_the_event_or_line(content: bytes, text: str) -> None:
    with pytest.raises(UserError, match=text):
        read_calendar(content, NOW, "host")


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_a_calendar_of_any_bytes_gives_sound_events_or_a_refusal(content: bytes) -> None:
    calendar = calendar_with("DTSTART:20250312T083000Z", "CATEGORIES:macro")
    for line in (b"SUMMARY:CPI", b"DTSTART:20250312T083000Z", b"CATEGORIES:macro", b"END:VEVENT"):
        name = line.partition(b":")[0]
        for replacement in (content, name + b":" + content, name + b";" + content):
            try:
                frame, _ = read_calendar(calendar.replace(line, replacement), NOW, "host")
            except UserError:
                continue
            assert frame.schema == series("events").columns
            for title, kind in frame.select("title", "kind").iter_rows():
                assert (title.strip(), len(title) <= 1_000, title.isprintable()) == (title, True, True)
                assert (len(kind) <= 1_000, kind.isprintable()) == (True, True)
            assert (frame["known_at"] <= frame["scheduled_at"]).all()
