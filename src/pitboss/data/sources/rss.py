"""News from RSS and Atom feeds. An item counts from its own date or from the first download, whichever is later.

A feed can be edited afterwards, so its dates prove nothing about the past; the time of the first download does. Feeds are
untrusted: bounded in size and number, refused if they declare entities, and no reference in them is followed.
"""

import html
import io
import re
from calendar import timegm
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.downloaded_news import DownloadedItem, new_items
from pitboss.data.fetch import Fetcher, Query, Reply, address, host_of
from pitboss.data.source import DataSource, DownloadRequest, SeriesRows, Single, StoredState, Task

MOST_BYTES = 4 * 2**20
MOST_ITEMS = 2_000
_TAG = re.compile(r"<[^<>]{0,2000}>")


def read_feed(content: bytes, media_type: str, asked_at: Instant, host: str) -> list[DownloadedItem]:
    """The items of a feed that have text. Content that is no feed is a `UserError`."""
    import feedparser

    if b"<!entity" in content.replace(b"\0", b"").lower():  # UTF-16 hides it between zeros
        raise UserError(f"{host}: the feed declares entities of its own and is refused")
    try:
        # never as text: the library would treat it as an address or a file name
        parsed = feedparser.parse(
            io.BytesIO(content),
            response_headers={"content-type": media_type} if media_type else {},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError):
        parsed = {}  # the library fails on some content that is no feed
    entries = parsed.get("entries") or []
    if not entries and (parsed.get("bozo") or not parsed.get("version")):
        raise UserError(f"{host}: this is not an RSS or Atom feed", "give the address of the feed itself")
    name = clean(str(parsed.get("feed", {}).get("title") or ""))[:80] or host
    items: list[DownloadedItem] = []
    for entry in entries[:MOST_ITEMS]:
        text = clean(str(entry.get("title") or "")) or clean(str(entry.get("summary") or ""))
        if text:
            keys = tuple(str(entry[key]) for key in ("id", "link") if entry.get(key))
            items.append(DownloadedItem(_published(entry), asked_at, name, text, keys))
    return items


def clean(text: str) -> str:
    """The text on one line, without HTML tags and unprintable characters."""
    plain = html.unescape(_TAG.sub(" ", text[:20_000]))
    return " ".join("".join(letter if letter.isprintable() else " " for letter in plain).split())[:1_000]


def _published(entry: Any) -> Instant | None:
    for key in ("published_parsed", "updated_parsed"):
        try:
            # as a plain dict: the library's own lookup warns where one date replaces the other
            at = timegm(dict.__getitem__(entry, key)) * 1000
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 < at < 4_102_444_800_000:  # a date beyond this century is a mistake
            return at
    return None


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """One request for each feed."""
    return [_feed(address(url), request, fetcher) for url in request.urls]


def _feed(url: str, request: DownloadRequest, fetcher: Fetcher) -> Single:
    async def fetch(stored: StoredState) -> list[SeriesRows]:
        def parse(reply: Reply) -> list[DownloadedItem]:
            return read_feed(reply.content, reply.media_type, reply.asked_at, host_of(url))

        items = await fetcher.ask(Query(url, most_bytes=MOST_BYTES), parse)
        return [new_items(items, stored, request.symbols, host_of(url), request.hide)]

    # if one of several feeds fails, the others are still stored
    return Single(host_of(url), "news", fetch, optional=len(request.urls) > 1)


SOURCE = DataSource(
    "rss", "news", "headlines of RSS and Atom feeds, each from its first download", ("news",), ("news",), ("url",), plan
)
