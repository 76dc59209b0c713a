"""The tools of the chat over the records of a workspace: runs, decisions, refusals, costs, skills, data."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.chat.chat_tool import RUN, ChatTool, Find, Schema, ToolFinding, schema, text
from pitboss.chat.citations import cite
from pitboss.chat.context import ReadContext
from pitboss.core.instant import Instant, iso
from pitboss.core.money import ZERO
from pitboss.core.money import text as exact_text
from pitboss.core.ports import ToolSpec
from pitboss.prompt import render
from pitboss.report.decisions import PROPOSED
from pitboss.report.figures import plural
from pitboss.report.meaning import unknown_rule
from pitboss.runs import record_text
from pitboss.runs.comparison_text import compared
from pitboss.runs.explain import FIRST_REFUSED, explain
from pitboss.runs.record_text import number_text
from pitboss.runs.stored import end_of_run, journal_of, one_line, spend_of
from pitboss.runs.venues import venue_of
from pitboss.skill.document import to_json
from pitboss.skill.load import read_skill
from pitboss.store.runs import Run
from pitboss.store.spend import spend
from pitboss.tools.history_text import moment

MOST_RUNS, MOST_DECISIONS, MOST_COSTS, MOST_COUNTED = 50, 50, 60, 20_000
CONDITIONS = ("outcome", "code", "action", "symbol")
STATUSES = ("queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled")
OUTCOMES = ("allowed", "reduced", "refused", "noop")


def list_runs(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """Runs, newest first."""
    listing = record_text.runs(context.workspace, arguments.get("limit", 20), arguments.get("status"))
    return ToolFinding(listing.text, [cite(row["run_id"]) for row in listing.values["runs"]])


def show_run(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """Results, caps, cost and labels of one run."""
    run = context.run(arguments.get("run", ""))
    description = record_text.run(context.workspace, run)
    document = description.values
    more = [f"ticks {document['ticks']}", f"created {document['created_at']}, finished {document['finished_at']}"]
    if document["progress_pct"] < 100:
        more.append(f"progress {number_text(document['progress_pct'])} %")
    return ToolFinding("\n".join([description.text, *more]), [cite(run.id)])


def list_decisions(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """Decisions in order of time, those that match."""
    run = context.run(arguments.get("run", ""))
    index = context.index(run)
    matches = index.find({name: arguments[name] for name in CONDITIONS if name in arguments})  # pyright: ignore[reportArgumentType]
    if arguments.get("after"):
        matches = matches[
            index.numbers["tick_at"][matches] > moment(arguments, "after", lambda: end_of_run(context.workspace, run))
        ]
    rows = [index.row(int(number)) for number in matches[: arguments.get("limit", 20)]]
    lines = [f"{plural(len(matches), 'decision')} of run {run.id} match; the first {len(rows)}:"]
    lines += [_line(context, run, row) for row in rows]
    return ToolFinding("\n".join(lines), [cite(run.id, row["tick_at"]) for row in rows] or [cite(run.id)])


def _line(context: ReadContext, run: Run, row: Mapping[str, Any]) -> str:
    venue = venue_of(run.params["skill"])
    times = f" {row['times']} ticks until {iso(row['until'])}" if row["times"] > 1 else ""
    intent = "" if row["outcome"] == "noop" else f" {one_line(venue.describe_intent(row), 160)}"
    code = f" by {row['code']}" if row["code"] else ""
    why = f" {render.fence(row['reason'], 160)}" if row["reason"] else ""
    flags = f" ({', '.join(row['flags'])})" if row["flags"] else ""
    more = _of_record(context, run, row["seq"], venue.decision().tool)
    return f"record {row['seq']} {iso(row['tick_at'])} {row['outcome']}{code}{times}{intent}{flags}{why}{more}"


def _of_record(context: ReadContext, run: Run, seq: int, decides: str) -> str:
    """The tools that were called and the equity before a decision: what the index does not hold."""
    record = next(iter(journal_of(context.workspace, run).records(seq)), None)
    if record is None or record.kind != "tick":
        return ""
    body = record.body()
    calls = [call["name"] for step in body["steps"] for call in step["calls"] if call["name"] != decides]
    called = f" called {', '.join(one_line(name, 60) for name in calls[:6])}" if calls else ""
    equity = body["before"].get("equity_usd", body["before"].get("equity"))
    return called if equity is None else f"{called} equity {render.amount(Decimal(equity))}"


def explain_decision(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """The prompt, the steps, the proposal, the verdict and the receipts of one tick."""
    run = context.run(arguments.get("run", ""))
    explanation, values = explain(context.workspace, run, arguments.get("tick") or FIRST_REFUSED)
    codes = [proposal["code"] for proposal in values.get("proposals") or () if proposal["outcome"] == "refused"]
    tick = f"[run {run.id} tick {values['tick_at']}]"
    return ToolFinding(explanation, [tick, *(f"{tick[:-1]} rule {code}]" for code in codes if code)])


def refusals_by_rule(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """Every rule that refused something: how often, what it means, the first and the last time."""
    run = context.run(arguments.get("run", ""))
    meanings = venue_of(run.params["skill"]).rule_meanings()
    index = context.index(run)
    ticks_by_code: dict[str, list[Instant]] = {}
    for number in index.find({"outcome": "refused"}):
        row = index.row(int(number))
        ticks_by_code.setdefault(row["code"] or "none", []).append(row["tick_at"])
    decisions = len(index.find({"outcome": PROPOSED}))
    total = sum(map(len, ticks_by_code.values()))
    lines, cites = [f"{total} of {decisions} proposals of run {run.id} were refused"], [cite(run.id)]
    for code, ticks in sorted(ticks_by_code.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        meaning = (meanings.get(code) or unknown_rule(code)).meaning
        lines.append(f"{code}: {plural(len(ticks), 'time')}, first {iso(ticks[0])}, last {iso(ticks[-1])}. {meaning}")
        cites.append(cite(run.id, ticks[0], code))
    return ToolFinding("\n".join(lines), cites)


def costs(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """What one run cost, or what was spent by day, skill and model."""
    if arguments.get("run") or (context.about and not arguments.get("workspace")):
        run = context.run(arguments.get("run", ""))
        spent = spend_of(context.workspace, run)
        lines = [
            f"run {run.id} with {one_line(run.model)} paid {_usd(spent['paid_usd'])} USD",
            f"of that for replies requested in advance and not used: {_usd(spent['speculative_waste_usd'])} USD",
            f"saved by stored replies: {_usd(spent['saved_usd'])} USD",
            f"charges that may have been made without a reply: {_usd(spent['uncertain_usd'])} USD",
            *_usage(context, run),
        ]
        return ToolFinding("\n".join(lines), [cite(run.id)])
    rows = spend(context.workspace.database, owner=context.owner)
    lines = [
        f"{iso(row.day_at)[:10]} {one_line(row.skill, 60)} {one_line(row.model, 80)}: "
        f"{exact_text(row.cost_usd)} USD, {plural(row.calls, 'call')}"
        for row in rows[-MOST_COSTS:]
    ]
    total = sum((row.cost_usd for row in rows), ZERO)
    return ToolFinding("\n".join([f"{exact_text(total)} USD in total", *lines]))


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def _usage(context: ReadContext, run: Run) -> list[str]:
    """The tokens of a run, unless it is so long that counting them would take too long."""
    if run.ticks > MOST_COUNTED:
        return []
    tokens_in = tokens_out = calls = 0
    for record in journal_of(context.workspace, run).records():
        if record.kind == "tick":
            body = record.body()
            usage = body["extra"].get("usage") or {}
            tokens_in += usage.get("input_tokens", 0)
            tokens_out += usage.get("output_tokens", 0)
            calls += len(body["steps"])
    return [f"{calls} model replies, {tokens_in} tokens in, {tokens_out} tokens out"]


def skill_of_run(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """The skill that a run was made with."""
    run = context.run(arguments.get("run", ""))
    plain = run.params["skill"]
    document = to_json(read_skill(plain, venue_of(plain).skill_type())).decode()
    return ToolFinding(
        f"skill {one_line(plain.get('name', ''))}, digest {run.params['skill_digest']}\n{document}", [cite(run.id)]
    )


def compare_runs(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """Two runs side by side: inputs, figures and first decisions that differ."""
    first, second = context.run(arguments.get("first", "")), context.run(arguments["second"])
    text = compared(context.workspace, first, second, context.index).text
    return ToolFinding(text, [cite(first.id), cite(second.id)])


def list_data(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
    """The series of market data."""
    del arguments
    return ToolFinding(record_text.data(context.workspace.lake).text)


def _count(about: str, most: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most, "description": about}


_TOOLS: tuple[tuple[str, str, Find, Schema], ...] = (
    (
        "list_runs",
        "List runs, newest first, with skill, model, range, status and result.",
        list_runs,
        schema(
            limit=_count("How many at most; 20 when left out.", MOST_RUNS),
            status={"type": "string", "enum": list(STATUSES), "description": "Only runs with this status."},
        ),
    ),
    (
        "show_run",
        "Show one run: metrics beside buying and holding, caps, refusals by rule, cost, progress, warnings, errors.",
        show_run,
        schema(run=RUN),
    ),
    (
        "list_decisions",
        "List decisions of a run in order of time, with record number, tick, outcome, rule, proposal, tools called, equity.",
        list_decisions,
        schema(
            run=RUN,
            outcome={"type": "string", "enum": list(OUTCOMES), "description": "Only decisions with this outcome."},
            code=text("Only decisions of this rule, such as R3_POSITION_CAP.", 64),
            action=text("Only decisions with this action, such as open_long.", 64),
            symbol=text("Only decisions about this symbol.", 32),
            after=text("Only decisions after this time (UTC), or after -2d before the end of the run.", 40),
            limit=_count("How many at most; 20 when left out.", MOST_DECISIONS),
        ),
    ),
    (
        "explain_decision",
        "Explain one decision: what the agent saw (its prompt), what it called and said, what it proposed, which rule refused "
        "it with limit and use, what happened.",
        explain_decision,
        schema(
            run=RUN,
            tick=text(
                "A tick's time (UTC), -2d before the end of the run, a record's number, or refused for the first refusal (the default).",
                40,
            ),
        ),
    ),
    (
        "refusals_by_rule",
        "Count the refusals of a run by rule, with what each rule means and when it first and last refused.",
        refusals_by_rule,
        schema(run=RUN),
    ),
    (
        "costs",
        "What a run paid, saved and may owe, with its tokens; or, with workspace, what was spent by day, skill and model.",
        costs,
        schema(
            run=RUN,
            workspace={"type": "string", "enum": ["all"], "description": "all: the whole workspace instead of a run."},
        ),
    ),
    ("skill_of_run", "Show the complete skill document that a run was made with.", skill_of_run, schema(run=RUN)),
    (
        "compare_runs",
        "Compare two runs as `pitboss runs compare` does: inputs, figures with intervals and differences, and the first decisions that differ, in words.",
        compare_runs,
        schema(("second",), first=RUN, second=text("The other run's id, the start of it, or `last~1`.", 64, 1)),
    ),
    ("list_data", "List the market data here: venue, kind, symbol, interval, extent, gaps.", list_data, schema()),
)


def record_tools(context: ReadContext) -> dict[str, ChatTool]:
    """The tools over the records of a workspace."""
    return {name: ChatTool(ToolSpec(name, about, arguments), context, find) for name, about, find, arguments in _TOOLS}
