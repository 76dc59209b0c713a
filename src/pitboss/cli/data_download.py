"""`pitboss data download`: download data from its publisher. Stored data is kept, however the download ends."""

import shlex
import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Json, RangeEnd, option
from pitboss.terminal.progress import progress_bar
from pitboss.terminal.workspace_options import Location

Urls = Annotated[
    tuple[str, ...],
    Parameter(
        name="--url", negative=(), consume_multiple=False, help="Address of a feed or a calendar. May be repeated."
    ),
]


def download(
    source: str,
    *,
    symbols: Annotated[str, option("--symbols", "Symbols, such as BTC,ETH; with hyperliquid also all.")] = "",
    interval: Annotated[str, option("--interval", "Length of a bar, or several, such as 15m,1h.")] = "",
    from_: Annotated[
        RangeEnd | None, Parameter(name=("--from", "--since"), help="Open time of the first bar; -30d is 30 days ago.")
    ] = None,
    to: Annotated[RangeEnd | None, option("--to", "End, exclusive. Only closed bars are stored. Default: now.")] = None,
    kinds: Annotated[str, option("--kinds", "Kinds of data, such as bars,funding. Default: those of the source.")] = "",
    url: Urls = (),
    base_url: Annotated[str, option("--base-url", "Address of the source instead of its public one.")] = "",
    files: Annotated[
        bool, option("--files", "Use published monthly and daily files instead of the API (binance only).")
    ] = False,
    venue: Annotated[str, option("--venue", "Venue under which the data is stored. Default: that of the source.")] = "",
    replace: Annotated[bool, option("--replace", "Let new rows replace stored ones that differ.")] = False,
    json: Json = False,
    location: Location,
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

    from pitboss.bootstrap.download import run_download
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.core.errors import TransientError, UserError
    from pitboss.core.instant import resolved
    from pitboss.data.download import DownloadProgress
    from pitboss.data.source import DownloadRequest
    from pitboss.runs.listing import times

    now = SystemClock().now
    request = DownloadRequest(
        venue,
        _split_list(symbols),
        _split_list(interval),
        _split_list(kinds),
        0 if from_ is None else resolved(from_, now),
        0 if to is None else resolved(to, now),
        base_url,
        url,
        files,
    )
    progress = DownloadProgress()
    try:
        with progress_bar(f"download {source}") as show:
            progress.show = show
            downloaded = asyncio.run(
                run_download(location.lake(writing=True), location.settings(), source, request, progress, replace)
            )
    except KeyboardInterrupt:
        screen.note(f"stopped; {progress.added:,} new rows are stored. Continue with the same command:")
        screen.note(f"  {_command_line()}")
        return INTERRUPTED
    except TransientError as error:
        raise TransientError(f"{error}; {progress.added:,} new rows are stored, the same command continues") from None
    except UserError as error:
        if progress.added:
            screen.note(f"{progress.added:,} new rows were stored before this")
        raise error from None
    if json:
        screen.put_json([times({**asdict(file), "notes": list(file.notes)}) for file in downloaded])
        return 0
    screen.put_table(
        ("kind", "symbol", "interval", "rows", "new", "replaced", "first", "last", "digest"),
        [
            (
                file.kind,
                file.symbol or "",
                file.interval or "",
                f"{file.rows:,}",
                f"{file.added:,}",
                f"{file.replaced:,}",
                _minute(file.first_at),
                _minute(file.last_at),
                file.digest[:12],
            )
            for file in downloaded
        ],
        right=(3, 4, 5),
        drop=(8, 5, 6),
    )
    for file in downloaded:
        for remark in file.notes:
            screen.note(f"note: {' '.join(part for part in (file.symbol, file.interval, file.kind) if part)}: {remark}")
    return 0


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _command_line() -> str:
    return shlex.join(["pitboss", *sys.argv[1:]])


def _minute(at: int | None) -> str:
    from pitboss.core.instant import iso

    return "" if at is None else iso(at)[:16].replace("T", " ")
