"""CryptoPanic's posts: headlines with their symbols and the votes of readers. Needs a key, which is never shown.

Written without the service's documentation: the form is the widely used one of `/api/v1/posts/`, read leniently. Votes are
those of the first download, because only they could have been known then.
"""

from typing import Any
from urllib.parse import urlsplit

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.core.plain_http import check_plain_http
from pitboss.data.downloaded_news import DownloadedItem, new_items
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, address, host_of
from pitboss.data.source import DataSource, DownloadRequest, SeriesRows, Single, StoredState, Task
from pitboss.data.sources.rss import clean

URL = "https://cryptopanic.com"
KEY = "CRYPTOPANIC_API_KEY"
PAGES = 5
PER_MINUTE = 60
MOST_BYTES = 4 * 2**20


def read_posts(value: Any, asked_at: Instant) -> tuple[list[DownloadedItem], bool]:
    """The posts of one page, and whether there is another."""
    posts = value.get("results") if isinstance(value, dict) else None
    if not isinstance(posts, list):
        raise MalformedReply("the posts have an unknown form")
    return [item for post in posts if (item := _item(post, asked_at))], bool(value.get("next"))


def _item(post: Any, asked_at: Instant) -> DownloadedItem | None:
    if not isinstance(post, dict) or not isinstance(post.get("title"), str):
        return None
    text = clean(post["title"])
    source = post.get("source")
    source = source if isinstance(source, dict) else {}
    name = clean(str(source.get("title") or source.get("domain") or "")) or "cryptopanic"
    keys = tuple(str(post[key]) for key in ("id", "url") if post.get(key))
    coins = post.get("currencies") or post.get("instruments") or []
    codes = {str(coin["code"]) for coin in coins if isinstance(coin, dict) and coin.get("code")}
    return (
        DownloadedItem(_time(post), asked_at, name[:80], text, keys, _mood(post.get("votes")), tuple(sorted(codes)))
        if text
        else None
    )


def _time(post: dict[str, Any]) -> Instant | None:
    try:
        return parse_instant(str(post.get("published_at") or ""))
    except (UserError, OverflowError, OSError):
        return None


def _mood(votes: Any) -> float | None:
    if not isinstance(votes, dict):
        return None
    up, down = (votes.get(name) for name in ("positive", "negative"))
    if not isinstance(up, int) or not isinstance(down, int) or up < 0 or down < 0 or not up + down:
        return None
    return round((up - down) / (up + down), 4)


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """The newest posts, a few pages of them."""
    key = request.key(KEY)
    if not key:
        raise UserError("CryptoPanic needs a key", f"`pitboss secrets set {KEY}`, or set the variable {KEY}")
    base = address(request.base_url or URL)
    parts = urlsplit(base)
    check_plain_http(parts.scheme, parts.hostname, "the address of CryptoPanic", request.http_hosts)
    budget = fetcher.budget(PER_MINUTE)

    async def fetch(stored: StoredState) -> list[SeriesRows]:
        items: list[DownloadedItem] = []
        for page in range(1, PAGES + 1):
            params = {"auth_token": key, "public": "true", "kind": "news", "page": str(page)}
            params |= {"currencies": ",".join(request.symbols)} if request.symbols else {}

            def parse(reply: Reply) -> tuple[list[DownloadedItem], bool]:
                return read_posts(reply.json(), reply.asked_at)

            page_items, has_more = await fetcher.ask(
                Query(f"{base}/api/v1/posts/", params, most_bytes=MOST_BYTES), parse, budget
            )
            items += page_items
            if not has_more or not page_items:
                break
        return [new_items(items, stored, (), host_of(base), request.hide)]

    return [Single("posts", "news", fetch)]


SOURCE = DataSource(
    "cryptopanic",
    "news",
    f"headlines with symbols and votes; needs the key {KEY}",
    ("news",),
    ("news",),
    (),
    plan,
    {"base-url": URL},
)
