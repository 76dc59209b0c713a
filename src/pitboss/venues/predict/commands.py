"""The command group `pitboss predict`: pricing, market listing and settlement checks for binary prediction markets.

The platform adds `backtest` and the help of the group (`Venue.commands_help`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pitboss.terminal import screen
from pitboss.terminal.options import Duration, Json, Moment, option
from pitboss.terminal.workspace_options import Location
from pitboss.venues.predict import chain_commands
from pitboss.venues.predict import run_command as predict_running
from pitboss.venues.predict.svi import Generation

if TYPE_CHECKING:
    from pitboss.venues.predict.rounds import Agreement

LATEST = 4_102_444_800_000
"""The year 2100: the latest instant for which the schedule is computed."""

app = App(name="predict")
predict_running.register(app)
chain_commands.register(app)


@app.command
def price(
    *,
    forward: Annotated[float, option("--forward", "Forward price of the underlying, in USD.")],
    strike: Annotated[float, option("--strike", "Strike, in USD.")],
    svi: Annotated[
        str,
        Parameter(
            name="--svi",
            allow_leading_hyphen=True,
            help="The surface as five numbers: a,b,rho,m,sigma (total variance).",
        ),
    ],
    pricing: Annotated[Generation, option("--pricing", "v1: N(d2). v2: N(d2) with the skew term.")] = "v1",
    json: Json = False,
) -> None:
    """Fair prices of UP and DOWN at a strike.

    The variance of the surface is the total up to expiry, so no time is needed.

    For example:

        pitboss predict price --forward 63200 --strike 63000 --svi 0.0004,0.01,-0.2,0,0.01
    """
    from pitboss.core.errors import UserError
    from pitboss.venues.predict.svi import Svi, fair

    try:
        a, b, rho, m, sigma = map(float, svi.split(","))
    except ValueError:
        raise UserError(
            f"--svi {svi!r} is not five numbers", "for example --svi 0.0004,0.01,-0.2,0,0.01 (a,b,rho,m,sigma)"
        ) from None
    probabilities = fair(pricing, forward, strike, Svi(a, b, rho, m, sigma))
    if json:
        screen.put_json(
            {"up": probabilities.up, "down": probabilities.down, "w": probabilities.w, "d2": probabilities.d2}
        )
        return
    screen.put(f"UP (YES)   {probabilities.up:.9f}")
    screen.put(f"DOWN (NO)  {probabilities.down:.9f}")
    screen.put(f"total variance {probabilities.w:.9g}, d2 {probabilities.d2:.9g}, pricing {pricing}")


@app.command
def markets(
    *,
    at: Annotated[Moment | None, option("--at", "Time for which markets are listed; default: now.")] = None,
    tiers: Annotated[str, option("--tiers", "Tiers to list, of 15m,1h,1d,1w; default: all.")] = "",
    underlying: Annotated[str, option("--underlying", "Underlying asset of the markets.")] = "BTC",
    live: Annotated[
        bool, option("--live", "List the open markets with their prices, as reported by the protocol's indexer.")
    ] = False,
    json: Json = False,
    place: Location,
) -> None:
    """List the open markets with their tiers, expiries and the time left.

    Markets follow the protocol's schedule: 15m and 1h on the boundary, 1d at 08:00 UTC, 1w on Friday 08:00 UTC, each
    listed at least an hour before its expiry. Where tiers coincide, one market serves all of them. For example:

        pitboss predict markets --at 2026-02-21T14:30:00Z
        pitboss predict markets --tiers 1h,1d --json
    """
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.core.errors import UserError
    from pitboss.core.instant import iso

    if live and (at is not None or tiers):
        raise UserError("--live lists all markets that are open now", "leave --at and --tiers out")
    rows = (
        _live_markets(place, underlying)
        if live
        else _scheduled_markets(SystemClock().now() if at is None else at, tiers, underlying)
    )
    now = rows.pop("now")
    if json:
        screen.put_json({"at": iso(now), **rows})
        return
    if not rows["markets"]:
        screen.note(f"there is no open market of {underlying}")
        return
    names = [name for name in rows["markets"][0] if name != "seconds_to_expiry"]
    screen.put_table(
        [*(name.replace("_", " ") for name in names), "left"],
        [[*(_cell(row[name]) for name in names), _duration(row["seconds_to_expiry"])] for row in rows["markets"]],
        right=(len(names),),
    )


def _scheduled_markets(now: int, tiers: str, underlying: str) -> dict[str, Any]:
    from pitboss.core.errors import UserError
    from pitboss.core.instant import iso
    from pitboss.venues.predict.schedule import TIERS, expiries, listed_slots, market_name

    if not 0 <= now < LATEST:
        raise UserError(f"--at {iso(now)} is outside of the schedule", "give a time between 1970 and 2100")
    selected = tuple(dict.fromkeys(tier.strip() for tier in tiers.split(",") if tier.strip())) or TIERS
    for tier in selected:
        expiries(tier, now)  # rejects an unknown tier and lists the valid ones
    return {
        "now": now,
        "source": "schedule",
        "markets": [
            {
                "market_id": market_name(underlying, slot.expiry_at),
                "tiers": list(slot.tiers),
                "expiry": iso(slot.expiry_at),
                "seconds_to_expiry": (slot.expiry_at - now) // 1000,
            }
            for slot in listed_slots(now, selected)
        ],
    }


def _live_markets(place: Location, underlying: str) -> dict[str, Any]:
    import asyncio

    from pitboss.bootstrap.machine import SystemClock
    from pitboss.core.instant import iso
    from pitboss.venues.predict.readers import live_markets
    from pitboss.venues.predict.settings import PredictSettings
    from pitboss.venues.predict.state import usd

    oracles = asyncio.run(live_markets(PredictSettings.of(place.settings()), underlying))
    now = SystemClock().now()
    return {
        "now": now,
        "source": "indexer",
        "markets": [
            {
                "market_id": oracle.id,
                "expiry": iso(oracle.expiry_at),
                "spot": usd(oracle.spot) if oracle.priced_at else None,
                "forward": usd(oracle.forward) if oracle.priced_at else None,
                "price_age_s": (now - oracle.priced_at) / 1000 if oracle.priced_at else None,
                "surface": oracle.svi is not None,
                "seconds_to_expiry": (oracle.expiry_at - now) // 1000,
            }
            for oracle in oracles
        ],
    }


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _duration(seconds: int) -> str:
    """Format a duration as `1d 02:15:00`."""
    days, seconds_of_day = divmod(seconds, 86_400)
    clock = f"{seconds_of_day // 3_600:02d}:{seconds_of_day // 60 % 60:02d}:{seconds_of_day % 60:02d}"
    return f"{days}d {clock}" if days else clock


@app.command
def rounds(
    file: Path,
    *,
    prices: Annotated[Path, option("--prices", "File of prices over the same time: bars, or updates of an oracle.")],
    asset: Annotated[str, option("--asset", "Asset to use if a file holds several.")] = "",
    within: Annotated[
        Duration, option("--within", "Longest time from an instant to its first price; default: 1m.")
    ] = 60_000,
    json: Json = False,
) -> None:
    """Settle recorded up/down rounds by a price history and report how often that matches the recorded outcome.

    A round is UP if the first price at or after its end is above the first at or after its start; a tie is DOWN. Rounds
    that differ are listed by the size of their move. For example:

        pitboss predict rounds updown_rounds_btc.parquet --prices binance_spot_1m_btc.parquet

    Parameters
    ----------
    file
        Rounds with the columns start, duration_s and up_price (1 or 0 where the outcome is known).
    """
    from pitboss.core.errors import UserError
    from pitboss.core.instant import iso
    from pitboss.venues.predict.data.recorded import agreement, read_prices, read_rounds

    recorded, history = read_rounds(file, asset or None), read_prices(prices, asset or None)
    result = agreement(recorded, history, within)
    if not result.rounds:
        raise UserError(
            "no round has an outcome and prices at both its ends",
            f"the prices go from {iso(int(history.at[0]))} to {iso(int(history.at[-1]))}, the rounds start from"
            f" {iso(int(recorded.start_at[0]))} to {iso(int(recorded.start_at[-1]))}",
        )
    if json:
        screen.put_json(_document(result))
        return
    _print_agreement(result)


def _document(result: "Agreement") -> dict[str, Any]:
    from pitboss.core.instant import iso

    return {
        "rounds": result.rounds,
        "agreed": result.agreed,
        "share": result.share,
        "undecided": result.undecided,
        "unpriced": result.unpriced,
        "bands": [{"move": label, "rounds": count} for label, count in result.bands()],
        "misses": [
            {
                "start": iso(miss.start_at),
                "duration_s": miss.duration_s,
                "open": miss.open,
                "close": miss.close,
                "move_bps": miss.move_bps,
                "recorded": _side(miss.recorded_up),
                "settled": _side(not miss.recorded_up),
            }
            for miss in result.misses
        ],
    }


def _print_agreement(result: "Agreement") -> None:
    screen.put(f"{result.agreed:,} of {result.rounds:,} rounds settle as recorded: {100 * result.share:.2f} %")
    screen.put(f"not counted: {result.undecided:,} without an outcome, {result.unpriced:,} without prices at both ends")
    if not result.misses:
        return
    screen.put()
    screen.put("those that differ, by size of the move:")
    screen.put_table(("move", "rounds"), [(label, f"{count:,}") for label, count in result.bands()], right=(1,))
    screen.put()
    misses = _document(result)["misses"]
    screen.put_table(
        ("start", "length", "open", "close", "move bps", "recorded", "settled"),
        [
            (
                miss["start"],
                f"{miss['duration_s'] / 60:g}m",
                f"{miss['open']:.2f}",
                f"{miss['close']:.2f}",
                f"{miss['move_bps']:+.2f}",
                miss["recorded"],
                miss["settled"],
            )
            for miss in misses
        ],
        right=(1, 2, 3, 4),
    )


def _side(up: bool) -> str:
    return "UP" if up else "DOWN"
