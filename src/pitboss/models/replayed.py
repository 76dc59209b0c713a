"""`replay/<run id>`: the recorded answers of an earlier run, and nothing else.

Built from the covered half of its records alone, the half that two honest runs share byte for byte: a replay needs no
cache, no prompt texts and no provider, and ends in the digest of the run it replays. A question is found by the digest of
the prompt it began with and by how many answers it has had; one that is not found is a `ReplayMismatch`, never a guess.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pitboss.agent.loop import MAX_ARGUMENT_CHARS
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, TransientError
from pitboss.core.instant import Instant, iso
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall
from pitboss.core.snapshot import Record, prompt_sha256

_NO_DECISION = re.compile(r"(?:\A|\n)No decision: (.*)\.\Z", re.DOTALL)
_SHOWN = 12
REFLECTION = "reflection"


@dataclass(frozen=True, slots=True)
class AnswerPosition:
    """Where an answer stands: the number of its record and of its step. Steps of a reflection are counted after the others."""

    seq: int
    step: int


@dataclass(frozen=True, slots=True)
class _RecordedAnswer:
    seq: int
    tick_at: Instant
    covered: bytes
    part: str = ""
    """The part of the record that it stands in: a reflection is asked beside the decision."""


class Replayed:
    """The answers of one run, by their questions."""

    def __init__(self, records: Iterable[Record], run_id: str = "") -> None:
        self.name = f"replay/{run_id}" if run_id else "replay"
        self.calls = 0
        self._entries: dict[str, list[_RecordedAnswer]] = {}
        self._asked: dict[str, int] = {}
        self._order: list[tuple[str, Instant]] = []
        self._last: tuple[str, Instant] | None = None
        self._parsed: tuple[_RecordedAnswer, dict[str, Any]] | None = None
        for record in records:
            if record.kind != "tick":
                continue
            body = codec.loads(record.covered)
            for part, digest in (
                (REFLECTION, body.get(REFLECTION, {}).get("prompt_sha256")),
                ("", body.get("prompt_sha256")),
            ):
                if digest is not None:
                    entry = _RecordedAnswer(record.seq, record.tick_at, record.covered, part)
                    self._entries.setdefault(digest, []).append(entry)
                    self._order.append((digest, record.tick_at))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded answer to this question, or the failure that was recorded in its place."""
        self.calls += 1
        entry, turn = self._find(request)
        body = self._body(entry)
        steps = body["steps"]
        if turn < len(steps):
            return _reply(steps[turn], _problem(body) if turn == len(steps) - 1 else "")
        if "model_error" in body["flags"] and turn == len(steps):
            raise TransientError(body["text"])
        raise ReplayMismatch(
            f"{self.name} has {len(steps)} answers for tick {iso(entry.tick_at)} and was asked for number {turn + 1}"
            + ("" if steps else "; it was decided by a program, not by a model")
        )

    def place(self, request: ModelRequest) -> AnswerPosition:
        """Where the answer to a question stands that has just been asked."""
        entry, turn = self._find(request, new=False)
        return AnswerPosition(entry.seq, turn + (len(codec.loads(entry.covered)["steps"]) if entry.part else 0))

    def _find(self, request: ModelRequest, new: bool = True) -> tuple[_RecordedAnswer, int]:
        user = next((message.text for message in request.messages if message.role == "user"), "")
        digest = prompt_sha256((request.system, user))
        turn = sum(message.role == "assistant" for message in request.messages)
        found = self._entries.get(digest)
        if found is None:
            raise ReplayMismatch(self._first_difference(digest))
        # The same prompt may come twice, where it tells no time: then the answers come in the order of the records.
        if turn == 0 and new:
            self._asked[digest] = self._asked.get(digest, 0) + 1
        entry = found[(self._asked.get(digest, 1) - 1) % len(found)]
        self._last = digest, entry.tick_at
        return entry, turn

    def _body(self, entry: _RecordedAnswer) -> dict[str, Any]:
        if self._parsed is None or self._parsed[0] is not entry:
            body = codec.loads_exact(entry.covered)
            self._parsed = entry, body[entry.part] if entry.part else body
        return self._parsed[1]

    def _first_difference(self, digest: str) -> str:
        """What can be told of a question that the run was never asked."""
        lead = f"{self.name} has no answer to this prompt (sha256 {digest[:_SHOWN]}…)"
        if not self._order:
            return f"{lead}: its records hold no prompts at all; it was decided by a program, not by a model"
        later = self._order if self._last is None else self._order[self._order.index(self._last) + 1 :]
        if not later:
            return f"{lead}: its last prompt was that of tick {iso(self._order[-1][1])}"
        return (
            f"{lead}: the first that differs is that of tick {iso(later[0][1])}, where it was asked "
            f"{later[0][0][:_SHOWN]}…; skill, data or settings are not those of that run"
        )


def _reply(step: dict[str, Any], problem: str) -> ModelReply:
    calls = [
        ToolCall(f"replay-{number}", call["name"], _arguments(call)) for number, call in enumerate(step["calls"], 1)
    ]
    return ModelReply(step["text"], tuple(calls), finish_reason=step["finish_reason"], problem=problem)


def _arguments(call: dict[str, Any]) -> str:
    """The text of a call's arguments: recorded as the JSON that they were, or as raw text where they were none."""
    kept = call["arguments"]
    if isinstance(kept, str):
        told = call["result"]
        if len(kept) == MAX_ARGUMENT_CHARS and f"over {MAX_ARGUMENT_CHARS} characters" in told:
            return kept + " "  # it was cut there: what matters is that it was longer
        if call["failed"] and "not valid JSON" in told:
            return kept
    return codec.dumps(codec.number_fragments(kept)).decode()


def _problem(body: dict[str, Any]) -> str:
    """Why the last reply of a tick was no decision, or of a reflection no notes, as its record tells it."""
    if "no_notes" in body["flags"]:
        return body["text"]
    found = _NO_DECISION.search(body["text"]) if "no_decision" in body["flags"] else None
    return found[1] if found else ""
