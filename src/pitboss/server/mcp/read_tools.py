"""The read-only tools of pitboss's MCP server: skills, prompts, the catalogue of tools, runs, decisions, data."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.models.providers import PROGRAMS
from pitboss.runs import documents
from pitboss.runs.compare import compare
from pitboss.runs.explain import FIRST_REFUSED, explain
from pitboss.runs.listing import holdings, short
from pitboss.runs.stored import is_synthetic, long_document, one_line, request_of
from pitboss.server.mcp.workspace import MAX_FILES, ServerWorkspace, is_file, overrides_of, skill_or_text, suffix_of
from pitboss.server.tool_server import BackgroundWork, ToolOutput
from pitboss.skill.document import to_json
from pitboss.skill.load import SkillCheck, SkillError, read_text
from pitboss.store.runs import Run
from pitboss.tools.history_text import moment
from pitboss.tools.registry import catalogue, lookup
from pitboss.venues.perp.assembly import PerpRequest, read_skill
from pitboss.venues.perp.preview import preview

MOST_RUNS, MOST_SERIES, MOST_ROWS = 100, 500, 60
FIGURES = (
    "total_return_pct",
    "sharpe",
    "max_drawdown_pct",
    "final_equity_usd",
    "total_trades",
    "win_rate",
    "total_fees_usd",
    "total_funding_usd",
    "total_proposed_actions",
    "total_accepted_actions",
)
_IS_SKILL = re.compile(r"""(?m)^[{\s]*["']?pitboss["']?\s*:""")


def list_skills(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Saved skills, and skill files of the working directory."""
    del arguments, task
    saved: list[dict[str, Any]] = []
    if server_workspace.has_database():
        with server_workspace.workspace() as workspace:
            saved = [{"name": skill.name, "latest_version": skill.latest_version} for skill in workspace.skills.list()]
    files: list[dict[str, Any]] = []
    folder = server_workspace.folder.resolve()
    for file in server_workspace.files():
        try:
            text = read_text(file)
        except UserError:
            continue
        if not _IS_SKILL.search(text):
            continue
        check = documents.check(text, file.suffix, server_workspace.settings)
        name = check.skill.name if check.skill else None
        files.append({"file": str(file.relative_to(folder)), "name": name, "ok": check.ok, "errors": len(check.errors)})
        if len(files) == MAX_FILES:
            break
    lines = [f"file {file['file']}: {file['name'] or _problems(file['errors'])}" for file in files]
    lines += [f"saved {skill['name']}, version {skill['latest_version']}" for skill in saved]
    return ToolOutput("\n".join(lines) or "there are no skills here yet", {"files": files, "saved": saved})


def _problems(count: int) -> str:
    return "1 problem" if count == 1 else f"{count} problems"


def check_skill(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """All errors of a document. An invalid document is a successful result of the tool."""
    del task
    overrides, (named, text) = overrides_of(arguments), skill_or_text(arguments)
    if text is not None:
        found = documents.check(text, suffix_of(text), server_workspace.settings, overrides)
    elif is_file(named):
        file = server_workspace.file(named)
        try:
            found = documents.check(read_text(file), file.suffix, server_workspace.settings, overrides)
        except UserError as error:
            found = SkillCheck(False, None, (SkillError("", error.message, error.hint),), None)
    else:
        found = documents.check(
            to_json(read_skill(server_workspace.skill(arguments, overrides))).decode(),
            ".json",
            server_workspace.settings,
        )
    lines = [_error_line(error) for error in found.errors] or [f"fine, digest {found.digest}"]
    return ToolOutput("\n".join([*lines, *(f"note: {note}" for note in found.notes)]), found.plain())


def _error_line(error: SkillError) -> str:
    where = f"line {error.line}: " if error.line else ""
    said = f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}"
    return f"{said} (hint: {error.hint})" if error.hint else said


def preview_prompt(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The exact prompt of a tick."""
    del task
    plain = server_workspace.skill(arguments, overrides_of(arguments))
    at = moment(arguments, "at") if "at" in arguments else None
    request = PerpRequest(skill=plain, from_at=0, to_at=1, data_venue=arguments.get("data_venue", ""))
    shown = preview(request, server_workspace.lake, server_workspace.settings, at, _mcp_tools(server_workspace, plain))
    tools = "\n".join(f"{tool['name']}: {tool['description']}" for tool in shown.tools)
    head = f"tick {iso(shown.at)}, about {shown.tokens_estimate} tokens"
    values = {
        "at": iso(shown.at),
        "system": shown.system,
        "user": shown.user,
        "tools": list(shown.tools),
        "tokens_estimate": shown.tokens_estimate,
    }
    return ToolOutput(f"{head}\n\nSYSTEM\n{shown.system}\n\nUSER\n{shown.user}\n\nTOOLS\n{tools}", values)


def _mcp_tools(server_workspace: ServerWorkspace, plain: Mapping[str, Any]) -> Any:
    """The MCP tools that a skill has in a backtest."""
    if not plain["tools"]["mcp_servers"]:
        return None
    from pitboss.bootstrap.mcp_tools import glance

    with server_workspace.workspace() as workspace:
        return asyncio.run(glance(workspace, read_skill(plain)))


def list_tools(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The built-in tools of agents, without schemas."""
    del server_workspace, arguments, task
    found = [{key: one[key] for key in ("name", "category", "description", "modes", "reach")} for one in catalogue()]
    return ToolOutput(
        "\n".join(f"{one['name']} ({one['category']}): {one['description']}" for one in found), {"tools": found}
    )


def show_tool(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """One tool with its schema and an example."""
    del server_workspace, task
    known = lookup(arguments["name"]).name
    (tool,) = [one for one in catalogue() if one["name"] == known]
    takes = ", ".join(tool["input_schema"]["properties"]) or "nothing"
    text = f"{tool['name']}: {tool['description']}\ntakes {takes}; modes {', '.join(tool['modes'])}; {tool['ui_hint']}"
    return ToolOutput(text, tool)


def list_runs(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Runs, newest first."""
    del task
    if not server_workspace.has_database():
        return ToolOutput("there are no runs here yet", {"runs": [], "damaged": []})
    with server_workspace.workspace() as workspace:
        listing = workspace.runs.look(arguments.get("limit", 20), arguments.get("status"))
        found = [_with_relative_report(server_workspace, short(run, workspace.now())) for run in listing.runs]
    lines = [
        f"{one['run_id']} {one['status']} {one_line(one['skill'], 60)} {one_line(one['model'], 60)} "
        f"{one['from'][:10]} to {one['to'][:10]} return {_number(one['total_return_pct'])} %"
        for one in found
    ]
    lines += [f"{run_id} is damaged: its row was changed after it was written" for run_id in listing.damaged]
    return ToolOutput(
        "\n".join(lines) or "there are no runs here yet", {"runs": found, "damaged": list(listing.damaged)}
    )


def show_run(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Results, caps, cost and labels of one run."""
    del task
    with server_workspace.workspace() as workspace:
        return run_output(server_workspace, workspace, workspace.runs.get(arguments["run"]))


def run_output(server_workspace: ServerWorkspace, workspace: Workspace, run: Run) -> ToolOutput:
    """A run as text and values."""
    request, document = request_of(run), _with_relative_report(server_workspace, long_document(run))
    synthetic, program = is_synthetic(workspace, run), run.model.startswith(PROGRAMS)
    labels = [*(["synthetic data"] if synthetic else []), *(["not a language model"] if program else [])]
    caps = dict(request.skill.get("risk", {}))
    metrics, held = run.metrics or {}, (run.baselines or {}).get("buy_and_hold") or {}
    lines = [
        f"run {run.id} {run.status}, {one_line(request.skill.get('name', ''))} with {one_line(run.model)}, "
        f"{document['from']} to {document['to']}" + "".join(f" [{label}]" for label in labels),
        *(f"{name} {_number(metrics[name])}" + _buy_and_hold(held, name) for name in FIGURES if name in metrics),
        *(f"refused by {code}: {count}" for code, count in (metrics.get("rejections_by_rule") or {}).items()),
        "caps " + ", ".join(f"{name} {_number(value)}" for name, value in caps.items()),
        f"cost {_number(document['cost_usd'])} USD, {document['progress_pct']:.0f} % done, digest {run.digest}",
        *(f"warning: {one_line(words, 300)}" for words in metrics.get("warnings") or ()),
        *(f"error: {one_line(words, 600)}" for words in document["errors"]),
    ]
    return ToolOutput("\n".join(lines), {**document, "caps": caps, "labels": labels})


def _buy_and_hold(held: Mapping[str, Any], name: str) -> str:
    return f" (buy and hold {_number(held[name])})" if held.get(name) is not None else ""


def _with_relative_report(server_workspace: ServerWorkspace, document: dict[str, Any]) -> dict[str, Any]:
    """The report as a path relative to the workspace; None for a report elsewhere."""
    report, home = document.get("report") or "", f"{server_workspace.home.resolve()}/"
    return {**document, "report": report.removeprefix(home) if report.startswith(home) else None}


def _number(value: Any) -> str:
    return "none" if value is None else f"{value:,.6g}" if isinstance(value, float) else one_line(value, 60)


def explain_decision(
    server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork
) -> ToolOutput:
    """The prompt, the proposal and the outcome of one tick."""
    del task
    with server_workspace.workspace() as workspace:
        text, values = explain(workspace, workspace.runs.get(arguments["run"]), arguments.get("tick", FIRST_REFUSED))
    return ToolOutput(text, values)


def compare_runs(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The first difference of two runs, and the metrics that differ."""
    del task
    with server_workspace.workspace() as workspace:
        return difference_output(
            compare(workspace, workspace.runs.get(arguments["first"]), workspace.runs.get(arguments["second"]))
        )


def difference_output(found: dict[str, Any]) -> ToolOutput:
    """A comparison as text and values."""
    if found["same"]:
        return ToolOutput("the two runs are the same", found)
    parted = found["first_difference"]
    lines = ["every record is the same"]
    if parted:
        lines = [f"first difference: record {parted['seq']} at {parted['tick_at']}, in {', '.join(parted['fields'])}"]
    rows = [
        f"{name}: {_number(one['first'])} / {_number(one['second'])}"
        for name, one in found["metrics"].items()
        if not isinstance(one["first"], list | dict) and not isinstance(one["second"], list | dict)
    ]
    return ToolOutput("\n".join([*lines, *rows[:MOST_ROWS]]), found)


def list_data(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The series of market data."""
    del arguments, task
    held = holdings(server_workspace.lake)
    lines = [
        f"{one['venue']} {one['kind']} {one['symbol'] or ''} {one['interval'] or ''}: {one['rows']} rows, "
        f"{one['first_at']} to {one['last_at']}, {one['gaps']} gaps" + (" [synthetic]" if one["synthetic"] else "")
        for one in held[:MOST_SERIES]
    ]
    left = f"\nand {len(held) - MOST_SERIES} more" if len(held) > MOST_SERIES else ""
    return ToolOutput(("\n".join(lines) or "there is no data here yet") + left, {"series": held[:MOST_SERIES]})
