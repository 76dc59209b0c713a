"""Tools of MCP servers in a run: recorded in simulations, called live where that is safe; their failures never end a run."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from key_encodings import ENCODINGS
from pitboss.bootstrap import mcp_servers as servers
from pitboss.bootstrap import mcp_tools as mcp
from pitboss.bootstrap.connections import connected
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import RunCancelled, ToolFailed, UserError
from pitboss.core.instant import parse_instant
from pitboss.core.past import Recording
from pitboss.core.ports import ModelReply, ModelRequest, Tool
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.run import resume, start
from pitboss.sim.watch import Watch
from pitboss.store.approvals import Approvals
from pitboss.store.recordings import StoredRecording, StoredRecordings
from pitboss.tools.data_fence import inert
from pitboss.tools.mcp.recorded_tool import canonical
from pitboss.venues.perp.assembly import prepare, read_skill
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.testing import plain_skill, play
from pitboss.venues.perp.venue import VENUE
from secret_search import leaks

SERVER = Path(__file__).with_name("minimal_mcp_server.py")
FROM, TO, END = (parse_instant(f"2025-03-{day}") for day in ("27", "28", "31"))
TWICE, THRICE = "mcp_little__twice", "mcp_little__thrice"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market")
    write_demo(Lake(folder / "lake"), days=6, end=END)
    return folder


@pytest.fixture
def workspace(lake: Path, tmp_path: Path) -> Iterator[Workspace]:
    catalogue = tmp_path / "catalogue.toml"
    catalogue.write_text(
        f"""
        format = 1
        [servers.little]
        title = "Little"
        transport = "stdio"
        argv = ["{{python}}", "-I", {json.dumps(str(SERVER))}, {json.dumps(str(tmp_path))}]
        tools = {{ twice = {{}}, thrice = {{ as_of_safe = true }} }}
        """
    )
    changes = {"database_url": str(tmp_path / "pitboss.db"), "mcp_catalog": catalogue}
    with open_workspace(load_settings(lake).model_copy(update=changes)) as opened:
        yield opened


def skill(*tools: str, server: str = "little") -> PerpSkill:
    return read_skill(document(*tools, server=server))


def document(*tools: str, server: str = "little", model: str = "standin/analyst") -> dict[str, Any]:
    listed = {"id": server, "tool_filter": list(tools)} if tools else {"id": server}
    return plain_skill(["BTC"], "1h", model=model, tools={"built_in": ["get_portfolio"], "mcp_servers": [listed]})


def approve(workspace: Workspace, *tools: str) -> None:
    """Approve what the server says now."""

    async def said() -> Any:
        async with servers.open_connection(workspace.home, servers.catalogue(workspace.settings)["little"]) as line:
            return await line.definitions()

    found = asyncio.run(said())
    approvals = Approvals(workspace.database, workspace.now)
    for tool in tools:
        approvals.approve("little", tool, found[tool].digest, servers.write_definition(found[tool]))


def store_recording(workspace: Workspace, result: str, at: int = FROM, tool: str = "twice", word: str = "hi") -> None:
    kept = StoredRecording(Recording("little", tool, canonical({"word": word}), at, result))
    StoredRecordings(workspace.database).add([kept])


def set_server_mode(tmp_path: Path, word: str) -> None:
    (tmp_path / "mode").write_text(word)


def calls_of(tmp_path: Path) -> list[dict[str, Any]]:
    file = tmp_path / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def call_tool(workspace: Workspace, wanted: PerpSkill, name: str, simulated: bool = True, record: bool = False) -> str:
    """One call at the first tick."""

    async def ask() -> str:
        async with mcp.open_server_tools(workspace, wanted, VENUE.tools(), simulated, record) as found:
            return await found.at(FROM)[name].call({"word": "hi"})

    return asyncio.run(ask())


def offered_tools(workspace: Workspace, wanted: PerpSkill, simulated: bool = True) -> tuple[list[str], tuple[str, ...]]:
    """The names that are offered, and the notes."""

    async def look() -> tuple[list[str], tuple[str, ...]]:
        async with mcp.open_server_tools(workspace, wanted, VENUE.tools(), simulated) as found:
            assert [spec.name for spec in found.specs] == list(found.at(FROM))
            return list(found.at(FROM)), found.notes()

    return asyncio.run(look())


def children() -> set[str]:
    """Processes of the little server."""
    found: set[str] = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (
                SERVER.name in (place / "cmdline").read_text()
                and f"PPid:\t{os.getpid()}" in (place / "status").read_text()
            ):
                found.add(place.name)
        except OSError:
            continue
    return found


def test_a_simulation_is_answered_from_recordings_and_no_server_is_started(
    workspace: Workspace, tmp_path: Path
) -> None:
    approve(workspace, "twice")
    store_recording(workspace, "then")
    set_server_mode(tmp_path, "dead")

    assert call_tool(workspace, skill("twice"), TWICE).splitlines()[2] == "then"
    assert calls_of(tmp_path) == []


def test_a_simulation_says_when_nothing_was_recorded_by_then(workspace: Workspace) -> None:
    approve(workspace, "twice")
    store_recording(workspace, "later", FROM + 1)

    with pytest.raises(ToolFailed, match="was recorded by 2025-03-27T00:00:00Z"):
        call_tool(workspace, skill("twice"), TWICE)


def test_a_tool_that_is_safe_to_ask_later_is_asked_in_a_simulation_and_nothing_is_left_of_its_server(
    workspace: Workspace, tmp_path: Path
) -> None:
    approve(workspace, "twice", "thrice")

    assert "hi hi" in call_tool(workspace, skill(), THRICE)
    assert [call["name"] for call in calls_of(tmp_path)] == ["thrice"]
    assert StoredRecordings(workspace.database).count("little", "thrice", workspace.now()) == 0
    assert children() == set()


def test_outside_of_simulations_every_tool_is_asked_and_recorded_only_where_that_is_wanted(
    workspace: Workspace,
) -> None:
    approve(workspace, "twice")
    stored, file = StoredRecordings(workspace.database), Path(workspace.settings.database_url)
    before = file.read_bytes()

    assert "hi hi" in call_tool(workspace, skill("twice"), TWICE, simulated=False)
    assert stored.count("little", "twice", workspace.now()) == 0
    assert file.read_bytes() == before
    assert "hi hi" in call_tool(workspace, skill("twice"), TWICE, simulated=False, record=True)
    kept = stored.latest("little", "twice", '{"word":"hi"}', workspace.now())
    assert kept is not None
    assert (kept.result, kept.failed) == ("hi hi", False)


def test_tools_without_approval_are_not_offered_and_noted(workspace: Workspace) -> None:
    approve(workspace, "thrice")

    assert offered_tools(workspace, skill()) == ([THRICE], (f"{TWICE} is not available: it has not been approved",))
    assert offered_tools(workspace, skill(), simulated=False)[0] == [THRICE]


def test_a_changed_definition_is_switched_off_until_it_is_approved_again(workspace: Workspace, tmp_path: Path) -> None:
    approve(workspace, "twice", "thrice")
    set_server_mode(tmp_path, "changed")
    names, notes = offered_tools(workspace, skill(), simulated=False)

    assert names == []
    assert set(notes) == {
        f"{name} is not available: its definition is not the approved one any more" for name in (TWICE, THRICE)
    }
    approve(workspace, "twice")
    assert offered_tools(workspace, skill("twice"), simulated=False) == ([TWICE], ())


@pytest.mark.parametrize(("word", "said"), [("dead", "little is not available: "), ("gone", "does not have it")])
def test_a_server_that_is_dead_or_lost_its_tools_is_a_note(
    workspace: Workspace, tmp_path: Path, word: str, said: str
) -> None:
    approve(workspace, "twice")
    set_server_mode(tmp_path, word)
    names, notes = offered_tools(workspace, skill("twice"), simulated=False)

    assert names == []
    assert said in notes[0]
    assert len(notes) == 1


def test_a_pinned_tool_needs_no_approval_and_its_text_is_kept_once_it_is_used(
    workspace: Workspace, tmp_path: Path
) -> None:
    approve(workspace, "twice")
    approval = Approvals(workspace.database, workspace.now).of("little")["twice"]
    file = Path(str(workspace.settings.mcp_catalog))
    file.write_text(f'{file.read_text()}\n[servers.little.pins]\ntwice = "{approval.digest}"\n')
    fresh = workspace.settings.model_copy(update={"database_url": str(tmp_path / "fresh.db")})
    with open_workspace(fresh) as other:
        assert "nobody has asked little here yet" in offered_tools(other, skill("twice"))[1][0]
        assert offered_tools(other, skill("twice"), simulated=False) == ([TWICE], ())
        assert Approvals(other.database, other.now).of("little") == {}
        call_tool(other, skill("twice"), TWICE, simulated=False, record=True)
        assert Approvals(other.database, other.now).of("little")["twice"].digest == approval.digest
        assert offered_tools(other, skill("twice")) == ([TWICE], ())


def test_a_server_that_is_approved_as_shipped_is_approved_in_a_fresh_workspace(lake: Path, tmp_path: Path) -> None:
    shipped = "hyperliquid-info-mcp"
    changes = {"database_url": str(tmp_path / "fresh.db")}
    with open_workspace(load_settings(lake).model_copy(update=changes)) as fresh:
        names, notes = offered_tools(fresh, skill(server=shipped))
        pinned = servers.catalogue(fresh.settings)[shipped].pins
        assert names == [f"mcp_{shipped}__{tool}" for tool in pinned]
        assert notes == ()
        requested = mcp.requested_tools(fresh, skill(server=shipped), VENUE.tools())
        assert {tool.tool: tool.digest for tool in requested} == dict(pinned)
        assert all(tool.approved is not None and tool.approved.description for tool in requested)


@pytest.mark.parametrize(
    ("wanted", "said", "hint"),
    [
        (skill(server="litle"), "no MCP server litle in the catalogue", "little"),
        (skill("twise"), "'twise' is not a tool that little may offer", "twice"),
    ],
)
def test_a_name_that_the_catalogue_does_not_know_is_refused_before_the_start(
    workspace: Workspace, wanted: PerpSkill, said: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        mcp.requested_tools(workspace, wanted, VENUE.tools())
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_server_cannot_offer_a_decision_of_its_own(workspace: Workspace) -> None:
    file = Path(str(workspace.settings.mcp_catalog))
    file.write_text(file.read_text().replace("twice = {}", "propose_order = {}"))
    with pytest.raises(UserError, match="propose_order of little is refused: it would shadow propose_order"):
        mcp.requested_tools(workspace, skill(), VENUE.tools())


def test_a_server_that_dies_during_a_run_fails_its_calls_and_is_noted_at_the_next_tick(
    workspace: Workspace, tmp_path: Path
) -> None:
    approve(workspace, "twice")

    async def run() -> list[tuple[str, ...]]:
        async with mcp.open_server_tools(workspace, skill("twice"), VENUE.tools(), simulated=False) as found:
            notes = [found.notes()]
            tool = found.at(FROM)[TWICE]
            set_server_mode(tmp_path, "dead")
            for process in children():
                os.kill(int(process), signal.SIGKILL)
            for _ in range(4):
                with pytest.raises(ToolFailed, match="not available"):
                    await tool.call({"word": "hi"})
            notes.append(found.notes())
            set_server_mode(tmp_path, "")
            assert "hi hi" in await found.at(FROM + 1)[TWICE].call({"word": "hi"})
            return [*notes, found.notes()]

    assert asyncio.run(run()) == [(), ("little did not answer at the last tick",), ()]


def test_a_run_with_notes_in_its_prompts_can_be_forked(workspace: Workspace) -> None:
    run = asyncio.run(start(workspace, PerpRequest(document("twice"), FROM, TO)))
    branch = asyncio.run(fork(workspace, run.id, "5", ForkChange()))

    done = asyncio.run(resume(workspace, branch))
    assert (done.status, done.digest) == ("complete", run.digest)
    assert done.params[mcp.PIN] == run.params[mcp.PIN]


def test_a_refused_start_stores_nothing(workspace: Workspace) -> None:
    with pytest.raises(UserError, match="twise"):
        asyncio.run(start(workspace, PerpRequest(document("twise"), FROM, TO)))

    assert list(workspace.runs.listing().runs) == []


def test_the_approved_text_is_what_a_model_sees_and_not_what_the_server_says_now(
    workspace: Workspace, tmp_path: Path
) -> None:
    approve(workspace, "twice")
    set_server_mode(tmp_path, "changed")
    shown = VENUE.preview(
        PerpRequest(document("twice"), 0, 1),
        workspace.lake,
        workspace.settings,
        server_tools=asyncio.run(mcp.preview_server_tools(workspace, skill("twice"), VENUE.tools())),
    )

    assert [tool["name"] for tool in shown.tools] == ["get_portfolio", TWICE, "propose_order"]
    assert shown.tools[1]["description"] == "Say it twice."


def first_tool_results(workspace: Workspace, *tools: str) -> tuple[Mapping[str, str], ModelRequest]:
    """The results of the first tool calls of a backtest whose model asks the server's tool at every tick and then holds,
    and its first question.
    """
    prepared = prepare(PerpRequest(document(*tools), FROM, TO), workspace.lake, workspace.settings)

    def reply(request: ModelRequest) -> ModelReply:
        if len(request.messages) == 1:
            return calls(f"mcp_little__{tools[0]}", word="hi")
        return calls("propose_order", action="no_op", symbol="BTC", reason="waiting")

    model = ScriptedModel(reply)

    async def ready() -> PerpCourse:
        async with connected(workspace, prepared, VENUE.tools(), "run") as (connections, line):
            assert line is None
            return prepared.course(replace(connections, model=model))

    play(asyncio.run(ready()))
    results = {message.name: message.text for message in model.requests[1].messages if message.role == "tool"}
    return results, model.requests[0]


def test_the_tools_of_a_server_work_inside_the_replay_and_its_notes_reach_the_prompt(workspace: Workspace) -> None:
    approve(workspace, "twice")
    store_recording(workspace, "then")
    result, first = first_tool_results(workspace, "twice", "thrice")
    assert result[TWICE].splitlines()[2] == "then"
    assert [tool.name for tool in first.tools] == ["get_portfolio", TWICE, "propose_order"]
    assert f"{THRICE} is not available: it has not been approved" in first.messages[0].text


def stopped_run_id(workspace: Workspace, request: PerpRequest) -> str:
    ids: list[str] = []
    asked_for = iter(range(3))
    with pytest.raises(RunCancelled):
        asyncio.run(start(workspace, request, Watch(stop=lambda: next(asked_for, None) is None), ids.append))
    return ids[0]


def test_a_run_goes_on_only_with_the_recordings_and_approvals_that_it_began_with(workspace: Workspace) -> None:
    approve(workspace, "twice")
    request = PerpRequest(document("twice"), FROM, TO)
    run_id = stopped_run_id(workspace, request)

    store_recording(workspace, "after the end", TO + 1)  # which it can never see
    assert asyncio.run(resume(workspace, run_id)).status == "complete"
    other = stopped_run_id(workspace, request)
    store_recording(workspace, "before the end", TO - 1)
    with pytest.raises(UserError, match="MCP tools have changed"):
        asyncio.run(resume(workspace, other))


def test_a_run_without_servers_is_stored_without_a_word_about_them(workspace: Workspace) -> None:
    run = asyncio.run(start(workspace, PerpRequest(plain_skill(["BTC"], "1h", model="standin/analyst"), FROM, TO)))

    assert mcp.PIN not in run.params


def test_a_server_gets_only_what_its_entry_names(workspace: Workspace) -> None:
    entry = replace(servers.catalogue(workspace.settings)["little"], env=("BASE_URL", "NOT_SET"), secret="LITTLE_TOKEN")
    values = {"BASE_URL": "http://x", "HOME": "/root", "GROQ_API_KEY": "gsk_canary_0123456789"}
    given = servers.access(workspace.home, entry, values.get)

    assert given.variables == {"BASE_URL": "http://x"}
    assert given.bearer is None
    held = servers.access(workspace.home, entry, (values | {"LITTLE_TOKEN": "canary-0123456789"}).get)
    assert held.bearer is not None
    assert held.bearer.reveal() == "canary-0123456789"
    assert "canary" not in repr(held)


def make_server_leak(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """The server gets a key in a variable and repeats it in every encoding."""
    file = Path(str(workspace.settings.mcp_catalog))
    file.write_text(file.read_text().replace("tools = {", 'env = ["LITTLE_API_KEY"]\n        tools = {', 1))
    monkeypatch.setenv("LITTLE_API_KEY", key)
    (tmp_path / "words").write_text(json.dumps([encode(key) for encode in ENCODINGS.values()]))


def test_a_key_that_a_server_repeats_reaches_no_answer_and_no_recording(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "lk-Canary/9f3aQ7xZb2+LITTLE"
    approve(workspace, "twice")
    make_server_leak(workspace, tmp_path, monkeypatch, key)

    told = call_tool(workspace, skill("twice"), TWICE, simulated=False, record=True)
    kept = StoredRecordings(workspace.database).latest("little", "twice", '{"word":"hi"}', workspace.now())
    assert kept is not None
    for text in (told, kept.result):
        assert text.count("***") >= len(ENCODINGS)
        assert leaks({"key": key}, inert(text).encode(), "the answer") == []
        assert leaks({"key": key}, re.sub(r"<[^<>]*>|\s", "", inert(text)).encode(), "the answer, joined") == []


def test_a_tool_whose_definition_holds_a_key_is_left_out(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approve(workspace, "twice")
    make_server_leak(workspace, tmp_path, monkeypatch, "lk-Canary/9f3aQ7xZb2+LITTLE")
    set_server_mode(tmp_path, "tells")

    assert offered_tools(workspace, skill("twice"), simulated=False) == (
        [],
        (f"{TWICE} is not available: its server does not have it",),
    )


def test_an_approval_whose_text_was_exchanged_is_found_out(workspace: Workspace) -> None:
    from pitboss.core.errors import ReplayMismatch

    Approvals(workspace.database, workspace.now).approve("little", "twice", "a" * 64, b'{"server":"x"}')
    with pytest.raises(ReplayMismatch, match="not what was approved"):
        mcp.requested_tools(workspace, skill("twice"), VENUE.tools())


def test_connections_are_closed_also_when_the_run_fails(workspace: Workspace) -> None:
    approve(workspace, "thrice")

    async def fail() -> None:
        async with AsyncExitStack() as stack:
            found = await stack.enter_async_context(
                mcp.open_server_tools(workspace, skill("thrice"), VENUE.tools(), simulated=True)
            )
            tool: Tool = found.at(FROM)[THRICE]
            await tool.call({"word": "hi"})
            assert len(children()) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(fail())
    assert children() == set()
