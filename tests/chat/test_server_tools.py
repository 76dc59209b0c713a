"""Tools of MCP servers in the chat: approved and read-only, or not offered."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chat.conftest import FROM, TO
from pitboss.bootstrap import mcp_servers as servers
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.chat.context import reading
from pitboss.chat.server_tools import changes_nothing, server_tools
from pitboss.core.errors import ToolFailed
from pitboss.runs.run import start
from pitboss.store.approvals import Approvals
from pitboss.tools.mcp.definition import read_definition
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill

SERVER = Path(__file__).parents[1] / "bootstrap" / "minimal_mcp_server.py"
SCHEMA = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("annotations", "offered"),
    [
        (None, False),
        ("readOnlyHint", False),
        ({}, False),
        ({"readOnlyHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": False}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
    ],
)
def test_only_a_definition_that_says_read_only_is_offered(annotations: Any, offered: bool) -> None:
    raw = {"name": "look", "inputSchema": SCHEMA, **({} if annotations is None else {"annotations": annotations})}
    assert changes_nothing(read_definition("server", "1", raw)) is offered


def test_a_tool_without_an_approved_definition_is_not_offered() -> None:
    assert not changes_nothing(None)


@pytest.fixture
def workspace_with_tools(home: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace whose catalogue has a server with one tool that reads and one that changes something, both approved."""
    (tmp_path / "mode").write_text("marks")
    catalogue = tmp_path / "catalogue.toml"
    catalogue.write_text(
        f"""
        format = 1
        [servers.little]
        title = "Little"
        transport = "stdio"
        argv = ["{{python}}", "-I", {json.dumps(str(SERVER))}, {json.dumps(str(tmp_path))}]
        tools = {{ twice = {{}}, thrice = {{}} }}
        """
    )
    changes = {"database_url": str(tmp_path / "pitboss.db"), "mcp_catalog": catalogue}
    with open_workspace(load_settings(home).model_copy(update=changes)) as workspace:
        asyncio.run(approve(workspace))
        yield workspace


async def approve(workspace: Workspace) -> None:
    async with servers.open_connection(workspace.home, servers.catalogue(workspace.settings)["little"]) as connection:
        found = await connection.definitions()
    approvals = Approvals(workspace.database, workspace.now)
    for tool in ("twice", "thrice"):
        approvals.approve("little", tool, found[tool].digest, servers.write_definition(found[tool]))


def test_the_chat_calls_a_server_of_the_skill_now_and_never_a_tool_that_changes_something(
    workspace_with_tools: Workspace, tmp_path: Path
) -> None:
    tools = {"built_in": ["get_portfolio"], "mcp_servers": [{"id": "little"}]}
    skill = plain_skill(["BTC"], "1h", model="policy/sma_cross", tools=tools)
    run = asyncio.run(start(workspace_with_tools, PerpRequest(skill=skill, from_at=FROM, to_at=TO, data_venue="demo")))

    async def look(settings: Settings) -> tuple[list[str], str]:
        with reading(settings, "local", run.id) as context:
            async with server_tools(context) as found:
                return list(found), await found["mcp_little__twice"].call({"word": "hi"})

    offered, answer = asyncio.run(look(workspace_with_tools.settings))
    assert offered == ["mcp_little__twice"]
    assert "hi hi" in answer
    assert answer.startswith("[data from")
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_a_conversation_about_no_run_has_no_tools_of_servers(workspace_with_tools: Workspace) -> None:
    async def look() -> None:
        with reading(workspace_with_tools.settings, "local") as context:
            async with server_tools(context) as found:
                assert found == {}
            with pytest.raises(ToolFailed):
                context.run()

    asyncio.run(look())
