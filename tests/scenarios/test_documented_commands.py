"""Every command of README, CONTRIBUTING and docs is run as printed, with an empty home.

README begins in an empty folder. The other pages go on where README ends, in a copy of the folder of a reader. What needs
a network, a key, a server or another package is listed in `NOT_RUN` with the reason; it is parsed by the real command line,
so that its command and options exist. Long ranges are shortened, and ids are those of the folder.
"""

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documented_commands import PAGES, ShownCommand, bring_files, other_blocks, shown_command, shown_commands
from pitboss_process import run_in_process

from pitboss.cli.commands import complete_app
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.runs import first_steps

NOT_RUN = {
    "arena .*--models groq": "needs a key",
    "attribution": "needs a deployment; tests/venues/perp/test_attribution.py runs what it does",
    "audit memory": "needs a language model",
    "backtest .*--model llm": "needs a key",
    "backtest .*--slippage book": "needs order books of the venue of the bars; tests/cli/test_cli_realism.py runs it",
    "bench": "measures for minutes",
    "chat": "needs a language model; tests/chat runs it",
    "community approvals (approve|deny)": "needs the request of an agent; tests/venues/community/test_community_approvals.py runs it",
    "community log .*--follow": "follows until it is stopped; tests/venues/community/test_communication_log.py runs it",
    "community run": "needs a forum server; tests/venues/community/test_live_canaries.py runs it",
    "community serve": "serves until it is stopped",
    "command": "needs a deployment; tests/cli/test_cli_deploy.py runs it",
    "completion show": "takes long; tests/cli/test_cli_doctor.py runs it",
    "data download": "needs a network",
    "deploy ": "needs the exchange's data; tests/cli/test_cli_deploy.py runs it",
    "deployments (acknowledge|caps)": "needs a deployment; tests/cli/test_cli_deploy.py runs it",
    "deployments show": "needs a deployment; tests/cli/test_cli_deploy.py runs it",
    "doctor .*--model groq": "needs a key",
    "data pu(sh|ll)": "needs object storage",
    "jobs wait": "waits for workers, which are processes of their own",
    "live accounts rm": "needs an account; tests/cli/test_cli_live.py runs it",
    "live host": "works until it is stopped; tests/jobs/test_live_host.py runs it",
    "live (notify|preflight)": "needs channels and an account; tests/venues/perp/hyperliquid/test_live_preflight.py runs it",
    "mcp (test|approve|record)": "needs a server of another package",
    "mcp serve": "serves until it is stopped",
    "models parse": "needs recordings of a provider",
    r"(PITBOSS_HTTP_HOSTS=\S+ )?models test": "needs a key or a server",
    "predict (manager|preflight)": "needs a network",
    "predict markets --live": "needs a network",
    "predict rounds": "needs recorded rounds",
    "predict run": "needs a network, and waits for the next minute",
    "serve": "serves until it is stopped; tests/browser runs it",
    "tokens revoke": "needs a token; tests/server/web runs it",
    "users (?!list)": "asks for a password, or needs a user who has one; tests/server/web runs it",
    "secrets set (groq|SUI|RUNNER|NOTIFY)": "asks at a terminal",
    "signer": "becomes another program, which asks for a passphrase; tests/signer runs it",
    "watchdog": "watches until it is stopped; tests/venues/perp/hyperliquid/test_watchdog.py runs it",
    "worker .*--db postgresql|PITBOSS_DATABASE_URL=": "needs a Postgres",
    "PITBOSS_TELEMETRY=http": "needs a collector",
    r"runs delete \S+$": "asks at a terminal; tests/cli/test_cli_hints.py answers",
    ".*coin": "needs the example venue installed; tests/venues/test_toy_venue.py runs these",
}
"""Command lines that are parsed only: a pattern of their beginning, and why."""
OTHER_PROGRAMS = ("cp", "docker", "make", "pip", "python", "python3", "source")
"""Not run here: `tests/test_docs.py` checks the targets of `make`, `tests/scenarios/test_demo_figures.py` runs the demo."""
SHORTER = {
    "--cuts": "1",
    "--idle-exit": "0s",
    "--limit": "2",
    "--random": "2",
    "--ticks": "2",
    "--walk-forward": "1h/1h",
}
"""Options whose printed value takes long, and the value with which they are run."""
ADDED = {
    r"audit lookahead (?!--run)": ("--cuts", "1", "--from", "2025-03-31T22:00"),
    r"redteam": ("--limit", "2", "--ticks", "2"),
    r"worker": ("--idle-exit", "0s", "--processes", "0"),
}
"""Options that are added where they are not printed: defaults that take long or never end."""
HELP_PAGE = "cli.md"
"""The examples of the help: each stands for itself. Those that another page has are run there."""
SPAN = ("--from", "2025-02-19T23:00", "--to", "2025-02-20T13:00")
SECRET = "sk-from-a-pipe-0123456789\n"


