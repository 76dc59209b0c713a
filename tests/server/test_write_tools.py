"""pitboss as an MCP server: which files it reads, what its answers never contain, and how its work is stopped."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import look_into, open_workspace
from pitboss.core.errors import UserError
from pitboss.runs.run import resume
from pitboss.server.mcp import read_tools, write_tools
from pitboss.server.mcp.workspace import ServerWorkspace
from pitboss.server.tool_server import BackgroundWork, OfferedTool, ToolOutput, create, read_address, run_in_thread
from server.workspaces import RANGE, SKILL, call, call_refused, file_digests, run_ids, with_client, workspace_of

# Files, paths, keys -----------------------------------------------------------------------------------------------------


def test_only_files_of_the_folder_and_the_workspace_are_read(
    server_workspace: ServerWorkspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret.yaml"
    elsewhere.write_text(SKILL)
    (server_workspace.folder / "link.yaml").symlink_to(elsewhere)
    (server_workspace.folder / "inside.yaml").symlink_to(server_workspace.folder / "crossing.yaml")
    (server_workspace.home / "secrets.json").write_text(SKILL)
    (server_workspace.folder / "notes.txt").write_text(SKILL)
    os.mkfifo(server_workspace.folder / "pipe.yaml")
    around = os.path.relpath(elsewhere, server_workspace.folder)

    async def ask(client: Client) -> None:
        for name in (str(elsewhere), "link.yaml", around, "/etc/hosts.yaml"):
            assert "only files of the working directory" in await call_refused(client, "check_skill", skill=name)
        for name in (".pitboss/secrets.json", "x\0.yaml", "pipe.yaml", "gone.yaml", "a" * 300):
            said = await call_refused(client, "check_skill", skill=name)
            assert str(server_workspace.folder) not in said
        assert (await call(client, "check_skill", skill="inside.yaml"))["ok"]
        files = (await call(client, "list_skills"))["files"]
        assert [one["file"] for one in files] == ["crossing.yaml"]

    with_client(server_workspace, ask)


def answer_of(
    server_workspace: ServerWorkspace, work: Callable[[Mapping[str, Any], BackgroundWork], ToolOutput]
) -> Any:
    """What a client gets of a tool that does this."""
    made = create(
        "x",
        "x",
        "1",
        "",
        [OfferedTool("x", "x", "x", {"type": "object", "properties": {}}, work)],
        server_workspace.output_filter(),
    )

    async def main() -> Any:
        async with Client(made, mode="legacy") as client:
            return await client.call_tool("x", {})

    return asyncio.run(main())


def test_a_fault_of_the_program_shows_nothing_of_itself(server_workspace: ServerWorkspace) -> None:
    def fail(given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
        raise RuntimeError("token abc in /private/place")

    result = answer_of(server_workspace, fail)
    assert result.is_error
    assert "abc" not in result.model_dump_json()
    assert "/private" not in result.model_dump_json()
    assert "internal error in" in result.content[0].text


def test_a_mistake_comes_with_its_hint_and_without_paths_from_elsewhere(server_workspace: ServerWorkspace) -> None:
    def fail(given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
        raise UserError(
            f"cannot read {server_workspace.folder}/a.yaml or /srv/other/b.toml: no",
            "see ~/.config/x, or https://x.y/z/",
        )

    result = answer_of(server_workspace, fail)
    assert result.content[0].text == "cannot read a.yaml or [a path]: no\nhint: see [a path], or https://x.y/z/"
    assert result.structured_content == {
        "error": "cannot read a.yaml or [a path]: no",
        "hint": "see [a path], or https://x.y/z/",
    }


def test_a_key_leaves_in_no_answer(server_workspace: ServerWorkspace) -> None:
    key = "sk-canary-0123456789abcdef"
    REDACTOR.add(key)
    try:
        result = answer_of(server_workspace, lambda given, side: ToolOutput(f"it is {key}", {"deep": [{"in": key}]}))
        assert key not in result.model_dump_json()
    finally:
        REDACTOR.forget()


# Work -------------------------------------------------------------------------------------------------------------------


def test_a_run_that_is_stopped_is_kept_and_ends_in_the_same_digest(
    server_workspace: ServerWorkspace, prepared_folder: Path
) -> None:
    undisturbed = read_tools.list_runs(workspace_of(prepared_folder), {}, BackgroundWork()).values or {}
    # a stand-in is asked at every tick, so there is one to stop at
    asked = {"skill": "crossing.yaml", "model": "standin/analyst", **RANGE}
    whole = write_tools.run_backtest(server_workspace, asked, BackgroundWork()).values or {}
    side: BackgroundWork

    def halfway(share: float, words: str) -> None:
        if share > 0.3:
            side.stop()

    side = BackgroundWork(halfway)
    told = write_tools.run_backtest(server_workspace, asked, side)
    assert told.failed
    assert told.values is not None
    assert told.values["status"] == "cancelled"
    assert 0 < told.values["progress_pct"] < 100
    assert f"pitboss runs resume {told.values['run_id']}" in told.text
    with open_workspace(server_workspace.settings) as workspace:
        run = asyncio.run(resume(workspace, told.values["run_id"]))
    assert run.digest == whole["digest"]
    assert undisturbed["damaged"] == []


def test_a_cancelled_call_asks_its_work_to_stop_and_waits_for_it() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(side: BackgroundWork) -> ToolOutput:
        begun.set()
        while not side.stopped():
            threading.Event().wait(0.001)
        ended.set()
        return ToolOutput("stopped")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_thread, work, None)
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()
        assert ended.is_set()

    anyio.run(main)


def test_a_client_that_cancels_stops_the_run(server_workspace: ServerWorkspace) -> None:
    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as group:

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                if progress > 10:
                    group.cancel_scope.cancel()

            async def begin() -> None:
                asked = {"skill": "crossing.yaml", "model": "standin/analyst", **RANGE}
                await client.call_tool("run_backtest", asked, progress_callback=hear)

            group.start_soon(begin)

    with_client(server_workspace, ask)
    with look_into(server_workspace.settings) as workspace:
        (run,) = workspace.runs.listing().runs
    assert run.status == "cancelled"
    assert 0 < run.progress < 1


@pytest.mark.parametrize("tool", ["run_backtest", "fork_run"])
def test_a_model_that_costs_money_needs_a_limit(
    tool: str, prepared_folder: Path, server_workspace: ServerWorkspace
) -> None:
    if tool == "fork_run":
        server_workspace = replace(workspace_of(prepared_folder), writes=True)
    before = file_digests(server_workspace.home)
    (first, *_) = run_ids(server_workspace) if tool == "fork_run" else [""]
    arguments = {"skill": "crossing.yaml", **RANGE} if tool == "run_backtest" else {"run": first, "at": "2025-03-18"}

    async def ask(client: Client) -> None:
        for more in ({}, {"max_cost_usd": 0}):
            said = await call_refused(client, tool, model="openai/gpt-5", **arguments, **more)
            assert "give max_cost_usd" in said

    with_client(server_workspace, ask)
    assert {name for name in file_digests(server_workspace.home) if name.startswith("reports")} == {
        name for name in before if name.startswith("reports")
    }


def test_wrong_arguments_are_reported_in_one_line(prepared_folder: Path) -> None:
    async def ask(client: Client) -> None:
        assert "unknown argument 'rn'; did you mean run?" in await call_refused(client, "show_run", rn="3")
        assert "limit must be at most 100" in await call_refused(client, "list_runs", limit=10**9)
        assert "give either skill" in await call_refused(client, "check_skill")
        assert "cannot read" in await call_refused(
            client, "explain_decision", run=run_ids(server_workspace)[0], tick="9999999-01-01"
        )

    server_workspace = workspace_of(prepared_folder)
    with_client(server_workspace, ask)


@pytest.mark.parametrize(
    "address", ["0.0.0.0:80", "8000", "192.168.1.5:8000", "127.0.0.1:99999", "example.com:80", ":80"]
)
def test_it_listens_on_this_machine_only(address: str) -> None:
    with pytest.raises(UserError):
        read_address(address)


def test_it_listens_on_loopback() -> None:
    assert read_address("[::1]:8000") == ("::1", 8000)
    assert read_address("localhost:0") == ("localhost", 0)
