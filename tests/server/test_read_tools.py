"""pitboss as an MCP server: its read tools, and that without `--write` nothing can be changed."""

import asyncio
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import INVALID_PARAMS

from forked_process import forked_command
from pitboss.bootstrap.workspace import look_into, open_workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.server.mcp import read_tools, tool_list, write_tools
from pitboss.server.mcp.workspace import ServerWorkspace
from pitboss.server.tool_server import BackgroundWork
from pitboss.store.migrations import REVISIONS
from pitboss.tools.arguments import require_known
from server.workspaces import RANGE, SKILL, call, call_refused, file_digests, run_ids, with_client, workspace_of

READING = {
    "list_skills", "check_skill", "preview_prompt", "list_tools", "show_tool", "list_runs", "show_run",
    "explain_decision", "compare_runs", "list_data",
}  # fmt: skip
WRITING = {"run_backtest", "fork_run", "save_skill"}


# The whole story, as a coding assistant lives it ------------------------------------------------------------------------


def test_a_client_over_standard_input_tries_a_skill_and_sees_what_became_of_it(
    server_workspace: ServerWorkspace,
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def story() -> None:
        first, *words = forked_command("-m", "pitboss", "mcp", "serve", "--write")
        program = StdioServerParameters(command=first, args=words, cwd=server_workspace.folder, env=dict(os.environ))
        async with Client(stdio_client(program)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING | WRITING
            listed = await call(client, "list_skills")
            assert listed == {
                "files": [{"file": "crossing.yaml", "name": "crossing", "ok": True, "errors": 0}],
                "saved": [],
            }
            wrong = await call(client, "check_skill", text=SKILL.replace("max_orders_per_hour", "max_orders_per_our"))
            assert [(one["line"], one["hint"]) for one in wrong["errors"]] == [(9, "did you mean max_orders_per_hour?")]
            saved = await call(client, "save_skill", text=SKILL)
            assert (saved["name"], saved["version"]) == ("crossing", 1)
            assert (await call(client, "check_skill", skill="crossing"))["digest"] == saved["digest"]
            seen = await call(client, "preview_prompt", skill="crossing.yaml", at="2025-03-16T12:00:00Z")
            assert seen["at"] == "2025-03-16T12:00:00Z"
            assert "Trends go on." in seen["system"] + seen["user"]

            newest = parse_instant((await call(client, "preview_prompt", skill="crossing.yaml"))["at"])
            earlier = await call(client, "preview_prompt", skill="crossing.yaml", at="-2d")
            assert parse_instant(earlier["at"]) == newest - 2 * DAY_MS

            asked = {"skill": "crossing.yaml", "model": "policy/sma_cross", **RANGE}
            done: Any = await client.call_tool("run_backtest", asked, progress_callback=hear)
            assert not done.is_error, done.content
            first = done.structured_content
            assert (first["status"], first["cost_usd"], first["caps"]["max_orders_per_hour"]) == ("complete", 0, 1)
            assert first["labels"] == ["synthetic data", "not a language model"]
            assert first["report"] == f"reports/{first['run_id']}.html"

            why = await call(client, "explain_decision", run=first["run_id"])
            (proposal,) = why["proposals"]
            assert (why["outcome"], proposal["code"]) == ("refused", "R4_EXPOSURE_CAP")
            (margin,) = [one for one in proposal["margins"] if one["code"] == "R4_EXPOSURE_CAP"]
            assert float(margin["used"]) > float(margin["limit"]) == 300
            assert "beyond" in proposal["in_words"]["in numbers"]

            second = await call(client, "run_backtest", **asked, set="risk.max_total_exposure_pct=100")
            found = await call(client, "compare_runs", first=first["run_id"], second=second["run_id"])
            assert not found["difference"]["same"]
            (accepted,) = (row for row in found["metrics"] if row["metric"] == "total_accepted_actions")
            assert accepted["values"][0] < accepted["values"][1]
            assert accepted["differences"][1] == accepted["values"][1] - accepted["values"][0]
            assert [run["report"] for run in found["runs"]] == [
                f"reports/{one['run_id']}.html" for one in (first, second)
            ]
            assert [row["name"] for row in found["inputs"]] == ["skill.risk.max_total_exposure_pct"]
            ids = {"first": first["run_id"], "second": second["run_id"]}
            answer: Any = await client.call_tool("compare_runs", ids)
            told = answer.content[0].text
            assert "input skill.risk.max_total_exposure_pct: 3 / 100" in told
            assert f"Accepted: A {accepted['values'][0]:.0f}, B {accepted['values'][1]:.0f}, difference +" in told
            assert found["decisions"][0]["decisions"][0]["sentence"] in told
            branch = await call(client, "fork_run", run=second["run_id"], at="-2d", model="policy/hold")
            assert branch["forked_from"] == {
                "run_id": second["run_id"],
                "tick_at": "2025-03-18T00:00:00Z",
                "model": second["model"],
            }
            same = await call(client, "explain_decision", run=second["run_id"], tick="-2d")
            assert same["tick_at"] == "2025-03-18T00:00:00Z"
            runs = await call(client, "list_runs", limit=2, status="complete")
            assert [one["run_id"] for one in runs["runs"]] == [branch["run_id"], second["run_id"]]
            last = await call(client, "run_backtest", **{**asked, "from": "-6h", "to": "-2h"})
            assert [parse_instant(last[end]) for end in ("from", "to")] == [newest - 6 * HOUR_MS, newest - 2 * HOUR_MS]

    asyncio.run(story())
    shares = [share for share, _, _ in heard]
    assert len(shares) >= 2
    assert shares == sorted(set(shares))
    assert heard[-1][:2] == (100, 100)
    assert heard[0] == (0, 100, "0%, 96 ticks to go")
    assert heard[-1][2] in ("100%, tick 96 of 96", "done, 96 ticks")


# Nothing changes --------------------------------------------------------------------------------------------------------


def values_of(part: Mapping[str, Any], known: list[str]) -> st.SearchStrategy[Any]:
    """Valid values of one argument; texts are often something that exists."""
    if "enum" in part:
        return st.sampled_from(part["enum"])
    if part["type"] == "integer":
        return st.integers(part["minimum"], part["maximum"])
    if part["type"] == "number":
        return st.floats(part["minimum"], part["maximum"])
    most = min(part["maxLength"], 60)
    real = [word for word in known if part["minLength"] <= len(word) <= part["maxLength"]]
    return st.sampled_from(real) | st.text(min_size=part["minLength"], max_size=most)


def arguments_of(schema: Mapping[str, Any], known: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    parts = {name: values_of(part, known) for name, part in schema["properties"].items()}
    needed = {name: part for name, part in parts.items() if name in schema["required"]}
    return st.fixed_dictionaries(needed, optional={name: part for name, part in parts.items() if name not in needed})


def assert_reading_changes_nothing(folder: Path, examples: int) -> None:
    server_workspace = workspace_of(folder)
    known = [
        *run_ids(server_workspace), "crossing", "crossing.yaml", "crossing@1", SKILL, "risk.max_leverage=2", "refused", "3",
        "2025-03-17T05:00:00Z", "2025-03-18", "fetch_recent_bars", "demo", "policy/hold", "../x.yaml", "/etc/hosts",
    ]  # fmt: skip
    before = file_digests(folder)
    offers = tool_list.offers(server_workspace)
    assert {offer.name for offer in offers} == READING
    answered: set[str] = set()
    calls = st.sampled_from(offers).flatmap(
        lambda offer: arguments_of(offer.schema, known).map(lambda arguments: (offer.name, arguments))
    )

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(calls, min_size=1, max_size=3))
    def play(some: list[tuple[str, dict[str, Any]]]) -> None:
        async def ask(client: Client) -> None:
            for name, arguments in some:
                result = await client.call_tool(name, arguments)
                if not result.is_error:
                    answered.add(name)

        with_client(server_workspace, ask)
        assert file_digests(folder) == before

    async def ask_each(client: Client) -> None:
        first, second = run_ids(server_workspace)
        for name, arguments in {
            "list_skills": {}, "check_skill": {"text": SKILL}, "preview_prompt": {"skill": "crossing"}, "list_tools": {},
            "show_tool": {"name": "get_portfolio"}, "list_runs": {}, "show_run": {"run": first}, "list_data": {},
            "explain_decision": {"run": first, "tick": "0"}, "compare_runs": {"first": first, "second": second},
        }.items():  # fmt: skip
            assert (await client.call_tool(name, arguments)).is_error is False, name
            answered.add(name)

    with_client(server_workspace, ask_each)
    play()
    assert file_digests(folder) == before
    assert answered == READING


def test_without_writing_no_tool_changes_anything(prepared_folder: Path) -> None:
    assert_reading_changes_nothing(prepared_folder, 15)


@pytest.mark.proof
def test_without_writing_no_tool_changes_anything_in_full(prepared_folder: Path) -> None:
    assert_reading_changes_nothing(prepared_folder, 1_500)


def test_without_writing_the_tools_that_write_do_not_exist(prepared_folder: Path) -> None:
    async def ask(client: Client) -> None:
        for name in WRITING:
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {"text": SKILL})
            assert caught.value.error.code == INVALID_PARAMS

    with_client(workspace_of(prepared_folder), ask)


def test_a_database_that_is_only_looked_at_refuses_to_be_written(prepared_folder: Path) -> None:
    with (
        look_into(workspace_of(prepared_folder).settings) as workspace,
        pytest.raises(UserError, match="cannot be written"),
    ):
        workspace.skills.save("another", "digest", b"{}")


def test_a_database_of_an_earlier_version_is_not_brought_up_to_date_by_looking(
    server_workspace: ServerWorkspace,
) -> None:
    with open_workspace(server_workspace.settings):
        pass
    with closing(sqlite3.connect(server_workspace.home / "pitboss.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (next(iter(REVISIONS)),))
    before = file_digests(server_workspace.folder)

    async def ask(client: Client) -> None:
        assert "created by an earlier pitboss" in await call_refused(client, "list_runs")

    with_client(replace(server_workspace, writes=False), ask)
    assert file_digests(server_workspace.folder) == before


def test_looking_at_an_empty_folder_leaves_it_empty(tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        assert await call(client, "list_skills") == {"files": [], "saved": []}
        assert await call(client, "list_runs") == {"runs": [], "damaged": []}
        assert await call(client, "list_data") == {"series": []}
        assert "no database" in await call_refused(client, "show_run", run="3f")
        assert (await call(client, "check_skill", text=SKILL))["ok"]

    with_client(workspace_of(tmp_path), ask)
    assert list(tmp_path.iterdir()) == []


def test_every_tool_says_what_it_may_do_and_bounds_what_it_takes(prepared_folder: Path) -> None:
    async def ask(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            require_known(tool.name, tool.input_schema)
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (tool.name in READING)
            assert tool.annotations.destructive_hint is False
            assert tool.description

    with_client(workspace_of(prepared_folder, writes=True), ask)


def test_a_decision_that_was_asked_for_shows_the_question_as_data(server_workspace: ServerWorkspace) -> None:
    result = write_tools.run_backtest(
        server_workspace, {"skill": "crossing.yaml", "model": "standin/analyst", **RANGE}, BackgroundWork()
    )
    answer = read_tools.explain_decision(
        server_workspace, {"run": (result.values or {})["run_id"], "tick": "0"}, BackgroundWork()
    )
    assert answer.values is not None
    assert answer.values["asked"]["user"].startswith("#")
    assert "it was asked <data>" in answer.text
    assert answer.values["steps"][0]["calls"]
