"""Adding a tool is adding one file: it is then in the registry, the catalogue, the command line and the page."""

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from pitboss.cli.main import main
from pitboss.runs.venues import venues
from pitboss.tools import registry
from pitboss.venues.perp import tools as builtin
from pitboss.venues.perp.venue import VENUE
from pitboss_dev.docs.tools_page import tools_page

FILE = '''
"""Says pong."""
from pitboss.core.instant import iso
from pitboss.tools.define import define_tool

async def look(context, arguments):
    return f"pong {arguments['word']} at {iso(context.observation.at)}"

TOOL = define_tool(name="ping", category="market_data", description="Says pong, to whoever asks.", look=look,
    example={"word": "hello"}, ui_hint="For nothing.",
    schema={"type": "object", "additionalProperties": False, "required": ["word"], "properties": {
        "word": {"type": "string", "maxLength": 9, "description": "What to say back."}}})
'''


@pytest.fixture
def installed_ping_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file more in the folder of the built-in tools, in a program that has just been started."""
    (tmp_path / "ping.py").write_text(FILE)
    monkeypatch.setattr(builtin, "__path__", [*builtin.__path__, str(tmp_path)])
    registry.registry_of.cache_clear()
    yield
    monkeypatch.undo()
    registry.registry_of.cache_clear()
    sys.modules.pop(f"{builtin.__name__}.ping", None)


def run_command(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(list(words)) == 0
    return out.getvalue()


def test_one_file_more_is_a_tool_everywhere(installed_ping_tool: None) -> None:
    assert "ping" in VENUE.tools()
    (shown,) = [tool for tool in registry.catalogue(VENUE.tools()) if tool["name"] == "ping"]
    assert shown["input_schema"]["required"] == ["word"]
    assert "Says pong, to whoever asks." in run_command("tools", "list")
    assert '"word"' in run_command("tools", "show", "ping")
    page = tools_page()
    assert "\n## ping\n" in page
    assert "[`ping`](#ping)" in page
    assert "| `word` | text of 0 to 9 characters | yes | What to say back. |" in page
    assert "pong hello at 2025-03-02T00:00:00Z" in page


def test_without_the_file_the_tool_is_nowhere() -> None:
    assert "ping" not in VENUE.tools()
    assert "ping" not in run_command("tools", "list")


def test_the_page_shows_an_answer_of_every_tool_that_can_be_called() -> None:
    page = tools_page()
    assert page == tools_page()
    assert page.count("\nAnswer:\n") == sum(len(venue.tools()) - 1 for venue in venues())
