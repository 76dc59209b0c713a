"""Tools of MCP servers, as a workspace has recorded them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitboss.audit.lookahead import LookaheadResult, audit
from pitboss.audit.setup import AuditRequest, prepare
from pitboss.bootstrap import mcp_servers as servers
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import HOUR_MS, parse_instant
from pitboss.core.past import Recording
from pitboss.store.approvals import Approvals
from pitboss.store.recordings import StoredRecording, StoredRecordings
from pitboss.tools.mcp import definition
from pitboss.venues.perp.testing import plain_skill

FROM, TO = parse_instant("2025-03-28"), parse_instant("2025-03-29")
TWICE, THRICE, NEVER = "mcp_little__twice", "mcp_little__thrice", "mcp_little__never"
CATALOGUE = """
format = 1
[servers.little]
title = "Little"
transport = "stdio"
argv = ["{python}", "-I", "nowhere.py"]
tools = { twice = {}, thrice = { as_of_safe = true }, never = {} }
"""


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A server of which one tool is approved and recorded every hour."""
    catalogue = tmp_path / "catalogue.toml"
    catalogue.write_text(CATALOGUE)
    changes = {"database_url": str(tmp_path / "pitboss.db"), "mcp_catalog": catalogue}
    with open_workspace(load_settings(home, None).model_copy(update=changes)) as opened:
        said = definition.read_definition(
            "little", "1", {"name": "twice", "description": "Twice.", "inputSchema": {"type": "object"}}
        )
        approvals = Approvals(opened.database, opened.now)
        approvals.approve("little", "twice", said.digest, servers.write_definition(said))
        StoredRecordings(opened.database).add(
            StoredRecording(
                Recording("little", "twice", '{"word":"hi"}', FROM - 3 * HOUR_MS + place * HOUR_MS, f"hi {place}")
            )
            for place in range(60)
        )
        yield opened


def run_lookahead_audit(workspace: Workspace, cuts: int = 4, **more: Any) -> LookaheadResult:
    plain = plain_skill(["BTC"], "1h", tools={"built_in": [], "mcp_servers": [{"id": "little"}]})

    async def work() -> LookaheadResult:
        return await audit(await prepare(workspace, AuditRequest(skill=plain, from_at=FROM, to_at=TO, **more)), cuts, 4)

    return asyncio.run(work())


def test_recorded_answers_are_compared_and_what_cannot_be_is_named(workspace: Workspace) -> None:
    result = run_lookahead_audit(workspace)
    assert result.differences == 0
    count = result.counts[f"tool {TWICE}"]
    assert count.compared > count.failed
    assert "called in simulations" in result.not_covered[f"tool {THRICE}"]
    assert "not approved" in result.not_covered[f"tool {NEVER}"]


def test_a_search_that_finds_a_later_recording_is_found_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = StoredRecordings.latest
    monkeypatch.setattr(
        StoredRecordings,
        "latest",
        lambda self, server, tool, arguments, by: honest(self, server, tool, arguments, by + HOUR_MS),
    )
    result = run_lookahead_audit(workspace, tools=(TWICE,))
    assert {name for name, count in result.counts.items() if count.differences} == {f"tool {TWICE}"}
