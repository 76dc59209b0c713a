"""`pitboss bench`: speed and memory on this machine, compared with peers and floors measured in the same run."""

from pathlib import Path
from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.options import Json, option


def bench(
    *,
    only: Annotated[tuple[str, ...], option("--only", "Measure only this; may be repeated. See the names below.")] = (),
    repeats: Annotated[int, option("--repeats", "How often each side is timed; the median counts.")] = 5,
    peer: Annotated[
        tuple[str, ...],
        option("--peer", "A peer to measure in the same run: backtesting, vectorbt, backtrader. May be repeated."),
    ] = ("backtesting",),
    no_peers: Annotated[bool, option("--no-peers", "Measure and install no peer.")] = False,
    peers_dir: Annotated[
        Path | None, option("--peers-dir", "Where the peers' own environments are kept. Default: .bench-venv.")
    ] = None,
    gate: Annotated[bool, option("--gate", "Exit with 1 if a gate that could be measured does not hold.")] = False,
    tiny: Annotated[bool, option("--tiny", "A few bars only, to see that it runs; the numbers mean nothing.")] = False,
    json: Json = False,
) -> int:
    """Measure speed, memory and the cost of a tick. Takes a few minutes; only ratios within one run mean anything.

    Measurements: policy_year, model_tick, hydration, warm_rerun, speculation, predict_week, memory_year, memory, history,
    model_calls, parts, report_page, run_page, importing, jobs, study, live_deployments, halt_latency, community_server,
    web_server, program. Peers are installed into environments of their own the first time, and skipped with a reason where that does not work.

    For example:

        pitboss bench --only policy_year --only model_tick
    """
    from pitboss_dev.bench import row_table
    from pitboss_dev.bench.measure import FULL, TINY
    from pitboss_dev.bench.row import failed
    from pitboss_dev.bench.suite import BenchOptions, run

    options = BenchOptions(
        only=only,
        scale=TINY if tiny else FULL,
        repeats=repeats,
        peers=() if no_peers else peer,
        peers_folder=peers_dir,
    )
    rows = run(options, screen.note)
    if json:
        screen.put_json([row.plain() for row in rows])
    else:
        screen.put_table(row_table.HEADINGS, [row_table.cells(row) for row in rows], right=row_table.NUMBERS)
    failures = failed(rows)
    if failures:
        screen.note(f"gates that do not hold: {', '.join(row.name for row in failures)}")
    return 1 if gate and failures else 0


if __name__ == "__main__":
    from cyclopts import run

    raise SystemExit(run(bench))
