"""The read-only tools of pitboss's MCP server: skills, prompts, the catalogue of tools, runs, decisions, data."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.report.figures import plural
from pitboss.runs import documents, record_text
from pitboss.runs.comparison_text import compared
from pitboss.runs.explain import FIRST_REFUSED, explain
from pitboss.runs.indexed_runs import stored_index
from pitboss.runs.record_text import RecordText
from pitboss.runs.skill_preview import preview_document, preview_skill
from pitboss.runs.skill_reference import check_complete
from pitboss.runs.tool_catalogue import built_in_rows, one_tool
from pitboss.server.mcp.workspace import MAX_FILES, ServerWorkspace, is_file, overrides_of, skill_or_text
from pitboss.server.tool_server import BackgroundWork, ToolOutput
from pitboss.skill.load import SkillCheck, SkillError, read_text
from pitboss.tools.history_text import moment

MOST_RUNS = 100
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
    lines = [f"file {file['file']}: {file['name'] or plural(file['errors'], 'problem')}" for file in files]
    lines += [f"saved {skill['name']}, version {skill['latest_version']}" for skill in saved]
    return ToolOutput("\n".join(lines) or "there are no skills here yet", {"files": files, "saved": saved})


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
    at = moment(arguments, "at", server_workspace.end_of_data(plain, arguments)) if "at" in arguments else None
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
        return output(record_text.runs(workspace, arguments.get("limit", 20), arguments.get("status")))


def show_run(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Results, caps, cost and labels of one run."""
    del task
    with server_workspace.workspace() as workspace:
        return output(record_text.run(workspace, workspace.runs.get(arguments["run"])))


def explain_decision(
    server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork
) -> ToolOutput:
    """The prompt, the proposal and the outcome of one tick."""
    del task
    with server_workspace.workspace() as workspace:
        text, values = explain(workspace, workspace.runs.get(arguments["run"]), arguments.get("tick", FIRST_REFUSED))
    return ToolOutput(text, values)


def compare_runs(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Two runs side by side: inputs, figures and first decisions that differ."""
    del task
    with server_workspace.workspace() as workspace:
        first, second = workspace.runs.get(arguments["first"]), workspace.runs.get(arguments["second"])
        return output(compared(workspace, first, second, partial(stored_index, workspace)))


def list_data(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """The series of market data."""
    del arguments, task
    return output(record_text.data(server_workspace.lake))


def output(text: RecordText) -> ToolOutput:
    """A text about records as the output of a tool."""
    return ToolOutput(text.text, text.values)
