"""`pitboss predict backtest`: a skill of the predict venue over a stretch of the past."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from cyclopts import App

from pitboss.cli import screen
from pitboss.cli.backtest import done_or_queued
from pitboss.cli.options import Amount, BacktestOptions, Json, Priority, Queue, given
from pitboss.cli.workspace_options import Here, WorkspaceOptions


def register(app: App) -> None:
    """Put the command among those of its group."""
    app.command(backtest)


def backtest(
    skill: Path,
    /,
    *,
    asked: BacktestOptions,
    prices: Annotated[
        Path | None, given("--prices", "A file of one-minute bars to import first; without it the lake has them.")
    ] = None,
    surfaces: Annotated[
        Path | None,
        given(
            "--surfaces",
            "A file of recorded surfaces, named by market or expiry. Default: flat ones from realised volatility.",
        ),
    ] = None,
    vault: Annotated[Amount, given("--vault", "What the other side of every contract has, in DUSDC.")] = Decimal(
        1_000_000
    ),
    queue: Queue = False,
    priority: Priority = None,
    json: Json = False,
    place: Here,
) -> int:
    """Run a skill of the predict venue over a stretch of the past: return, and how good its forecasts were.

    Confidence is scored against outcomes and against the market's own price on the same calls. Keeps every decision, so
    that the result can be checked with `pitboss runs verify`; Ctrl-C stops it cleanly, `pitboss runs resume` goes on.

    For example:

        pitboss predict backtest btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --model policy/alternate
        pitboss predict backtest btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --prices btc_1m.parquet --json
        pitboss predict backtest btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --queue

    Parameters
    ----------
    skill
        A .yaml or .json file with `venue: predict`.
    """
    asked.check()
    from pitboss.agent.terminal import DecisionFormat
    from pitboss.core.instant import parse_duration
    from pitboss.runs.documents import read_predict
    from pitboss.venues.predict.agent import fallen_back
    from pitboss.venues.predict.form import PredictRequest
    from pitboss.venues.predict.intents import ALIASES, KEYS, read

    plain = read_predict(skill, asked.set_)
    source, warning = fallen_back(asked.model or str(plain["model"]), place.settings().home)
    if warning:
        screen.note(f"warning: {warning}")
    period = parse_duration(plain["schedule"]["every"])
    request = PredictRequest(
        skill=plain,
        **replace(asked, model=source).fields(place.settings()),
        decisions=asked.read_decisions(period, DecisionFormat(read, "hold"), (*KEYS, *ALIASES)),
        vault_usd=vault,
        surfaces="" if surfaces is None else str(surfaces.absolute()),
    )
    if prices is not None:
        request = replace(request, data_venue=_imported(place, prices, plain["context"]["underlying"]))
    return done_or_queued(place, request, asked, queue, priority, json)


def _imported(place: WorkspaceOptions, prices: Path, underlying: str) -> str:
    """Put a file of one-minute bars into the lake under a name of its own content, and give that name."""
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.file_reader import read_hashed
    from pitboss.data.importing import import_paths

    venue = f"file-{read_hashed(prices)[1][:12]}"
    if venue not in place.lake().venues("bars"):
        import_paths(place.lake(), [prices], "bars", underlying, "1m", venue, False, None, SystemClock().now(), None)
    return venue
