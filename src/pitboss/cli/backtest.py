"""`pitboss backtest`: run a skill over a stretch of the past."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pitboss.cli import screen
from pitboss.cli.options import Amount, Duration, Json, Lateness, Moment, Override, given
from pitboss.cli.place import Here, Place
from pitboss.core.errors import UserError

if TYPE_CHECKING:
    from pitboss.bootstrap.request import Asked

MOST_REPEATS = 1_000
MOST_AHEAD = 256
MOST_WASTE_PCT = 1_000
MOST_SEED = 2**62
MOST_GAP = 1_000_000_000


def backtest(
    skill: Path,
    /,
    *,
    from_: Annotated[Moment, given("--from", "First instant of the range, as 2025-06-01 or ISO time (UTC).")],
    to: Annotated[Moment, given("--to", "End of the range; the last tick lies before it.")],
    model: Annotated[
        str, given("--model", "Who decides, instead of the skill's model. See `pitboss models list`.")
    ] = "",
    decisions: Annotated[
        Path | None, given("--decisions", "Take the decisions from a JSON lines file instead of a model.")
    ] = None,
    data_venue: Annotated[
        str, given("--data-venue", "Whose data to use. Default: hyperliquid, or the only one there is.")
    ] = "",
    equity: Annotated[Amount, given("--equity", "Money to start with, in USD.")] = Decimal(10_000),
    seed: Annotated[int, given("--seed", "Seed of whatever is random.")] = 0,
    set_: Override = (),
    fees_taker_bps: Annotated[Amount, given("--fees-taker-bps", "Fee for taking, in basis points.")] = Decimal("4.5"),
    fees_maker_bps: Annotated[Amount, given("--fees-maker-bps", "Fee for making, in basis points.")] = Decimal("1.5"),
    slippage_bps_per_million: Annotated[
        Amount, given("--slippage-bps-per-million", "Slippage in basis points for each million USD of an order.")
    ] = Decimal(10),
    news_latency: Annotated[
        Lateness,
        given(
            "--news-latency",
            "How long after its publication news is known, as 5m, 30s..5m or 1m,coindesk=30s..5m. Default: 0s.",
        ),
    ] = (0, ""),
    extracted_events: Annotated[
        bool, given("--extracted-events", "Show events that were only read out of headlines too, as unconfirmed.")
    ] = False,
    decision_latency: Annotated[
        Duration, given("--decision-latency", "How long an order takes to reach the market, as 30s or 5m. Default: 0s.")
    ] = 0,
    slippage: Annotated[
        str, given("--slippage", "What a taker pays: linear, or book to walk imported order books where there are any.")
    ] = "linear",
    book_max_age: Annotated[
        Duration, given("--book-max-age", "How old an order book may be that prices a fill. Default: 5m.")
    ] = 300_000,
    max_volume_pct: Annotated[
        Amount | None,
        given("--max-volume-pct", "Most of a bar's volume that fills may take, in %, such as 10. Default: any size."),
    ] = None,
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
    blind: Annotated[
        bool,
        given("--blind", "Hide from the model what the market is: names, dates, prices and volumes are disguised."),
    ] = False,
    close_at_end: Annotated[
        bool, given("--close-at-end", "Close what is open at the end instead of valuing it.")
    ] = False,
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
    """Run a skill over a stretch of the past and say what came of it.

    Writes an HTML report, and keeps every decision so that the result can be checked with `pitboss runs verify`.
    Ctrl-C stops it cleanly; `pitboss runs resume` goes on where it stopped and ends in the same digest.

    For example:

        pitboss backtest trend-thesis.yaml --from 2025-02-10 --to 2025-03-10
        pitboss backtest trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --model policy/sma_cross --json
        pitboss backtest trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --set risk.max_leverage=2

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    check_numbers(max_cost_usd, price_in, price_out, max_waste_pct, repeats, seed, max_gap, (from_, to))
    from pitboss.bootstrap.backtest import Request
    from pitboss.cli.skill import read_plain
    from pitboss.core.instant import interval_ms

    plain = read_plain(skill, set_, place)
    period = interval_ms(plain["schedule"]["every"])
    request = Request(
        skill=plain,
        from_at=from_,
        to_at=to,
        model=model,
        decisions=None if decisions is None else read_decisions(decisions, period, from_, to),
        data_venue=data_venue,
        equity_usd=equity,
        seed=seed,
        taker_bps=fees_taker_bps,
        maker_bps=fees_maker_bps,
        slippage_bps_per_million=slippage_bps_per_million,
        news_latency_ms=news_latency[0],
        news_latency=news_latency[1],
        extracted_events=extracted_events,
        decision_latency_ms=decision_latency,
        slippage=_fills(slippage, max_volume_pct),
        book_max_age_ms=book_max_age,
        max_volume_pct=max_volume_pct,
        close_at_end=close_at_end,
        prompts=prompts,
        max_gap=place.settings().max_gap if max_gap is None else max_gap,
        max_cost_usd=max_cost_usd,
        price_in=price_in,
        price_out=price_out,
        any_price=yes,
        speculate=read_window(speculate),
        max_waste_pct=max_waste_pct,
        blind=blind,
    )
    return run_backtest(place, request, repeats, json)


