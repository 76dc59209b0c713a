"""The facts of a record by name, for comparing two runs of the same ticks.

Equity curves are compared point by point, because how a curve is packed depends on the columns of the whole range.
"""

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from pitboss.core import codec, curve
from pitboss.core.snapshot import Record
from pitboss.core.state import State

PROMPT, DECISION, VERDICTS, ACCOUNT = "prompt", "decision", "verdicts", "account"
EVENTS, REFLECTION, HOLDS, STATE = "receipts and equity", "reflection", "holds", "state after the tick"
SECTION, TOOL = "section ", "tool "
HEADING = "## "
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def facts(record: Record, digests: Mapping[str, int]) -> dict[str, str]:
    """Everything that a record says about its tick, as text by name.

    `digests` are those of the records of the same run, with their numbers. A tool may show one, and it depends on how a
    curve is packed, so numbers are compared in their place.
    """
    body, extra = codec.loads(record.covered), codec.loads(record.extra)
    texts = {EVENTS: _text([body.get("receipts", []), list(curve.points(body.get("equity", [])))])}
    if record.kind != "tick":
        return texts | {HOLDS: _text([record.tick_at, body["until_at"], body["ticks"], body["flags"]])}
    steps = body["steps"]
    spoken = [[step["text"], [[call["name"], call["arguments"]] for call in step["calls"]]] for step in steps]
    texts |= {
        DECISION: _text([record.tick_at, body["text"], body["proposals"], body["flags"], spoken]),
        VERDICTS: _text(body["verdicts"]),
        ACCOUNT: _text([body["before"], body["after"]]),
    }
    if body.get("prompt_sha256"):
        prompt = extra.get("prompt")
        texts[PROMPT] = "\n".join((body["prompt_sha256"], *(prompt or ())))
        if prompt:
            texts |= _sections(prompt[1])
    if REFLECTION in body:
        texts[REFLECTION] = _text([body[REFLECTION], extra.get(REFLECTION)])
    for call in (call for step in steps for call in step["calls"]):
        result = _DIGEST.sub(lambda match: _number(match[0], digests), call["result"])
        line = f"{_text(call['arguments'])}\n{'failed: ' if call['failed'] else ''}{result}"
        name = f"{TOOL}{call['name']}"
        texts[name] = f"{texts[name]}\n{line}" if name in texts else line
    return texts


def failed_tools(record: Record) -> set[str]:
    """The tools of a tick of which every call failed."""
    outcomes: dict[str, list[bool]] = {}
    for step in codec.loads(record.covered).get("steps", ()):
        for call in step["calls"]:
            outcomes.setdefault(call["name"], []).append(call["failed"])
    return {name for name, failed in outcomes.items() if all(failed)}


def state_text(state: State) -> str:
    """A state without its position in the chain of digests."""
    return codec.dumps(state.after(prev_digest="", seq=0)).decode()


def first_difference(original: str, copy: str) -> tuple[str, str]:
    """The first line of each text in which they differ; digests are skipped where the text differs too."""
    lines, copy_lines = original.split("\n"), copy.split("\n")
    if len(lines) > 1 and len(copy_lines) > 1 and lines[1:] != copy_lines[1:]:
        lines, copy_lines = lines[1:], copy_lines[1:]
    for line, copy_line in zip_longest(lines, copy_lines, fillvalue="(nothing)"):
        if line != copy_line:
            return _excerpt(line, copy_line), _excerpt(copy_line, line)
    return "", ""


def _number(digest: str, digests: Mapping[str, int]) -> str:
    return f"(record {digests[digest]})" if digest in digests else digest


def _sections(user: str) -> dict[str, str]:
    """The sections of a user message by their headings."""
    sections: dict[str, str] = {}
    for part in f"\n{user}".split(f"\n{HEADING}")[1:]:
        heading, _, text = part.partition("\n")
        sections[f"{SECTION}{heading.partition('(')[0].strip()[:40]}"] = f"{heading}\n{text}"
    return sections


def _text(value: Any) -> str:
    return codec.dumps(codec.number_fragments(value)).decode()


def _excerpt(line: str, reference: str) -> str:
    """The part of a long line around the first character that differs from another line."""
    pairs = enumerate(zip(line, reference, strict=False))
    index = next((index for index, (a, b) in pairs if a != b), min(len(line), len(reference)))
    start = max(0, index - 60)
    excerpt = line[start : index + 100]
    return ("…" if start else "") + excerpt + ("…" if index + 100 < len(line) else "")
