"""`pitboss community seed`, and `serve` as the platform adds it for a venue with routes."""

import json
import signal
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import pytest
from cyclopts import App

from forked_process import ForkedProcess
from pitboss.cli.venue_serve import serve_command
from pitboss.core.errors import UserError
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.commands import APP
from pitboss.venues.community.sns.serve_options import SnsOptions


def seed(home: Path, *arguments: str) -> int:
    command, bound, ignored = APP.parse_args(["seed", *arguments], print_error=False, exit_on_error=False)
    return command(*bound.args, **bound.kwargs, **dict.fromkeys(ignored, WorkspaceOptions(home, None)))


def test_seed_prints_what_a_trial_needs_and_refuses_a_second_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seed(tmp_path, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["owner", "community", "agent", "runner_token", "contracts", "threads"]
    assert set(printed["owner"]) == {"wallet", "private_key"}
    assert set(printed["community"]) == {"id", "slug"}
    assert set(printed["agent"]) == {"id", "wallet"}
    assert set(printed["contracts"][0]) == {"id", "address", "chain"}
    assert {row["type"] for row in printed["threads"]} >= {"SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN"}
    with pytest.raises(UserError, match="not empty"):
        seed(tmp_path, "--json")


def test_a_scenario_fills_the_forum_and_one_that_does_not_fit_is_refused_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    contract = "contracts: [{id: k, name: K, address: '0x5fbdb2315678afecb367f032d93f642f64180aa3', abi: []}]"
    posts = "posts: [{id: one, author: beta, title: One, body: text}, {id: two, author: beta, thread: one, body: more}]"
    whole = f"name: bank\ncommunity: Bank\n{contract}\n{posts}\n"
    for text, problem in (
        ("- a", "not a valid scenario"),
        ("a: [", "line 1"),
        ("name: bank", "contracts"),
        (whole.replace("One", "x" * 200), "title"),
        (whole.replace("0x5f", "0xzz"), "address"),
        (whole.replace("id: two,", "id: two, at: -1s,"), "posts"),
        (whole.replace("author: beta, title", "author: beta, at: 5m, title"), "before its thread"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=problem):
            seed(tmp_path, "--scenario", str(file))
    file.write_text(whole)
    assert seed(tmp_path, "--scenario", str(file), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["community"]["slug"].startswith("bank-0x")
    assert [row["type"] for row in printed["threads"]] == ["SYSTEM", "DISCUSSION"]


def test_a_venue_with_routes_gets_a_serve_command_with_its_own_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr("pitboss.server.venue_server.serve_routes", lambda *values: calls.append(values))
    venue: Any = SimpleNamespace(
        name="community", routes="module:make", serve_port=8710, serve_options=lambda: SnsOptions
    )
    app = App(name="community")
    app.command(serve_command(venue), name="serve")
    place = WorkspaceOptions(tmp_path, "postgresql://u@h/n")
    for arguments in ([], ["--port", "0", "--processes", "3", "--v1", "off", "--rate-limit", "9"]):
        command, bound, ignored = app.parse_args(["serve", *arguments], print_error=False, exit_on_error=False)
        assert command(*bound.args, **{**bound.kwargs, **dict.fromkeys(ignored, place)}) == 0
    first, second = (values[:-1] for values in calls)
    assert first == ("module:make", place, SnsOptions(), "127.0.0.1", 8710, 1)
    assert second == ("module:make", place, SnsOptions(v1="off", rate_limit=9), "127.0.0.1", 0, 3)


def test_the_command_serves_what_seed_has_filled_until_it_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seed(tmp_path, "--json") == 0
    seeded = json.loads(capsys.readouterr().out)
    program = ForkedProcess("-m", "pitboss", "community", "serve", "--port", "0", "--home", tmp_path)
    try:
        assert program.stderr is not None
        address = next(line for line in program.stderr if line.startswith("listening on ")).split()[-1]
        headers = {"x-runner-token": seeded["runner_token"], "x-agent-id": seeded["agent"]["id"]}
        request = Request(f"{address}/api/agents/{seeded['agent']['id']}/general", headers=headers)
        with urlopen(request, timeout=60) as reply:
            assert json.load(reply)["community"]["slug"] == seeded["community"]["slug"]
    finally:
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=60)


def test_a_server_that_cannot_start_says_so_in_one_line(tmp_path: Path) -> None:
    from pitboss.server.venue_server import serve_routes

    routes, place = "pitboss.venues.community.sns.app:make_app", WorkspaceOptions(tmp_path, None)
    for host, port, processes, problem in (
        ("127.0.0.1", 70_000, 1, "--port"),
        ("127.0.0.1", 0, 0, "--processes"),
        ("203.0.113.1", 0, 1, "cannot listen"),
    ):
        with pytest.raises(UserError, match=problem):
            serve_routes(routes, place, SnsOptions(), host, port, processes, print)
    with pytest.raises(UserError, match="is not a web origin"):
        serve_routes(routes, place, SnsOptions(origin="*"), "127.0.0.1", 0, 1, print)


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_that_another_server_has_is_refused_also_where_processes_share_it(tmp_path: Path, shares: bool) -> None:
    from pitboss.server.venue_server import SPREADS, _bind, serve_routes

    routes, place = "pitboss.venues.community.sns.app:make_app", WorkspaceOptions(tmp_path, None)
    with socket.socket() as other:
        _bind(other, ("127.0.0.1", 0), shares and SPREADS)
        other.listen()
        for processes in (1, 2):
            with pytest.raises(UserError, match="cannot listen"):
                serve_routes(routes, place, SnsOptions(), "127.0.0.1", other.getsockname()[1], processes, print)
    assert list(tmp_path.iterdir()) == [], "nothing was opened that nobody closes"
