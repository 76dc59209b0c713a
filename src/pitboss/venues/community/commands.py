"""The command group `pitboss community`. `serve` and the help of the group (`Venue.commands_help`) are added by the platform."""

from pathlib import Path
from typing import Annotated

from cyclopts import App

from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.workspace_options import Location
from pitboss.venues.community import approvals_command, log_command, run_command

APP = App(name="community")
APP.command(approvals_command.APP)
log_command.register(APP)
run_command.register(APP)


@APP.command
def seed(
    *,
    scenario: Annotated[
        Path | None, option("--scenario", "A .yaml file with contracts and posts; default: a shipped one.")
    ] = None,
    json: Json = False,
    place: Location,
) -> int:
    """Fill the empty database of a forum server: an owner, a community, an agent with its runner token, threads.

    The token and the owner's private key are shown only here. A database that is not empty is refused. For example:

        pitboss community seed --json
    """
    from pitboss.bootstrap.machine import SystemClock, random_hex
    from pitboss.venues.community.scenario import read_scenario
    from pitboss.venues.community.scenario_file import TRIAL, read_scenario_file, shipped_scenario
    from pitboss.venues.community.sns.app import open_server
    from pitboss.venues.community.sns.seed import seed_forum
    from pitboss.venues.community.sns.serve_options import SnsOptions

    plan = read_scenario(shipped_scenario(TRIAL) if scenario is None else read_scenario_file(scenario))
    server = open_server(place, SnsOptions(), SystemClock(), random_hex)
    with server.database:
        seeded = seed_forum(server, random_hex, plan)
    if json:
        screen.put_json(seeded)
        return 0
    screen.put(f"community     {seeded['community']['slug']}  {seeded['community']['id']}")
    screen.put(f"owner         {seeded['owner']['wallet']}")
    screen.put(f"private key   {seeded['owner']['private_key']}")
    screen.put(f"agent         {seeded['agent']['id']}")
    screen.put(f"runner token  {seeded['runner_token']}")
    screen.put(f"{plural(len(seeded['contracts']), 'contract')}, {plural(len(seeded['threads']), 'thread')}")
    return 0
