"""Parse the decision out of a reply: valid, malformed, repeated, contradictory or missing.

Identical proposals in one reply count once; different ones are a conflict, so that the order of calls in a confused
or hijacked reply never decides. The model gets an error message for a malformed proposal and for every way of giving
none. If the decision was requested as text, the text must hold exactly one JSON object: two are an error, not a
choice.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.intent import Step, ToolResult
from pitboss.core.noun import noun
from pitboss.core.ports import ModelReply, ToolCall

RECORDED = "recorded"
MAX_ARGUMENT_CHARS = 16_000
MAX_PROBLEM_CHARS = 500

CUT = "the reply was cut off at its limit of tokens; be shorter"
EMPTY = "the reply was empty"
TEXT = "the reply was text, not a call"
NOT_JSON = "the arguments are not valid JSON"
LONG = f"the arguments are over {MAX_ARGUMENT_CHARS} characters"

_THOUGHT = re.compile(r"\s*<think(?:ing)?>")
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>")
_SCANNER = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=codec.distinct_keys)
"""Finds the end of an object; the codec, which is strict about numbers, then parses it."""


@noun
class ParsedDecision:
    """The decision in a reply.

    `results` maps the position of each terminal call to the tool result that the model receives. `problem` is the
    message if the reply has no call to answer, `why` its short form for the record. `is_prose` is set for a text that
    the venue takes as a decision to do nothing.
    """

    proposal: Any = None
    conflict: bool = False
    problem: str = ""
    results: dict[int, str] = field(default_factory=dict[int, str])
    malformed: frozenset[int] = frozenset()
    why: str = ""
    is_prose: bool = False


def read_calls(reply: ModelReply, decision_format: DecisionFormat) -> ParsedDecision:
    """The decision among the calls of a reply. A malformed call next to a valid one is a conflict, too."""
    if not reply.calls and decision_format.read_text is not None and reply.text.strip():
        return _read_venue_text(reply, decision_format)
    results: dict[int, str] = {}
    malformed: set[int] = set()
    different: set[bytes] = set()
    proposal: Any = None
    for index, call in enumerate(reply.calls):
        if call.name != decision_format.tool:
            continue
        raw, problems = _read(call.arguments or "{}", decision_format)
        content = call.arguments.encode("utf-8", "replace")
        different.add(content if raw is None else codec.dumps(codec.number_fragments(raw)))
        if problems:
            malformed.add(index)
            # A truncated call is not a formatting mistake of the model: report the truncation.
            results[index] = f"invalid proposal: {'; '.join([*problems, *_truncation(reply)])}"
        else:
            results[index] = RECORDED
            proposal = raw
    if proposal is not None and len(different) > 1:
        return ParsedDecision(conflict=True, results=results, malformed=frozenset(malformed))
    if proposal is not None:
        return ParsedDecision(proposal, results=results)
    why = next(iter(results.values()), "") or _why_no_decision(reply)
    lead = "You did not call a tool." if why == TEXT else f"{_capitalised(why)}."
    problem = f"{lead} Call {decision_format.tool} to decide; {decision_format.idle} is a valid action."
    return ParsedDecision(None, False, problem, results, frozenset(malformed), why)


def read_text(reply: ModelReply, decision_format: DecisionFormat) -> ParsedDecision:
    """The decision in a reply that was requested as JSON text. A call of the tool is accepted, too."""
    if any(call.name == decision_format.tool for call in reply.calls):
        return read_calls(reply, decision_format)
    if decision_format.read_text is not None and reply.text.strip():
        return _read_venue_text(reply, decision_format)
    json_objects = objects(reply.text)
    if json_objects is not None and len(json_objects) == 1:
        raw, problems = _read(json_objects[0], decision_format)
        if not problems:
            return ParsedDecision(raw)
        why = f"invalid proposal: {'; '.join(problems)}"
    elif json_objects:
        why = "the reply holds several different JSON objects"
    elif json_objects is None:
        why = "; ".join(["the reply holds no JSON object that can be read", *_truncation(reply)])
    else:
        why = _why_no_decision(reply)
        why = "the reply was text, not a JSON object" if why == TEXT else why
    return ParsedDecision(problem=f"{_capitalised(why)}. {ask(decision_format)}", why=why)


def _read_venue_text(reply: ModelReply, decision_format: DecisionFormat) -> ParsedDecision:
    """The decision in a text reply, as the venue reads it. A reply that was cut off is no decision."""
    assert decision_format.read_text is not None
    if reply.finish_reason == "length" or reply.problem:
        why = _why_no_decision(reply)
    else:
        decision = decision_format.read_text(reply.text)
        if decision.is_prose:
            return ParsedDecision(is_prose=True)
        problems = decision.problems or tuple(decision_format.read(decision.raw)[1])
        if not problems:
            return ParsedDecision(decision.raw)
        why = f"invalid decision: {'; '.join(problems)}"
    return ParsedDecision(problem=f"{_capitalised(why)}. {ask(decision_format)}", why=why)


def ask(decision_format: DecisionFormat) -> str:
    """The instruction that requests a decision as text."""
    return f"Answer with one JSON object, the arguments of {decision_format.tool}, and nothing else; {decision_format.idle} is a valid action."


def objects(text: str) -> list[str] | None:
    """The distinct JSON objects in a text, without thinking, fences and surrounding prose. Stops after two.

    None if a brace opens something that is not JSON, because its meaning is unknown.
    """
    texts: dict[bytes, str] = {}
    text = _without_thoughts(text)
    start = text.find("{")
    while start >= 0 and len(texts) < 2:
        try:
            value, end = _SCANNER.raw_decode(text, start)
        except (ValueError, ArithmeticError, RecursionError):
            return None
        texts.setdefault(codec.dumps(codec.number_fragments(value)), text[start:end])
        start = text.find("{", end)
    return list(texts.values())


def step_of(reply: ModelReply, results: Sequence[ToolResult]) -> Step:
    """A reply and the results of its calls, in the form that records store."""
    return Step(
        codec.printable(reply.text),
        tuple(results),
        reply.usage,
        reply.finish_reason,
        reply.latency_ms,
        reply.provider_id,
        reply.model,
        reply.cost_usd,
        reply.saved_usd,
        reply.rejected_settings,
    )


def stored_arguments(call: ToolCall) -> Any:
    """Arguments in stored form: parsed if they are JSON of acceptable length, else the raw text, truncated."""
    if len(call.arguments) <= MAX_ARGUMENT_CHARS:
        try:
            return codec.number_fragments(codec.loads_exact(call.arguments or "{}"))
        except (ValueError, RecursionError):
            pass
    return codec.printable(call.arguments[:MAX_ARGUMENT_CHARS])


def _without_thoughts(text: str) -> str:
    """The text without the thinking that some models write into their reply; empty if the thinking does not end.

    Some chat templates open the thinking themselves, so that the text holds only its end.
    """
    while _THOUGHT.match(text):
        end = _THOUGHT_ENDS.search(text)
        text = "" if end is None else text[end.end() :]
    if not text.lstrip().startswith("{") and (end := _THOUGHT_ENDS.search(text)):
        text = text[end.end() :]
    return text


def _read(arguments: str, decision_format: DecisionFormat) -> tuple[Any, list[str]]:
    """The value and everything that is wrong with it; None if there is no value."""
    if len(arguments) > MAX_ARGUMENT_CHARS:
        return None, [LONG]
    try:
        raw = codec.loads_exact(arguments)
        return raw, decision_format.read(raw)[1]
    except codec.DuplicateKey as error:
        return None, [str(error)]
    except (ValueError, RecursionError):
        return None, [NOT_JSON]


def _why_no_decision(reply: ModelReply) -> str:
    """Why a reply contains no decision."""
    if reply.finish_reason == "length":
        return CUT
    if reply.problem:
        return codec.printable(reply.problem.strip().rstrip(".")[:MAX_PROBLEM_CHARS])
    if reply.calls:
        return f"the reply called {codec.printable(reply.calls[0].name)[:80]}, which decides nothing"
    return TEXT if reply.text.strip() else EMPTY


def _truncation(reply: ModelReply) -> list[str]:
    return [CUT] if reply.finish_reason == "length" else []


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