def read_decisions(file: Path, period: int, from_at: int, to_at: int, *words: Any) -> str:
    """The text of a decisions file, checked under its own name; `words` are those of another venue than perps."""
    from pitboss.models.decisions import DecisionFile

    first = -(-from_at // period) * period
    try:
        data = file.read_bytes()  # once: a pipe has nothing left for a second time
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}", "give --decisions a JSON lines file") from None
    DecisionFile.read(data, file.name, range(first, to_at, period), *words)
    return data.decode()


def run_backtest(place: Place, request: "Asked", repeats: int = 1, json: bool = False) -> int:
    """Run a request, once or several times, and show what came of it."""
    if place.instead is not None:
        return place.instead(place, request, repeats, json)
    from pitboss.bootstrap.runner import document
    from pitboss.cli.repeats import summary
    from pitboss.cli.results import show_journal_note, show_run, show_summary
    from pitboss.cli.running import begin

    with place.workspace() as workspace:
        ended = []
        for number in range(repeats):
            label = "backtest" if repeats == 1 else f"backtest {number + 1} of {repeats}"
            ended.append(begin(workspace, place, replace(request, seed=request.seed + number, repeat=number), label))
            if ended[-1].code:
                break
        runs = [one.run for one in ended]
        shown = document(runs[0], workspace.settings.model_cutoffs)
        done = [run for run in runs if run.metrics is not None]
        if repeats > 1:
            shown["repeats"] = [{"run_id": run.id, "digest": run.digest, "metrics": run.metrics} for run in done]
            shown["summary"] = summary([run.metrics or {} for run in done])
        if json:
            screen.put_json(shown)
        elif not ended[-1].code:
            show_run(workspace, place, runs[0])
            if repeats > 1:
                show_summary(shown["summary"], [run.digest for run in done])
            show_journal_note(workspace)
        return ended[-1].code


def check_numbers(
    max_cost_usd: Decimal | None,
    price_in: Decimal | None,
    price_out: Decimal | None,
    max_waste_pct: Decimal,
    repeats: int,
    seed: int,
    max_gap: int | None,
    between: tuple[int, int],
) -> None:
    """Refuse what no backtest can be asked for."""
    if max_cost_usd is not None and max_cost_usd < 0:
        raise UserError("--max-cost-usd: cannot be below zero", "for example --max-cost-usd 2")
    if (price_in is None) != (price_out is None):
        raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")
    if any(price is not None and price < 0 for price in (price_in, price_out)):
        raise UserError("--price-in, --price-out: a price cannot be below zero", "USD for a million tokens")
    if not 0 <= max_waste_pct <= MOST_WASTE_PCT:
        raise UserError(f"--max-waste-pct: not from 0 to {MOST_WASTE_PCT}", "for example --max-waste-pct 35")
    if not 1 <= repeats <= MOST_REPEATS:
        raise UserError(f"--repeats: {repeats} is not from 1 to {MOST_REPEATS}", "for example --repeats 5")
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed: {seed} is not from 0 to {MOST_SEED}", "any whole number in between")
    if max_gap is not None and not 0 <= max_gap <= MOST_GAP:
        raise UserError(f"--max-gap: {max_gap} is not from 0 to {MOST_GAP}", "a number of bars, such as 12")
    if between[1] <= between[0]:
        raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")


def _fills(slippage: str, max_volume_pct: Decimal | None) -> str:
    if slippage not in ("linear", "book"):
        raise UserError(f"--slippage: {slippage!r} is neither linear nor book", "book needs imported order books")
    if max_volume_pct is not None and not 0 < max_volume_pct <= 100:
        raise UserError("--max-volume-pct: not above 0 and at most 100", "for example --max-volume-pct 10")
    return slippage


def read_window(text: str) -> str:
    """How far to ask ahead."""
    if text != "auto" and not (text.isdecimal() and int(text) <= MOST_AHEAD):
        raise UserError(f"--speculate: {text!r} is not auto or a number from 0 to {MOST_AHEAD}", "0 asks nothing ahead")
    return text
