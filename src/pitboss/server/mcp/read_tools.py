"""The read-only tools of pitboss's MCP server: skills, prompts, the catalogue of tools, runs, decisions, data."""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.report.fork_text import fork_sentence, model_column
from pitboss.runs import documents
from pitboss.runs.compare import compare
from pitboss.runs.explain import FIRST_REFUSED, explain
from pitboss.runs.lineage import is_by_programs
from pitboss.runs.listing import holdings, result_text, short
from pitboss.runs.skill_preview import preview_document, preview_skill
from pitboss.runs.skill_reference import check_complete
from pitboss.runs.stored import is_synthetic, long_document, one_line, request_of
from pitboss.runs.tool_catalogue import built_in_rows, one_tool
from pitboss.runs.venues import venue_of
from pitboss.server.mcp.workspace import MAX_FILES, ServerWorkspace, is_file, overrides_of, skill_or_text
from pitboss.server.tool_server import BackgroundWork, ToolOutput
from pitboss.skill.load import SkillCheck, SkillError, read_text
from pitboss.store.runs import Run
from pitboss.tools.history_text import moment

MOST_RUNS, MAX_SERIES, MAX_ROWS = 100, 500, 60
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
    overrides, (skill, text) = overrides_of(arguments), skill_or_text(arguments)
    if text is not None:
        check = documents.check(text, documents.suffix_of(text), server_workspace.settings, overrides)
    elif is_file(skill):
        file = server_workspace.file(skill)
        try:
            check = documents.check(read_text(file), file.suffix, server_workspace.settings, overrides)
        except UserError as error:
            check = SkillCheck(False, None, (SkillError("", error.message, error.hint),), None)
    else:
        check = check_complete(server_workspace.skill(arguments, overrides), server_workspace.settings)
    lines = [_error_line(error) for error in check.errors] or [f"fine, digest {check.digest}"]
    return ToolOutput("\n".join([*lines, *(f"note: {note}" for note in check.notes)]), check.plain())


def _error_line(error: SkillError) -> str:
    prefix = f"line {error.line}: " if error.line else ""
    text = f"{prefix}{error.path}: {error.message}" if error.path else f"{prefix}{error.message}"
    return f"{text} (hint: {error.hint})" if error.hint else text


