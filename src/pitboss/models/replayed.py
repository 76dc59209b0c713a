"""`replay/<run id>`: a model that returns the recorded replies of an earlier run, and nothing else.

It is built from the part of the records that digests cover, which two equal runs share byte for byte: a replay needs no
cache, no prompt texts and no provider, and ends in the digest of the run it replays. A reply is found by the digest of the
first prompt of its tick and by the number of replies before it; a request without one is a `ReplayMismatch`.
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
    """The position of a reply: its record and its step. Steps of a reflection are counted after the others."""

    seq: int
    step: int


@dataclass(frozen=True, slots=True)
class _RecordedAnswer:
    seq: int
    tick_at: Instant
    covered: bytes
    part: str = ""
    """The part of the record that holds it: empty, or the reflection."""


class Replayed:
    """The replies of one run, by request."""

    def __init__(self, records: Iterable[Record], run_id: str = "") -> None:
        self.name = f"replay/{run_id}" if run_id else "replay"
        self.calls = 0
        self._entries: dict[str, list[_RecordedAnswer]] = {}
        self._uses: dict[str, int] = {}
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
        """The recorded reply, or the failure that was recorded in its place."""
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

    def position(self, request: ModelRequest) -> AnswerPosition:
        """The position of the reply to a request that has just been made."""
        entry, turn = self._find(request, new=False)
        return AnswerPosition(entry.seq, turn + (len(codec.loads(entry.covered)["steps"]) if entry.part else 0))

    def _find(self, request: ModelRequest, new: bool = True) -> tuple[_RecordedAnswer, int]:
        user = next((message.text for message in request.messages if message.role == "user"), "")
        digest = prompt_sha256((request.system, user))
        turn = sum(message.role == "assistant" for message in request.messages)
        entries = self._entries.get(digest)
        if entries is None:
            raise ReplayMismatch(self._first_difference(digest))
        # A prompt without a time may occur twice: the replies then come in the order of the records.
        if turn == 0 and new:
            self._uses[digest] = self._uses.get(digest, 0) + 1
        entry = entries[(self._uses.get(digest, 1) - 1) % len(entries)]
        self._last = digest, entry.tick_at
        return entry, turn

    def _body(self, entry: _RecordedAnswer) -> dict[str, Any]:
        if self._parsed is None or self._parsed[0] is not entry:
            body = codec.loads_exact(entry.covered)
            self._parsed = entry, body[entry.part] if entry.part else body
        return self._parsed[1]

    def _first_difference(self, digest: str) -> str:
        """The message for a request that the run never made."""
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
    """The text of a call's arguments: they are recorded as JSON, or as raw text where they were not JSON."""
    arguments = call["arguments"]
    if isinstance(arguments, str):
        result = call["result"]
        if len(arguments) == MAX_ARGUMENT_CHARS and f"over {MAX_ARGUMENT_CHARS} characters" in result:
            return arguments + " "  # it was cut there, and must be longer than the limit
        if call["failed"] and "not valid JSON" in result:
            return arguments
    return codec.dumps(codec.number_fragments(arguments)).decode()


def _problem(body: dict[str, Any]) -> str:
    """Why the last reply of a tick was not a decision, or of a reflection not notes, from the text of its record."""
    if "no_notes" in body["flags"]:
        return body["text"]
    match = _NO_DECISION.search(body["text"]) if "no_decision" in body["flags"] else None
    return match[1] if match else ""
