"""News from RSS and Atom feeds. An item counts from the later of two moments: when it says it came out, when we met it.

A feed can be edited afterwards, so its own dates prove nothing about the past; the first sight does. Feeds are strangers'
text: bounded in size and number, never allowed to declare entities, read without following anything inside.
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
    """The items of a feed that have words. What cannot be read as a feed at all is told plainly."""
    import feedparser

    if b"<!entity" in content.replace(b"\0", b"").lower():  # UTF-16 hides it between zeros
        raise UserError(f"{host}: the feed declares entities of its own and is not read")
    try:
        # never as text: the library would take that for an address or a file's name
        found = feedparser.parse(
            io.BytesIO(content),
            response_headers={"content-type": media_type} if media_type else {},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError):
        found = {}  # a library that stumbles over a feed has not read one
    entries = found.get("entries") or []
    if not entries and (found.get("bozo") or not found.get("version")):
        raise UserError(f"{host}: this is not an RSS or Atom feed", "give the address of the feed itself")
    name = clean(str(found.get("feed", {}).get("title") or ""))[:80] or host
    items: list[DownloadedItem] = []
    for entry in entries[:MOST_ITEMS]:
        text = clean(str(entry.get("title") or "")) or clean(str(entry.get("summary") or ""))
        if text:
            keys = tuple(str(entry[key]) for key in ("id", "link") if entry.get(key))
            items.append(DownloadedItem(_published(entry), asked_at, name, text, keys))
    return items


def clean(text: str) -> str:
    """Words on one line, without marks of HTML and without characters that are none."""
    plain = html.unescape(_TAG.sub(" ", text[:20_000]))
    return " ".join("".join(letter if letter.isprintable() else " " for letter in plain).split())[:1_000]


def _published(entry: Any) -> Instant | None:
    for key in ("published_parsed", "updated_parsed"):
        try:
            # as a plain dict: the library's own lookup warns where one date stands in for the other
            at = timegm(dict.__getitem__(entry, key)) * 1000
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 < at < 4_102_444_800_000:  # a date beyond this century is a slip
            return at
    return None


async def plan(wanted: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """One question a feed."""
    return [_feed(address(url), wanted, fetcher) for url in wanted.urls]


def _feed(url: str, wanted: DownloadRequest, fetcher: Fetcher) -> Single:
    async def bring(known: StoredState) -> list[SeriesRows]:
        def read(reply: Reply) -> list[DownloadedItem]:
            return read_feed(reply.content, reply.media_type, reply.asked_at, host_of(url))

        items = await fetcher.ask(Query(url, most_bytes=MOST_BYTES), read)
        return [new_items(items, known, wanted.symbols, host_of(url))]

    # of several, one that fails does not keep the others from coming
    return Single(host_of(url), "news", bring, optional=len(wanted.urls) > 1)


SOURCE = DataSource(
    "rss",
    "news",
    "headlines of RSS and Atom feeds, each from the moment it was first met",
    ("news",),
    ("news",),
    ("url",),
    plan,
)
