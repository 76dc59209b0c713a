"""`pitboss demo`: generates a market, runs an agent under limits and verifies the run, without a key."""

from pitboss.core.errors import InvariantError
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import Here

SKILL = "trend-thesis.yaml"
FROM, TO = "2025-01-20", "2025-02-12"


def demo(*, place: Here) -> int:
    """Run an agent on a generated market under hard limits, and verify the result. Needs no key and no network.

    For example:

        pitboss demo --home demo
    """
    from dataclasses import replace

    from pitboss.cli.run_result import show_run
    from pitboss.cli.run_work import begin
    from pitboss.cli.skill import read_plain
    from pitboss.core.instant import parse_instant
    from pitboss.data.demo import VENUE, write_demo
    from pitboss.runs.run import verify
    from pitboss.runs.venues import default_venue

    venue = default_venue()
    with place.workspace() as workspace:
        write_demo(workspace.lake)
        file = workspace.home / SKILL
        if not file.exists():
            file.write_text(venue.examples()[SKILL], encoding="utf-8")
        screen.put(f"market  {VENUE}: BTC, ETH and SOL, generated; nothing in it happened")
        screen.put(f"skill   {file}")
        screen.put()
        request = venue.request_type()(skill=read_plain(file, ()), from_at=parse_instant(FROM), to_at=parse_instant(TO))
        request = replace(request, model="standin/analyst", data_venue=VENUE, max_gap=place.settings().max_gap)
        ended = begin(workspace, place, request)
        if ended.code:
            return ended.code
        problems = verify(workspace, ended.run.id)
        if problems:
            raise InvariantError(f"the stored run does not verify: {problems[0]}")
        show_run(workspace, place, ended.run)
        screen.put()
        screen.put(
            f"verified: {ended.run.ticks:,} ticks, chained from first to last, hash to the digest above", "green"
        )
        screen.put(f"Open {ended.run.report} in a browser; then change {file} and run it again:")
        screen.put(f"  {place.typed(f'backtest {file} --from {FROM} --to {TO} --data-venue {VENUE}')}")
    return 0
