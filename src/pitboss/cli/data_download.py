"""`pitboss data download`: download data from its publisher. Stored data is kept, however the download ends."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from pitboss.terminal import screen
from pitboss.terminal.options import Json, Moment, given
from pitboss.terminal.workspace_options import Here

Urls = Annotated[
    tuple[str, ...],
    Parameter(
        name="--url", negative=(), consume_multiple=False, help="Address of a feed or a calendar. May be repeated."
    ),
]


def download(
    source: str,
    *,
    symbols: Annotated[str, given("--symbols", "Such as BTC,ETH; with hyperliquid also all.")] = "",
    interval: Annotated[str, given("--interval", "Length of a bar, or several: 15m,1h.")] = "",
    from_: Annotated[Moment | None, Parameter(name=("--from", "--since"), help="Open time of the first bar.")] = None,
    to: Annotated[
        Moment | None, given("--to", "End, not included; now unless given. Only closed bars are stored.")
    ] = None,
    kinds: Annotated[str, given("--kinds", "Which kinds to take, such as bars,funding.")] = "",
    url: Urls = (),
    base_url: Annotated[str, given("--base-url", "Another address in place of the source's public one.")] = "",
    files: Annotated[
        bool, given("--files", "Published monthly and daily files in place of the API (binance).")
    ] = False,
    venue: Annotated[str, given("--venue", "Name to file it under; the source's own unless given.")] = "",
    replace: Annotated[bool, given("--replace", "Let new rows replace stored ones that differ.")] = False,
    json: Json = False,
    place: Here,
) -> int:
    """Download market data, news or events into the lake.

    Sources: hyperliquid, binance (candles and funding), pyth (candles of oracle prices), rss, cryptopanic (news),
    calendar (events). Only missing data is requested, page by page, within the rate limits of the source. After
    Ctrl-C or a crash of the machine, the same command continues where it stopped.

    For example:

        pitboss data download hyperliquid --symbols BTC,ETH --interval 15m --from 2025-06-01
        pitboss data download rss --url https://example.com/feed.xml

    Parameters
    ----------
    source
        hyperliquid, binance, pyth, rss, cryptopanic or calendar.
    """
    import asyncio

    from pitboss.bootstrap.download import bring
    from pitboss.core.errors import TransientError, UserError
    from pitboss.data.download import DownloadProgress
    from pitboss.data.source import DownloadRequest
    from pitboss.runs.listing import times

    wanted = DownloadRequest(
        venue,
        _words(symbols),
        _words(interval),
        _words(kinds),
        from_ or 0,
        to or 0,
        base_url,
        url,
        files,
    )
    sight = DownloadProgress()
    try:
        with bar(f"download {source}") as show:
            sight.show = show
            done = asyncio.run(bring(place.lake(writing=True), place.settings(), source, wanted, sight, replace))
    except KeyboardInterrupt:
        screen.note(f"stopped; {sight.added:,} new rows are stored. Go on with the same command:")
        screen.note(f"  {_typed()}")
        return 130
    except TransientError as error:
        raise TransientError(f"{error}; {sight.added:,} new rows are stored, the same command goes on") from None
    except UserError as error:
        if sight.added:
            screen.note(f"{sight.added:,} new rows were stored before this")
        raise error from None
    if json:
        screen.put_json([times({**asdict(one), "notes": list(one.notes)}) for one in done])
        return 0
    screen.put_table(
        ("kind", "symbol", "interval", "rows", "new", "replaced", "first", "last", "digest"),
        [
            (
                one.kind,
                one.symbol or "",
                one.interval or "",
                f"{one.rows:,}",
                f"{one.added:,}",
                f"{one.replaced:,}",
                _minute(one.first_at),
                _minute(one.last_at),
                one.digest[:12],
            )
            for one in done
        ],
        right=(3, 4, 5),
    )
    for one in done:
        for remark in one.notes:
            screen.note(f"note: {' '.join(word for word in (one.symbol, one.interval, one.kind) if word)}: {remark}")
    return 0


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _typed() -> str:
    return shlex.join(["pitboss", *sys.argv[1:]])


def _minute(at: int | None) -> str:
    from pitboss.core.instant import iso

    return "" if at is None else iso(at)[:16].replace("T", " ")


@contextmanager
def bar(label: str) -> Iterator[Callable[[float, str], None]]:
    """Show a progress bar with the current download, if standard error is a terminal."""
    if not screen.ERR.is_terminal:
        yield lambda done, what: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen.ERR, transient=True) as progress:
        task = progress.add_task(label, total=1.0)
        yield lambda done, what: progress.update(task, completed=done, description=f"{label}: {what}")
