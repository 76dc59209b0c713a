"""`pitboss backtest`: run a skill over a stretch of the past."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pitboss.cli import screen
from pitboss.cli.options import Amount, BacktestOptions, Duration, Json, Lateness, Priority, Queue, given
from pitboss.cli.workspace_options import Here, WorkspaceOptions
from pitboss.core.errors import UserError

if TYPE_CHECKING:
    from pitboss.sim.request import BacktestRequest


def backtest(
    skill: Path,
    /,
    *,
    asked: BacktestOptions,
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
    blind: Annotated[
        bool,
        given("--blind", "Hide from the model what the market is: names, dates, prices and volumes are disguised."),
    ] = False,
    close_at_end: Annotated[
        bool, given("--close-at-end", "Close what is open at the end instead of valuing it.")
    ] = False,
    queue: Queue = False,
    priority: Priority = None,
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
        pitboss backtest trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --queue

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    asked.check()
    from pitboss.cli.skill import read_plain
    from pitboss.core.instant import interval_ms
    from pitboss.venues.perp.assembly import PerpRequest

    plain = read_plain(skill, asked.set_, place)
    request = PerpRequest(
        skill=plain,
        **asked.fields(place.settings()),
        decisions=asked.read_decisions(interval_ms(plain["schedule"]["every"])),
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
        blind=blind,
    )
    return done_or_queued(place, request, asked, queue, priority, json)


def done_or_queued(
    place: WorkspaceOptions,
    request: "BacktestRequest",
    asked: BacktestOptions,
    queue: bool,
    priority: int | None,
    json: bool,
) -> int:
    """Run a request here, or put it into the queue."""
    if queue:
        from pitboss.cli.jobs import put

        return put(place, request, asked.repeats, priority or 0, asked.yes, json)
    if priority is not None:
        raise UserError("--priority: nothing is queued", "give --queue too")
    return run_backtest(place, request, asked.repeats, json)


def run_backtest(place: WorkspaceOptions, request: "BacktestRequest", repeats: int = 1, json: bool = False) -> int:
    """Run a request, once or several times, and show what came of it."""
    from pitboss.cli.run_result import show_journal_note, show_run, show_summary
    from pitboss.cli.run_work import begin
    from pitboss.runs.stored import document

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
            from pitboss.cli.repeat_summary import summary

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


def _fills(slippage: str, max_volume_pct: Decimal | None) -> str:
    if slippage not in ("linear", "book"):
        raise UserError(f"--slippage: {slippage!r} is neither linear nor book", "book needs imported order books")
    if max_volume_pct is not None and not 0 < max_volume_pct <= 100:
        raise UserError("--max-volume-pct: not above 0 and at most 100", "for example --max-volume-pct 10")
    return slippage
