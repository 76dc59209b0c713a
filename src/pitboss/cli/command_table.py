"""The commands and groups of pitboss itself: where each is defined, and its line in `pitboss --help`.

The lines are repeated here because printing the help would otherwise import the modules of all commands.
`tests/cli/test_cli_start.py` compares each with the help of its command.
"""

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """A command or group that is imported when it is used."""

    target: str
    """Its module in `pitboss.cli` and the attribute."""
    help_line: str


COMMANDS = {
    "demo": CommandEntry(
        "demo:demo", "Run an example agent on a generated market and verify the result. Needs no key and no network."
    ),
    "init": CommandEntry("skill:init", "Create a folder with three commented example skills. Overwrites nothing."),
    "backtest": CommandEntry("backtest:backtest", "Run a skill over a past range of time and show the result."),
    "submit": CommandEntry(
        "backtest:submit",
        "Queue a backtest, start workers for it, and show the estimated cost. Options as of `pitboss backtest`.",
    ),
    "worker": CommandEntry("worker:worker", "Execute queued runs, many at once, until stopped."),
    "deploy": CommandEntry("deploy:deploy", "Run a skill live. On paper it needs no account and no key."),
    "deployments": CommandEntry(
        "deploy:app", "List deployments, show one, change its caps, and acknowledge its alarm."
    ),
    "command": CommandEntry("deploy:command", "Tell a deployment what to do, and wait until it has done so."),
    "attribution": CommandEntry(
        "attribution:attribution",
        "Replay the decisions of a deployment on paper, and explain the difference of the results by trade.",
    ),
    "live": CommandEntry("live:app", "Host deployments, and check that everything is ready for real money."),
    "watchdog": CommandEntry(
        "watchdog:watchdog",
        "Watch live deployments in the foreground until stopped, from another machine or process than the one that trades.",
    ),
    "report": CommandEntry("report:report", "Write the report of a run: one HTML file that opens offline."),
    "sweep": CommandEntry(
        "study:sweep",
        "Run a skill many times with varied settings, and report the best trial and how much of its result may be luck.",
    ),
    "arena": CommandEntry(
        "study:arena",
        "Run several models with the same skill over the same market, and report which of them differ significantly.",
    ),
    "serve": CommandEntry("serve:serve", "Serve the web app and the REST API of the workspace until Ctrl-C."),
    "chat": CommandEntry("chat:chat", "Ask questions about a run, a deployment or the whole workspace."),
    "users": CommandEntry("users:app", "Users of the web app and the API: names, roles, passwords."),
    "tokens": CommandEntry(
        "tokens:app", "Tokens for programs that use the API. A token is shown once and stored by its digest."
    ),
    "settings": CommandEntry(
        "settings:settings",
        "List every setting: its key in settings.toml, its environment variable, value, default and description.",
    ),
    "doctor": CommandEntry(
        "doctor:doctor",
        "Check the installation and the workspace: versions, extras, keys, database, data, disk. Exit code 1 if something is broken.",
    ),
    "completion": CommandEntry("completion:app", "Complete commands and options in the shell by the tab key."),
    "venues": CommandEntry("venue:venues_app", "List the venues that are installed."),
    "data": CommandEntry(
        "data:app", "Import, download, list, check, push and pull market data; generate a demo market."
    ),
    "skill": CommandEntry("skill:app", "Check skills, preview the prompt of a model, print the schema of skills."),
    "runs": CommandEntry(
        "runs:app", "List, show, resume, verify, fork, export, import, compare, delete and prune runs."
    ),
    "jobs": CommandEntry("jobs:app", "List queued runs, wait for them, cancel them, queue them again."),
    "models": CommandEntry("models:app", "List the models that a skill may use, and test them."),
    "secrets": CommandEntry(
        "secrets:app", "Store API keys of model providers and MCP servers, encrypted. Values are never shown."
    ),
    "signer": CommandEntry(
        "signer:app", "Hold a key in a process of its own, which signs only what its policy file allows."
    ),
    "tools": CommandEntry("tools:app", "List and call the built-in tools that a skill may give to its agent."),
    "mcp": CommandEntry(
        "mcp:app", "MCP servers: list, test and approve their tools, record their answers; serve pitboss."
    ),
    "study": CommandEntry("study:app", "List studies and arenas, show their results, cancel them."),
    "audit": CommandEntry("audit:app", "Test a simulation for look-ahead, and a model for memory of the past."),
    "redteam": CommandEntry(
        "redteam:redteam",
        "Plant attack texts in what an agent reads, and count breaches of its caps. Exit code 1 if there is any.",
    ),
}
