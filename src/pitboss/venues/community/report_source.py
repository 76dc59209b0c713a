"""Build the page of a stored community run from its records, its last state and its scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.core.intent import sealed_intent
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.report.shell import ReportPage
from pitboss.runs.report import shared_report, with_rows
from pitboss.runs.stored import journal_of, shown_records
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run
from pitboss.venues.community.action_text import NO_NAMES, Names, call_text, describe_action, short_hex
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.intents import ACTION_FIELDS, read_action
from pitboss.venues.community.panels import CommunityReport, compose
from pitboss.venues.community.panels.source import ActionMark, SentTransaction, ThreadText
from pitboss.venues.community.plain_text import eth_text, plain_text
from pitboss.venues.community.rule_book import action_content
from pitboss.venues.community.scenario import Scenario, read_scenario
from pitboss.venues.community.scenario_file import shipped_scenario
from pitboss.venues.community.score import ReportedBugs, reported_bugs
from pitboss.venues.community.simulated_world import SimulatedWorld
from pitboss.venues.community.transcript import transcript

_FIELDS = ("action", "communitySlug", *{name for pair in ACTION_FIELDS.values() for names in pair for name in names})
ASSUMPTIONS = (
    "The forum is a scenario: other participants and the owner act at the times written in it, whatever the agent does.",
    "Contracts answer as the scenario says. Gas costs 1 gwei, and every transaction is mined at once.",
    "A report is about a planted bug if it has a word of every group of the bug's evidence.",
)


def page_of(workspace: Workspace, run: Run) -> ReportPage:
    """The page of a run."""
    return compose(build_community_report(workspace, run))


def build_community_report(workspace: Workspace, run: Run) -> CommunityReport:
    """Collect everything the page shows of a run."""
    is_live = bool(run.params.get("mode"))
    rows: list[dict[str, Any]] = []
    venue = venue_of(run.params["skill"])
    ledger = venue.read_ledger(with_rows(shown_records(workspace, run), rows))
    shared = shared_report(workspace, run, venue, ledger, rows)
    world = _last_world(journal_of(workspace, run).latest_state())
    scenario = None if is_live else read_scenario(run.params.get("scenario") or shipped_scenario())
    threads = transcript(world)
    names = _names(world, threads)
    sent = {receipt.order_id: receipt for receipt in ledger.receipts if receipt.kind == "filled"}
    reports = reported_bugs(ledger.receipts)
    shown, marks, calls = _actions(rows, names, sent, reports)
    page = replace(
        shared,
        document={**shared.document, **(_period(rows) if is_live else {})},
        decisions=shown,
        assumptions=[*([] if is_live else ASSUMPTIONS), *shared.assumptions],
        live="The agent acted on a forum server; what it wrote and sent is there for others to see." if is_live else "",
    )
    return CommunityReport(
        page,
        "" if world is None else world.handle,
        "" if world is None or world.community is None else str(world.community.get("name") or ""),
        _bugs(scenario),
        reports,
        [_transaction(receipt, names, calls) for receipt in sent.values()],
        marks,
        threads,
    )


def _last_world(stored: tuple[int, Any] | None) -> AgentWorld | None:
    """The world of the last state: with the whole forum in a simulation, else with the community as it was last read."""
    if stored is None:
        return None
    world: Mapping[str, Any] = stored[1]["world"]
    return codec.parse(SimulatedWorld if "forum" in world else AgentWorld, world)


def _period(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The first and the last tick of a live run, whose parameters have only its start."""
    return {"from": iso(rows[0]["tick_at"]), "to": iso(rows[-1]["tick_at"])} if rows else {}


def _bugs(scenario: Scenario | None) -> dict[str, str]:
    return {} if scenario is None else {bug.id: bug.summary for bug in scenario.bugs}


def _names(world: AgentWorld | None, threads: Sequence[ThreadText]) -> Names:
    """Titles of threads by id, and names of contracts by id and by address."""
    if world is None:
        return NO_NAMES
    names = {thread.id: thread.title for thread in threads}
    for contract in world.rows("contracts"):
        names |= {str(contract.get(key)).lower(): str(contract.get("name")) for key in ("address", "id")}
    return names


def _actions(
    rows: Sequence[dict[str, Any]], names: Names, sent: Mapping[str, Receipt], reports: Sequence[ReportedBugs]
) -> tuple[list[dict[str, Any]], list[ActionMark], dict[str, dict[str, Any]]]:
    """Rows of the table of decisions, marks of the chart, and the calls of sent transactions by order id."""
    worths = {report.thread_id: report.worth for report in reports if report.by_agent}
    shown: list[dict[str, Any]] = []
    marks: list[ActionMark] = []
    calls: dict[str, dict[str, Any]] = {}
    for row in rows:
        about = {name: value for name, value in row.items() if name not in _FIELDS}
        if row["outcome"] == "noop":
            shown.append({**about, "action": "Nothing", "reason": row.get("text"), "text": ""})
            continue
        raw = {name: row[name] for name in _FIELDS if name in row}
        key = _key(raw, row["tick_at"])
        receipt = None if row["outcome"] == "refused" else sent.get(key[:16])
        label = describe_action(raw, names, is_sent=receipt is not None)
        if receipt is not None:
            calls[receipt.order_id] = raw
        shown.append(
            {
                **about,
                "action": label,
                "reason": row.get("text") or row.get("body"),
                "text": "",
                "detail": _detail(row, receipt),
            }
        )
        lane, style = _lane(raw, str(row["outcome"]), receipt is not None, worths.get(key[:24]))
        code = f", {row['code']}" if row.get("code") else ""
        marks.append(ActionMark(row["tick_at"], lane, style, f"{label}{code}"))
    return shown, marks, calls


def _key(raw: Mapping[str, Any], tick_at: int) -> str:
    """The key of the action's order; empty if the action is malformed."""
    action, _ = read_action(dict(raw))
    return "" if action is None else sealed_intent(tick_at, action_content(action))[0]


def _detail(row: Mapping[str, Any], receipt: Receipt | None) -> str:
    if receipt is None:
        return str(row.get("detail") or "")
    return f"mined, cost {eth_text(Decimal(receipt.facts.get('cost_wei', ZERO)))}"


def _lane(raw: Mapping[str, Any], outcome: str, is_sent: bool, worth: str | None) -> tuple[str, str]:
    """The lane of the chart and the style of the mark."""
    action = raw.get("action")
    if outcome == "refused":
        return "Refused", "refused"
    if action == "create_thread" and raw.get("threadType") == "REPORT_TO_HUMAN":
        return "Reports", worth or "post"
    if action in ("create_thread", "comment"):
        return "Posts", "post"
    if action == "tx":
        return ("Transactions", "sent") if is_sent else ("Looked at", "read")
    return ("Posts", "post") if action == "set_request_status" else ("Looked at", "read")


def _transaction(receipt: Receipt, names: Names, calls: Mapping[str, Mapping[str, Any]]) -> SentTransaction:
    facts, raw = receipt.facts, calls.get(receipt.order_id, {})
    value = str(raw.get("value") or "0")
    return SentTransaction(
        receipt.at,
        plain_text(names.get(receipt.symbol.lower(), ""), 80) or short_hex(receipt.symbol),
        str(facts.get("function", "")),
        call_text(raw, names) if raw else "",
        Decimal(value) if value.isdecimal() else ZERO,
        Decimal(facts.get("cost_wei", ZERO)),
        str(facts.get("hash", "")),
        facts.get("status", 1) != 0,
    )
