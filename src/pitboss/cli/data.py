"""`pitboss data …`: import, list and check market data in the workspace's lake."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App

from pitboss.cli.data_download import download
from pitboss.cli.data_transfer import pull, push
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Moment, given
from pitboss.terminal.workspace_options import Here

app = App(name="data", help="Import, download, list, check and push market data; make a demo market.")
app.command(download)
app.command(push)
app.command(pull)


@app.command(name="import")
def import_(
    *paths: Path,
    kind: Annotated[
        str | None, given("--kind", "bars, funding, open_interest, mark, oracle, l2, news, events, meta or listings.")
    ] = None,
    symbol: Annotated[str | None, given("--symbol", "Whose data it is, such as BTC.")] = None,
    interval: Annotated[str | None, given("--interval", "Length of a bar, such as 5m.")] = None,
    venue: Annotated[str, given("--venue", "Name to file it under.")] = "hyperliquid",
    replace: Annotated[bool, given("--replace", "Let new rows replace stored ones that differ.")] = False,
    known_at: Annotated[
        Moment | None, given("--known-at", "For events whose file does not say since when they were known.")
    ] = None,
    known_days_before: Annotated[
        float | None, given("--known-days-before", "The same, as days before each event.")
    ] = None,
    json: Json = False,
    place: Here,
) -> int:
    """Import files or whole folders: parquet, CSV, CSV.gz, feather, JSON lines, zip with one CSV.

    Kind, symbol and interval are inferred from the path (`candles/5m/BTC.parquet`, `funding/BTC.csv`) or the columns;
    what cannot be inferred must be given as an option. All files of one call are stored, or none. Importing the same
    rows again changes nothing.

    For example:

        pitboss data import candles/5m/BTC.parquet funding/BTC.parquet
        pitboss data import prices.csv --kind bars --symbol BTC --interval 1h
        pitboss data import recorded.jsonl --kind l2 --symbol BTC

    Parameters
    ----------
    paths
        Files and folders; folders are walked.
    """
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.importing import import_paths
    from pitboss.runs.listing import times

    now = SystemClock().now()
    done = import_paths(
        place.lake(writing=True), list(paths), kind, symbol, interval, venue, replace, known_at, now, known_days_before
    )
    if json:
        screen.put_json([times({**asdict(one), "notes": list(one.notes)}) for one in done])
        return 0
    rows = [
        (
            one.path,
            one.kind,
            one.symbol or "",
            one.interval or "",
            f"{one.rows:,}",
            f"{one.added:,}",
            f"{one.replaced:,}",
        )
        for one in done
    ]
    screen.put_table(
        ("file", "kind", "symbol", "interval", "rows", "added", "replaced"), rows, right=(4, 5, 6), folds=(0,)
    )
    for one in done:
        for remark in one.notes:
            screen.note(f"note: {one.path}: {remark}")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List the contents of the lake: number of rows, first and last time, number of gaps.

    For example:

        pitboss data list
    """
    from pitboss.runs.listing import holdings

    held = holdings(place.lake())
    if json:
        screen.put_json(held)
        return 0
    if not held:
        screen.put("there is no data here yet")
        screen.note(
            f"hint: `{place.typed('data demo')}` makes a market, `{place.typed('data import PATH')}` imports one"
        )
        return 0
    screen.put_table(
        ("venue", "kind", "symbol", "interval", "rows", "first", "last", "gaps"),
        [
            (
                one["venue"],
                one["kind"],
                one["symbol"] or "",
                one["interval"] or "",
                f"{one['rows']:,}",
                _minute(one["first_at"]),
                _minute(one["last_at"]),
                f"{one['gaps']:,}",
            )
            for one in held
        ],
        right=(4, 7),
        folds=(0,),
    )
    for venue in sorted({one["venue"] for one in held if one["synthetic"]}):
        screen.put(f"{venue} is SYNTHETIC: generated, nothing in it happened")
    return 0


@app.command
def check(*, json: Json = False, place: Here) -> int:
    """Check every stored file for gaps, duplicates and bad rows. Exit code 1 if any file is unusable.

    For example:

        pitboss data check
    """
    from pitboss.data.quality import check_lake as check_lake
    from pitboss.runs.listing import times

    found = check_lake(place.lake())
    unusable = sum(not one.usable for one in found)
    if json:
        screen.put_json({"ok": not unusable, "findings": [times(asdict(one)) for one in found]})
    elif found:
        worst_first = sorted(found, key=lambda one: ("error", "warning", "note").index(one.severity))
        rows = [(one.severity if one.usable else "UNUSABLE", one.problem, one.file, one.detail) for one in worst_first]
        screen.put_table(("severity", "problem", "file", "what"), rows, folds=(2, 3))
        if unusable:
            screen.note("hint: import the unusable files again with --replace, or remove them")
    else:
        screen.put("nothing is wrong with the data here")
    return 1 if unusable else 0


@app.command(name="extract-events")
def extract_events(*, json: Json = False, place: Here) -> int:
    """Extract coming events from the headlines in the lake, by simple rules. Unconfirmed: used only on request.

    They are stored apart from imported calendars and shown in a run with `--extracted-events`, marked as unconfirmed,
    each from the time when its headline was available.

    For example:

        pitboss data extract-events
    """
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.extract_events import extract

    done = extract(place.lake(writing=True), SystemClock().now())
    if json:
        screen.put_json([asdict(one) for one in done])
        return 0
    if not done:
        screen.put("there is no news here yet")
        return 0
    screen.put_table(
        ("venue", "headlines read", "events in them", "new", "known earlier"),
        [(one.venue, f"{one.read:,}", f"{one.found:,}", f"{one.added:,}", f"{one.replaced:,}") for one in done],
        right=(1, 2, 3, 4),
    )
    return 0


@app.command
def demo(*, json: Json = False, place: Here) -> int:
    """Generate the demo market: BTC, ETH and SOL, 90 days of 5m bars. The data is synthetic.

    For example:

        pitboss data demo
    """
    from pitboss.data.demo import VENUE, write_demo
    from pitboss.runs.listing import times

    held = write_demo(place.lake(writing=True))
    if json:
        screen.put_json([{**times(asdict(one)), "synthetic": True} for one in held])
        return 0
    rows = sum(one.rows for one in held)
    screen.put(f"wrote {rows:,} rows of a SYNTHETIC market as venue {VENUE}; no price, headline or event in it is real")
    return 0


def _minute(text: str | None) -> str:
    """Format an ISO time for a table."""
    return (text or "")[:16].replace("T", " ")
