"""`pitboss demo`: generates a market, runs an agent under limits and verifies the run, without a key."""

from pitboss.core.errors import InvariantError
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import Location


def demo(*, location: Location) -> int:
    """Run an example agent on a generated market and verify the result. Needs no key and no network.

    For example:

        pitboss demo --home demo
    """
    from dataclasses import replace

    from pitboss.cli.run_result import show_run
    from pitboss.cli.run_work import start_run
    from pitboss.core.instant import parse_instant
    from pitboss.data.demo import VENUE, write_demo
    from pitboss.runs.documents import read_file
    from pitboss.runs.first_steps import FROM, SKILL, TO, example_text
    from pitboss.runs.run import verify
    from pitboss.runs.venues import default_venue

    venue = default_venue()
    with location.workspace() as workspace:
        write_demo(workspace.lake)
        file = workspace.home / SKILL
        if not file.exists():
            file.write_text(example_text(), encoding="utf-8")
        screen.put(f"market  {VENUE}: BTC, ETH and SOL, generated, not real")
        screen.put(f"skill   {file}")
        screen.put()
        request = venue.request_type()(skill=read_file(file), from_at=parse_instant(FROM), to_at=parse_instant(TO))
        request = replace(request, model="standin/analyst", data_venue=VENUE, max_gap=location.settings().max_gap)
        finished = start_run(workspace, location, request)
        if finished.code:
            return finished.code
        problems = verify(workspace, finished.run.id)
        if problems:
            raise InvariantError(f"the stored run does not verify: {problems[0]}")
        show_run(workspace, location, finished.run)
        screen.put()
        screen.put(
            f"verified: {finished.run.ticks:,} ticks, chained from first to last, hash to the digest above", "green"
        )
        screen.put(f"Open {finished.run.report} in a browser; then change {file} and run it again:")
        screen.put(f"  {location.command_line(f'backtest {file} --from {FROM} --to {TO} --data-venue {VENUE}')}")
        screen.put("Or see the run, edit the skill and ask about it in the web app:")
        screen.put(f"  {location.command_line('serve')}")
    return 0