@pytest.fixture(scope="module")
def reader_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who has followed README: example skills, demo data, runs, a study, a key, files."""
    folder = tmp_path_factory.mktemp("reader") / "folder"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        empty_home(patch, folder.parent)
        patch.chdir(folder)
        run_in_process("init", ".")
        for venue, example in (("predict", "btc-brain.yaml"), ("community", "contract-auditor.yaml")):
            run_in_process("init", venue, "--venue", venue)
            shutil.copy(Path(venue) / example, ".")
        run_in_process("data", "demo")
        for model in ("policy/momentum", "standin/analyst"):
            run = run_in_process("backtest", "trend-thesis.yaml", *SPAN, "--model", model, "--json").json
        run_in_process("runs", "export", run["run_id"], "--bundle", "run.pitboss.zip")
        run_in_process(
            "sweep", "trend-thesis.yaml", *SPAN, "--vary", "risk.max_leverage=2,3", "--model", "policy/momentum"
        )
        patch.setattr("sys.stdin", io.StringIO(SECRET))
        run_in_process("secrets", "set", "groq")
    bring_files(folder)
    return folder


def empty_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """No settings, keys or caches of the user; bash as shell; queued runs wait for a worker that the page starts."""
    for name in list(os.environ):
        if name.startswith(("PITBOSS_", "LLM_", "XDG_")) or name.endswith("_API_KEY"):
            patch.delenv(name)
    patch.setenv("HOME", str(folder))
    patch.setenv("SHELL", "/bin/bash")
    patch.setenv("PITBOSS_EXECUTOR", "none")


# Words ----------------------------------------------------------------------------------------------------------------


def run_id(command: str, place: int = 0) -> str:
    """A run that a command can be about: a queued one to cancel, a cancelled one to queue again, else a finished one."""
    status = {"cancel": "queued", "again": "cancelled"}.get(command, "complete")
    runs = run_in_process("runs", "list", "--status", status, "--json").json
    if not runs and status != "complete":
        run_in_process("submit", "trend-thesis.yaml", *SPAN)
        if status == "cancelled":
            run_in_process("jobs", "cancel", run_id("cancel"))
        return run_id(command)
    return runs[place]["run_id"]


def study_id(place: int) -> str:
    """A stored study, newest first."""
    return run_in_process("study", "list", "--json").json[place]["study_id"]


IDS = {
    "RUN": run_id,
    "3f9a": run_id,
    "81c0": lambda command: run_id(command, 1),
    "77d2": lambda command: run_id(command, 2),
    "7c56": lambda _: study_id(-1),
    "5c24": lambda _: study_id(0),
}
"""Ids that pages show, and what they stand for."""


def words_to_run(shown: ShownCommand) -> list[str]:
    """The words of a command with ids of this folder, and ranges and counts that do not take long."""
    words = [IDS[word](shown.words[1]) if word in IDS else word for word in shown.words]
    for option, value in SHORTER.items():
        if option in words:
            words[words.index(option) + 1] = value
    for pattern, more in ADDED.items():
        if re.match(pattern, " ".join(words)):
            for option, value in zip(more[::2], more[1::2], strict=True):
                words += [] if option in words else [option, value]
    if "--from" in words and "--to" in words:
        begin, end = (words.index(option) + 1 for option in ("--from", "--to"))
        longest_ms = HOUR_MS * (2 if words[0] == "audit" or "--walk-forward" in words else 1)
        words[end] = iso(min(parse_instant(words[end]), parse_instant(words[begin]) + longest_ms))
    return words


def full_line(shown: ShownCommand) -> str:
    """The settings and words of a command."""
    return " ".join([*(f"{name}={value}" for name, value in shown.environment.items()), *shown.words])


def is_run(shown: ShownCommand) -> bool:
    """Whether a command is run, and not only parsed."""
    return not any(re.match(pattern, full_line(shown)) for pattern in NOT_RUN)


def parse(shown: ShownCommand) -> None:
    """Parse a command line as the program does; raises if a command or option does not exist."""
    app = complete_app()
    _, bound, _ = app.meta.parse_args(list(shown.words), print_error=False, exit_on_error=False)
    app.parse_args(bound.args, print_error=False, exit_on_error=False)


def execute_line(shown: ShownCommand, patch: pytest.MonkeyPatch) -> None:
    """Do what a line says, as far as it can be done here."""
    if shown.program == "cd":
        os.chdir(shown.words[0])
    elif shown.program == "pitboss":
        run_shown(shown, patch) if is_run(shown) else parse(shown)
    else:
        assert shown.program in OTHER_PROGRAMS, shown.line


def run_shown(shown: ShownCommand, patch: pytest.MonkeyPatch) -> None:
    """Run a command of a page in the current folder; it must end with 0."""
    words = words_to_run(shown)
    if words != list(shown.words):
        parse(shown)
    patch.setattr("sys.stdin", io.StringIO(SECRET if shown.is_fed else ""))
    try:
        with pytest.MonkeyPatch.context() as settings:
            for name, value in shown.environment.items():
                settings.setenv(name, value)
            out = run_in_process(*words).out
    except AssertionError as error:
        raise AssertionError(f"{shown.line}\nwas run as: pitboss {' '.join(words)}\n{error}") from None
    if shown.rest.startswith("> "):
        Path(shown.rest[2:]).write_text(out)
    elif shown.rest:
        process = subprocess.run(["bash", "-c", shown.rest[2:]], input=out, capture_output=True, text=True, check=True)
        assert process.stdout == "True\n", shown.line


# Pages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if any(shown_commands(page))], ids=lambda page: page.name)
def test_every_command_of_a_page_runs_as_printed(
    page: Path, reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_home(monkeypatch, tmp_path)
    monkeypatch.setattr(first_steps, "TO", "2025-01-20T04:00")
    elsewhere = {shown.words for other in PAGES if other.name != HELP_PAGE for shown in shown_commands(other)}
    for place, command in enumerate(shown_commands(page)):
        if page.name == HELP_PAGE and command.words in elsewhere:
            continue
        if place == 0 or (page.name == HELP_PAGE and is_run(command)):
            folder = tmp_path / str(place)
            folder.mkdir() if page.name == "README.md" else copy(reader_folder, folder)
            monkeypatch.chdir(folder)
        execute_line(command, monkeypatch)


@pytest.mark.parametrize("venue", ["community", "perp", "predict"])
def test_the_commands_that_init_prints_run_as_printed(
    venue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_home(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    _, _, lines = run_in_process("init", "mine", "--venue", venue).out.partition("next:\n")
    commands = [shown_command(line.strip()) for line in lines.splitlines()]
    assert any(command.words[:1] == ("backtest",) for command in commands)
    for command in commands:
        execute_line(command, monkeypatch)


def copy(folder: Path, to: Path) -> None:
    """Copy a folder; files of data, which are replaced and never changed, are linked."""
    shutil.copytree(
        folder, to, copy_function=lambda a, b: os.link(a, b) if a.endswith(".parquet") else shutil.copy(a, b)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_in_blocks_that_are_marked_as_such(page: Path) -> None:
    lines = [line for block in other_blocks(page) for line in block.splitlines()]
    assert [line for line in lines if re.match(r"(\$ )?(pitboss|make) ", line)] == []


def test_every_exception_is_still_needed() -> None:
    lines = [full_line(shown) for page in PAGES for shown in shown_commands(page) if shown.program == "pitboss"]
    assert [pattern for pattern in NOT_RUN if not any(re.match(pattern, line) for line in lines)] == []
