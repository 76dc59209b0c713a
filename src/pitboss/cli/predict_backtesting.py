"""`pitboss predict backtest`: a skill of the predict venue over a stretch of the past."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from pitboss.cli import screen
from pitboss.cli.backtest import check_numbers, read_decisions, read_window, run_backtest
from pitboss.cli.options import Amount, Json, Moment, Override, given
from pitboss.cli.place import Here, Place


def register(app: App) -> None:
    """Put the command among those of its group."""
    app.command(backtest)


def backtest(
    skill: Path,
    /,
    *,
    from_: Annotated[Moment, given("--from", "First instant of the range, as 2026-02-22 or ISO time (UTC).")],
    to: Annotated[Moment, given("--to", "End of the range; the last tick lies before it.")],
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
    model: Annotated[
        str, given("--model", "Who decides, instead of the skill's model: policy/alternate, groq/…, llm.")
    ] = "",
    decisions: Annotated[
        Path | None, given("--decisions", "Take the decisions from a JSON lines file instead of a model.")
    ] = None,
    data_venue: Annotated[
        str, given("--data-venue", "Whose one-minute bars to use. Default: hyperliquid, or the only one there is.")
    ] = "",
    equity: Annotated[Amount, given("--equity", "Money to start with, in DUSDC.")] = Decimal(200),
    vault: Annotated[Amount, given("--vault", "What the other side of every contract has, in DUSDC.")] = Decimal(
        1_000_000
    ),
    seed: Annotated[int, given("--seed", "Seed of whatever is random.")] = 0,
    set_: Override = (),
    max_gap: Annotated[
        int | None, given("--max-gap", "Missing bars in a row to tolerate. Default: the setting.")
    ] = None,
    max_cost_usd: Annotated[Amount | None, given("--max-cost-usd", "Stop when the model has cost this much.")] = None,
    price_in: Annotated[Amount | None, given("--price-in", "USD for a million tokens the model reads.")] = None,
    price_out: Annotated[Amount | None, given("--price-out", "USD for a million tokens the model writes.")] = None,
    yes: Annotated[bool, given("--yes", "Go ahead with a model whose price nobody knows.")] = False,
    speculate: Annotated[
        str, given("--speculate", "Ticks to ask ahead while an answer is awaited: a number, auto, or 0 for none.")
    ] = "auto",
    max_waste_pct: Annotated[
        Amount, given("--max-waste-pct", "Most that answers asked ahead in vain may cost, in % of the useful ones.")
    ] = Decimal(35),
    repeats: Annotated[int, given("--repeats", "Run it N times with the seeds seed, seed+1, … and summarise.")] = 1,
    prompts: Annotated[
        bool | None,
        Parameter(
            negative="--no-prompts",
            help="Keep the prompt texts, also in runs that need none; or keep only their digests.",
        ),
    ] = None,
    json: Json = False,
    place: Here,
) -> int:
    """Run a skill of the predict venue over a stretch of the past: return, and how good its forecasts were.

    Confidence is scored against outcomes and against the market's own price on the same calls. Keeps every decision, so
    that the result can be checked with `pitboss runs verify`; Ctrl-C stops it cleanly, `pitboss runs resume` goes on.

    For example:

        pitboss predict backtest btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --model policy/alternate
        pitboss predict backtest btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --prices btc_1m.parquet --json

    Parameters
    ----------
    skill
        A .yaml or .json file with `venue: predict`.
    """
    check_numbers(max_cost_usd, price_in, price_out, max_waste_pct, repeats, seed, max_gap, (from_, to))
    from pitboss.agent.terminal import Shape
    from pitboss.bootstrap.documents import read_predict
    from pitboss.bootstrap.predict.agent import fallen_back
    from pitboss.bootstrap.predict.backtest import PredictRequest
    from pitboss.core.instant import parse_duration
    from pitboss.venues.predict.intents import ALIASES, KEYS, read

    plain = read_predict(skill, set_)
    source, warning = fallen_back(model or str(plain["model"]), place.settings().home)
    if warning:
        screen.note(f"warning: {warning}")
    text = None
    if decisions is not None:
        period = parse_duration(plain["schedule"]["every"])
        text = read_decisions(decisions, period, from_, to, Shape(read, "hold"), (*KEYS, *ALIASES))
    request = PredictRequest(
        skill=plain,
        from_at=from_,
        to_at=to,
        model=source,
        decisions=text,
        data_venue=data_venue if prices is None else _imported(place, prices, plain["context"]["underlying"]),
        equity_usd=equity,
        vault_usd=vault,
        surfaces="" if surfaces is None else str(surfaces.absolute()),
        seed=seed,
        prompts=prompts,
        max_gap=place.settings().max_gap if max_gap is None else max_gap,
        max_cost_usd=max_cost_usd,
        price_in=price_in,
        price_out=price_out,
        any_price=yes,
        speculate=read_window(speculate),
        max_waste_pct=max_waste_pct,
    )
    return run_backtest(place, request, repeats, json)


def _imported(place: Place, prices: Path, underlying: str) -> str:
    """Put a file of one-minute bars into the lake under a name of its own content, and give that name."""
    from pitboss.bootstrap.machine import SystemClock
    from pitboss.data.importing import import_paths
    from pitboss.data.reading import read_hashed

    venue = f"file-{read_hashed(prices)[1][:12]}"
    if venue not in place.lake().venues("bars"):
        import_paths(place.lake(), [prices], "bars", underlying, "1m", venue, False, None, SystemClock().now(), None)
    return venue