def preview_prompt(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The exact prompt of a tick."""
    del task
    plain = server_workspace.skill(arguments, overrides_of(arguments))
    at = moment(arguments, "at") if "at" in arguments else None
    prompt = preview_skill(
        plain,
        server_workspace.lake,
        server_workspace.settings,
        server_workspace.workspace,
        at=at,
        data_venue=arguments.get("data_venue", ""),
    )
    tools = "\n".join(f"{tool['name']}: {tool['description']}" for tool in prompt.tools)
    head = f"tick {iso(prompt.at)}, about {prompt.tokens_estimate} tokens"
    values = preview_document(prompt, plain, server_workspace.settings)
    return ToolOutput(f"{head}\n\nSYSTEM\n{prompt.system}\n\nUSER\n{prompt.user}\n\nTOOLS\n{tools}", values)


def list_tools(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The built-in tools of agents, without schemas."""
    del server_workspace, arguments, task
    keys = ("name", "category", "description", "modes", "reach")
    tools = [{"venue": tool["venue"], **{key: tool[key] for key in keys}} for tool in built_in_rows()]
    return ToolOutput(
        "\n".join(f"{tool['name']} ({tool['venue']}, {tool['category']}): {tool['description']}" for tool in tools),
        {"tools": tools},
    )


def show_tool(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """One tool with its schema and an example; the venue decides where several have a tool of that name."""
    del server_workspace, task
    tool = one_tool(arguments["name"], arguments.get("venue", ""))
    argument_names = ", ".join(tool["input_schema"]["properties"]) or "nothing"
    text = f"{tool['name']}: {tool['description']}\ntakes {argument_names}; modes {', '.join(tool['modes'])}; {tool['ui_hint']}"
    return ToolOutput(text, tool)


def list_runs(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Runs, newest first."""
    del task
    if not server_workspace.has_database():
        return ToolOutput("there are no runs here yet", {"runs": [], "damaged": []})
    with server_workspace.workspace() as workspace:
        listing = workspace.runs.listing(arguments.get("limit", 20), arguments.get("status"))
        runs = [_with_relative_report(server_workspace, short(run, workspace.now())) for run in listing.runs]
    lines = [
        f"{run['run_id']} {run['status']} {one_line(run['skill'], 60)} {one_line(model_column(run), 200)} "
        f"{run['from'][:10]} to {run['to'][:10]} {_result(run)}"
        for run in runs
    ]
    lines += [f"{run_id} is damaged: its row was changed after it was written" for run_id in listing.damaged]
    return ToolOutput(
        "\n".join(lines) or "there are no runs here yet", {"runs": runs, "damaged": list(listing.damaged)}
    )


def _result(run: Mapping[str, Any]) -> str:
    label = run["result_label"]
    return result_text(run) if label else f"return {_number(run['result'])} %"


def show_run(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Results, caps, cost and labels of one run."""
    del task
    with server_workspace.workspace() as workspace:
        return run_output(server_workspace, workspace, workspace.runs.get(arguments["run"]))


def run_output(server_workspace: ServerWorkspace, workspace: Workspace, run: Run) -> ToolOutput:
    """A run as text and values."""
    request, document = request_of(run), _with_relative_report(server_workspace, long_document(workspace, run))
    synthetic, program = is_synthetic(workspace, run), is_by_programs(run)
    labels = [*(["synthetic data"] if synthetic else []), *(["not a language model"] if program else [])]
    caps = dict(request.skill.get("risk", {}))
    metrics, buy_and_hold = run.metrics or {}, (run.baselines or {}).get("buy_and_hold") or {}
    lines = [
        f"run {run.id} {run.status}, {one_line(request.skill.get('name', ''))} with {one_line(run.model)}, "
        f"{document['from']} to {document['to']}" + "".join(f" [{label}]" for label in labels),
        *([one_line(sentence, 600)] if (sentence := fork_sentence(document)) else []),
        *(
            f"{name} {_number(metrics[name])}" + _buy_and_hold(buy_and_hold, name)
            for name in dict.fromkeys((*FIGURES, *venue_of(request.skill).study_metrics()))
            if name in metrics
        ),
        *(f"refused by {code}: {count}" for code, count in (metrics.get("rejections_by_rule") or {}).items()),
        *(["caps " + ", ".join(f"{name} {_number(value)}" for name, value in caps.items())] if caps else []),
        f"cost {_number(document['cost_usd'])} USD, {document['progress_pct']:.0f} % done, digest {run.digest}",
        *(f"warning: {one_line(text, 300)}" for text in metrics.get("warnings") or ()),
        *(f"error: {one_line(text, 600)}" for text in document["errors"]),
    ]
    return ToolOutput("\n".join(lines), {**document, "caps": caps, "labels": labels})


def _buy_and_hold(metrics: Mapping[str, Any], name: str) -> str:
    return f" (buy and hold {_number(metrics[name])})" if metrics.get(name) is not None else ""


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


def difference_output(comparison: dict[str, Any]) -> ToolOutput:
    """A comparison as text and values."""
    if comparison["same"]:
        return ToolOutput("the two runs are the same", comparison)
    difference = comparison["first_difference"]
    lines = ["every record is the same"]
    if difference:
        lines = [
            f"first difference: record {difference['seq']} at {difference['tick_at']}, in {', '.join(difference['fields'])}"
        ]
    rows = [
        f"{name}: {_number(pair['first'])} / {_number(pair['second'])}"
        for name, pair in comparison["metrics"].items()
        if not isinstance(pair["first"], list | dict) and not isinstance(pair["second"], list | dict)
    ]
    return ToolOutput("\n".join([*lines, *rows[:MAX_ROWS]]), comparison)


def list_data(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The series of market data."""
    del arguments, task
    series = holdings(server_workspace.lake)
    lines = [
        f"{row['venue']} {row['kind']} {row['symbol'] or ''} {row['interval'] or ''}: {row['rows']} rows, "
        f"{row['first_at']} to {row['last_at']}, {row['gaps']} gaps" + (" [synthetic]" if row["synthetic"] else "")
        for row in series[:MAX_SERIES]
    ]
    more = f"\nand {len(series) - MAX_SERIES} more" if len(series) > MAX_SERIES else ""
    return ToolOutput(("\n".join(lines) or "there is no data here yet") + more, {"series": series[:MAX_SERIES]})
