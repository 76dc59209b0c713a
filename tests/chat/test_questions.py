"""Twenty questions with known answers about a stored run, through a model that uses the tools."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chat.scripted_chat import Answering, ask_question, tool_using_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.chat.context import ReadContext
from pitboss.core.instant import iso
from pitboss.runs.stored import journal_of
from pitboss.store.runs import Run


class ExpectedFacts:
    """The facts that answers are compared with, read from the records without the chat."""

    def __init__(self, workspace: Workspace, run: Run, other: Run) -> None:
        self.run, self.other, self.metrics = run, other, run.metrics or {}
        self.bodies = [
            {**record.body(), "tick_at": record.tick_at, "seq": record.seq}
            for record in journal_of(workspace, run).records()
            if record.kind == "tick"
        ]
        self.refused = [body for body in self.bodies if any(one["outcome"] == "refused" for one in body["verdicts"])]
        self.accepted = [body for body in self.bodies if any(one["outcome"] == "allowed" for one in body["verdicts"])]
        self.first = self.refused[0]

    def tick(self, body: dict[str, Any]) -> str:
        return iso(body["tick_at"])

    def beyond(self) -> str:
        """By how much the first refusal was beyond its limit."""
        verdict = self.first["verdicts"][0]
        (margin,) = [margin for margin in verdict["margins"] if margin["code"] == verdict["code"]]
        return f"${-float(margin['left']):,.2f} beyond"

    def called(self) -> str:
        """The first tool that was called besides the decision."""
        names = [call["name"] for body in self.bodies for step in body["steps"] for call in step["calls"]]
        return next(name for name in names if name != "propose_order")


@pytest.fixture(scope="module")
def expected_facts(workspace: Workspace, run: Run, other_run: Run) -> ExpectedFacts:
    return ExpectedFacts(workspace, run, other_run)


def answer_from_match(pattern: str) -> Answering:
    """An answer with what stands there, and the first citation."""

    def answer(results: str) -> str:
        found = re.search(pattern, results)
        assert found, results
        cites = re.findall(r"\[run [^\]]+\]", results)
        return f"It is {found[1]} {cites[0]}." if cites else f"It is {found[1]}."

    return answer


@dataclass(frozen=True)
class QuestionCase:
    """A question, the tool call that answers it, and the text that the answer must contain."""

    question: str
    tool: str
    arguments: Callable[[ExpectedFacts], dict[str, Any]]
    answer: Answering
    holds: Callable[[ExpectedFacts], str]


def no_arguments(expected_facts: ExpectedFacts) -> dict[str, Any]:
    del expected_facts
    return {}


def money(amount: object) -> str:
    return f"{float(str(amount)):.2f}"


QUESTIONS = (
    QuestionCase("Why was the first one refused?", "explain_decision", no_arguments, answer_from_match(r"refused by: (\w+)"), lambda t: t.first["verdicts"][0]["code"]),
    QuestionCase("How far beyond the limit was it?", "explain_decision", no_arguments, answer_from_match(r"in numbers: (limit .+ beyond)"), lambda t: t.beyond()),
    QuestionCase("When was something first refused?", "list_decisions", lambda t: {"outcome": "refused"}, answer_from_match(r"record \d+ (\S+) refused"), lambda t: t.tick(t.first)),
    QuestionCase("What did it cost?", "costs", no_arguments, answer_from_match(r"paid (\S+) USD"), lambda t: "0"),
    QuestionCase("How many tokens did it read?", "costs", no_arguments, answer_from_match(r"(\d+) tokens in"), lambda t: str(sum(body["extra"]["usage"]["input_tokens"] for body in t.bodies))),
    QuestionCase("Which rule refuses most?", "refusals_by_rule", no_arguments, answer_from_match(r"\n(\w+): \d+ times"), lambda t: max(t.metrics["rejections_by_rule"])),
    QuestionCase("How many were refused?", "refusals_by_rule", no_arguments, answer_from_match(r"(\d+ of \d+) proposals"), lambda t: f"{len(t.refused)} of {t.metrics['total_proposed_actions']}"),
    QuestionCase("What did it see at the first tick?", "explain_decision", lambda t: {"tick": t.tick(t.bodies[0])}, answer_from_match(r"it was asked (.{60})"), lambda t: "Time 2025-03-27 00:00 UTC"),
    QuestionCase("What was its equity at the fifth tick?", "get_pnl_summary", lambda t: {"tick": t.tick(t.bodies[4])}, answer_from_match(r'"equity_usd":"([\d.]+)"'), lambda t: money(t.bodies[4]["before"]["equity_usd"])),
    QuestionCase("What was its equity before the tenth decision?", "list_decisions", lambda t: {"limit": 10}, lambda r: f"It is {re.findall(r'equity ([0-9.]+)', r)[9]}", lambda t: money(t.bodies[9]["before"]["equity_usd"])),
    QuestionCase("How many trades did it close?", "show_run", no_arguments, answer_from_match(r"total_trades (\d+)"), lambda t: str(t.metrics["total_trades"])),
    QuestionCase("What was the return?", "show_run", no_arguments, answer_from_match(r"total_return_pct (-?[\d.]+)"), lambda t: f"{t.metrics['total_return_pct']:.6g}"),
    QuestionCase("What would buying and holding have given?", "show_run", no_arguments, answer_from_match(r"total_return_pct \S+ \(buy and hold (-?[\d.]+)"), lambda t: f"{t.run.baselines['buy_and_hold']['total_return_pct']:.6g}"),
    QuestionCase("Which tool did it call first?", "list_decisions", no_arguments, answer_from_match(r"called (\w+)"), lambda t: t.called()),
    QuestionCase("What was decided in the record of the refusal?", "explain_decision", lambda t: {"tick": str(t.first["seq"])}, answer_from_match(r"it asked: (\w+ \w+)"), lambda t: t.first["proposals"][0]["action"].replace("_", " ")),
    QuestionCase("When did it first open something?", "list_decisions", lambda t: {"outcome": "allowed", "limit": 1}, answer_from_match(r"record \d+ (\S+) allowed"), lambda t: t.tick(t.accepted[0])),
    QuestionCase("What leverage did its skill allow?", "skill_of_run", no_arguments, answer_from_match(r'"max_leverage":(\d+)'), lambda t: str(t.run.params["skill"]["risk"]["max_leverage"])),
    QuestionCase("Where do the two runs first differ?", "compare_runs", lambda t: {"second": t.other.id}, answer_from_match(r"first difference: record (\d+)"), lambda t: "0"),
    QuestionCase("Which runs are there?", "list_runs", no_arguments, answer_from_match(r"\n(\w{12}) complete"), lambda t: t.other.id),
    QuestionCase("What data is there for BTC?", "list_data", no_arguments, answer_from_match(r"bars BTC 5m: (\d+) rows"), lambda t: str(12 * 24 * 12)),
    QuestionCase("What were its refusals before the end?", "get_engine_rejections", no_arguments, answer_from_match(r"(\d+) of \d+ decisions were refused"), lambda t: str(len(t.refused))),
    QuestionCase("What was in its account at the refusal?", "get_portfolio", lambda t: {"tick": t.tick(t.first)}, answer_from_match(r"equity\D*([\d.]+)"), lambda t: money(t.first["before"]["equity_usd"])),
)  # fmt: skip


@pytest.mark.parametrize("asking", QUESTIONS, ids=[asking.question for asking in QUESTIONS])
def test_a_question_is_answered_from_the_records_with_a_citation(
    asking: QuestionCase, expected_facts: ExpectedFacts, context: ReadContext
) -> None:
    model = tool_using_model([(asking.tool, asking.arguments(expected_facts))], asking.answer)
    answer = ask_question(context, model, asking.question)
    assert asking.holds(expected_facts) in answer.text
    assert answer.unsupported == (), "no alarm about a number that a tool gave"
    assert len(model.requests) == 2, "the model was not asked to correct itself"
    cited = re.findall(r"\[run [^\]]+\]", answer.text)
    assert [citation.text for citation in answer.citations] == list(dict.fromkeys(cited)), (
        "every citation is found again"
    )
    for citation in answer.citations:
        assert citation.href.startswith(f"/runs/{expected_facts.run.id}") or citation.href.startswith(
            f"/runs/{expected_facts.other.id}"
        )
