"""`pitboss data …`: import, list and check market data in the workspace's lake."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App

from pitboss.cli.data_check import check
from pitboss.cli.data_download import download
from pitboss.cli.data_transfer import pull, push
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Moment, option
from pitboss.terminal.workspace_options import Location

app = App(name="data", help="Import, download, list, check, push and pull market data; generate a demo market.")
app.command(check)
app.command(download)
app.command(push)
app.command(pull)


@app.command(name="import")
def import_(
    *paths: Path,
    kind: Annotated[
        str | None, option("--kind", "bars, funding, open_interest, mark, oracle, l2, news, events, meta or listings.")
    ] = None,
    symbol: Annotated[str | None, option("--symbol", "Symbol of the data, such as BTC.")] = None,
    interval: Annotated[str | None, option("--interval", "Length of a bar, such as 5m.")] = None,
    venue: Annotated[str, option("--venue", "Venue under which the data is stored.")] = "hyperliquid",
    replace: Annotated[bool, option("--replace", "Let new rows replace stored ones that differ.")] = False,
    known_at: Annotated[
        Moment | None, option("--known-at", "Time from which on events are known, if their file does not say.")
    ] = None,
    known_days_before: Annotated[
        float | None, option("--known-days-before", "The same as a number of days before each event.")
    ] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Import files or whole folders: parquet, CSV, CSV.gz, feather, JSON lines, zip with one CSV.

    Kind, symbol and interval are inferred from the path (`candles/5m/BTC.parquet`, `funding/BTC.csv`) or the columns;
    what cannot be inferred must be given as an option. All files of one call are stored, or none. Importing the same
    rows again changes nothing.

    For example:

        pitboss data import candles/5m/BTC.parquet funding/BTC.csv
        pitboss data import prices.csv --kind bars --symbol BTC --interval 1h
        pitboss data import recorded.jsonl --kind l2 --symbol BTC

    Parameters
    ----------
    paths
        Files and folders; folders are searched recursively.
    """
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.importing import import_paths
    from pitboss.runs.listing import times

    now = SystemClock().now()
    imported = import_paths(
        location.lake(writing=True),
        list(paths),
        kind,
        symbol,
        interval,
        venue,
        replace,
        known_at,
        now,
        known_days_before,
    )
    if json:
        screen.put_json([times({**asdict(file), "notes": list(file.notes)}) for file in imported])
        return 0
    rows = [
        (
            file.path,
            file.kind,
            file.symbol or "",
            file.interval or "",
            f"{file.rows:,}",
            f"{file.added:,}",
            f"{file.replaced:,}",
        )
        for file in imported
    ]
    screen.put_table(
        ("file", "kind", "symbol", "interval", "rows", "added", "replaced"),
        rows,
        right=(4, 5, 6),
        folds=(0,),
        drop=(6, 3),
    )
    for file in imported:
        for remark in file.notes:
            screen.note(f"note: {file.path}: {remark}")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the contents of the lake: number of rows, first and last time, number of gaps.

    For example:

        pitboss data list
    """
    from pitboss.runs.listing import holdings

    series = holdings(location.lake())
    if json:
        screen.put_json(series)
        return 0
    if not series:
        screen.put(f"there is no data in the workspace {location.settings().home}")
        screen.note(
            f"hint: `{location.command_line('data demo')}` generates data, `{location.command_line('data import PATH')}` imports it"
        )
        return 0
    screen.put_table(
        ("venue", "kind", "symbol", "interval", "rows", "first", "last", "gaps"),
        [
            (
                row["venue"],
                row["kind"],
                row["symbol"] or "",
                row["interval"] or "",
                f"{row['rows']:,}",
                _minute(row["first_at"]),
                _minute(row["last_at"]),
                f"{row['gaps']:,}",
            )
            for row in series
        ],
        right=(4, 7),
        folds=(0,),
        drop=(5, 6),
    )
    for venue in sorted({row["venue"] for row in series if row["synthetic"]}):
        screen.put(f"{venue} is SYNTHETIC: generated, not real")
    return 0


@app.command(name="extract-events")
def extract_events(*, json: Json = False, location: Location) -> int:
    """Extract scheduled events from the headlines in the lake, by simple rules. Runs use them only on request.

    They are stored apart from imported calendars. A run with `--extracted-events` shows them, marked as unconfirmed,
    each from the time when its headline was available.

    For example:

        pitboss data extract-events
    """
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.extract_events import extract

    extracted = extract(location.lake(writing=True), SystemClock().now())
    if json:
        screen.put_json([asdict(result) for result in extracted])
        return 0
    if not extracted:
        screen.put("there is no news here yet")
        return 0
    screen.put_table(
        ("venue", "headlines", "events", "new", "known earlier"),
        [
            (result.venue, f"{result.read:,}", f"{result.found:,}", f"{result.added:,}", f"{result.replaced:,}")
            for result in extracted
        ],
        right=(1, 2, 3, 4),
    )
    return 0


@app.command
def demo(*, json: Json = False, location: Location) -> int:
    """Generate the demo market: BTC, ETH and SOL, 90 days of 5m bars; before them 3 days of BTC in 1m bars. It is synthetic.

    For example:

        pitboss data demo
    """
    from pitboss.data.demo import VENUE, write_demo
    from pitboss.runs.listing import times

    files = write_demo(location.lake(writing=True))
    if json:
        screen.put_json([{**times(asdict(file)), "synthetic": True} for file in files])
        return 0
    rows = sum(file.rows for file in files)
    screen.put(f"wrote {rows:,} rows of a SYNTHETIC market as venue {VENUE}; no price, headline or event in it is real")
    return 0


def _minute(text: str | None) -> str:
    """Format an ISO time for a table."""
    return (text or "")[:16].replace("T", " ")
