"""A file of decisions in place of a model: one `{"tick_at": ISO, "proposal": {…}}` a line.

Instants and field names are checked before a run starts, and an error names its line. The values of fields are judged by
the engine at their tick, like those of any proposal.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.core.suggestion import suggestion

_LINE_KEYS = ("tick_at", "proposal")
_EXAMPLE = '{"tick_at": "2025-06-01T12:00:00Z", "proposal": {"action": "close", "symbol": "BTC", "reason": "…"}}'


class DecisionFile:
    """Answers each tick with the proposals of its lines, in file order; a tick without a line is a hold."""

    name = "decisions"

    def __init__(self, proposals: Mapping[Instant, tuple[Any, ...]]) -> None:
        self.proposals = dict(sorted(proposals.items()))

    @classmethod
    def read(cls, data: bytes, name: str, ticks: Container[Instant], decision_format: DecisionFormat) -> "DecisionFile":
        """Read the bytes of a file; `name` is its name in messages."""
        return cls(_read(data, name, ticks, decision_format))

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """The decision of this tick."""
        del judge
        return Decision(self.proposals.get(observation.at, ()))

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> "DecisionPlan":
        """Which ticks have a proposal."""
        del market, symbols, interval
        ticks_with_proposal = np.fromiter(self.proposals, np.int64, len(self.proposals))
        return DecisionPlan(np.flatnonzero(np.isin(tick_at, ticks_with_proposal)).tolist(), len(tick_at))


class DecisionPlan:
    """The ticks that have a line."""

    def __init__(self, at: list[int], count: int) -> None:
        self._at = at
        self._count = count

    def next_tick(self, index: int, world: Any) -> int:
        """The next tick in the file."""
        del world
        position = bisect_left(self._at, index)
        return self._at[position] if position < len(self._at) else self._count


def _read(
    data: bytes, name: str, ticks: Container[Instant], decision_format: DecisionFormat
) -> dict[Instant, tuple[Any, ...]]:
    proposals: dict[Instant, tuple[Any, ...]] = {}
    # Split as bytes: an unescaped U+2028 in a reason is a character of JSON, not the end of a line.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            location = f"{name} line {number}"
            at, proposal = _entry(line, location, decision_format)
            if at not in ticks:
                raise UserError(
                    f"{location}: {iso(at)} is not a tick of this run",
                    "tick_at must be a multiple of schedule.every inside [--from, --to)",
                )
            intents = _intents(proposal, decision_format)
            if intents:
                proposals[at] = (*proposals.get(at, ()), *intents)
    return proposals


def _intents(proposal: Any, decision_format: DecisionFormat) -> tuple[Any, ...]:
    """The intents of a line; none of a hold, which is null, a well-formed no-op, or an empty list of intents."""
    if proposal is None:
        return ()
    parsed, _ = decision_format.read(proposal)
    if parsed is None:  # refused at its tick, with the reason
        return (proposal,)
    if decision_format.list_key:
        return decision_format.intents(proposal)
    return () if parsed.action == decision_format.idle else (proposal,)


def _entry(line: bytes, location: str, decision_format: DecisionFormat) -> tuple[Instant, Any]:
    try:
        entry = codec.loads_exact(line.decode())
    except UnicodeDecodeError:
        raise UserError(f"{location}: not UTF-8 text", "save the file as UTF-8") from None
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise UserError(
            f"{location}: not valid JSON ({_first_line(error)})", f"one object a line: {_EXAMPLE}"
        ) from None
    if not isinstance(entry, dict):
        raise UserError(f"{location}: not a JSON object", f"one object a line: {_EXAMPLE}")
    _require_known_keys(entry, _LINE_KEYS, location, "")
    for key in _LINE_KEYS:
        if key not in entry:
            raise UserError(f"{location}: {key} is missing", f"one object a line: {_EXAMPLE}")
    proposal = entry["proposal"]
    if isinstance(proposal, dict):
        _require_known_keys(proposal, _proposal_keys(proposal, decision_format), location, "proposal.")
    return _instant(entry["tick_at"], location), proposal


def _proposal_keys(proposal: Mapping[str, Any], decision_format: DecisionFormat) -> Sequence[str]:
    """The keys of a whole decision; without its list of intents the proposal is one intent, as `runs export` writes it."""
    if decision_format.list_key in proposal:
        return decision_format.keys
    return tuple(dict.fromkeys((*decision_format.keys, *decision_format.intent_keys)))


def _instant(value: Any, location: str) -> Instant:
    if not isinstance(value, str):
        raise UserError(f"{location}: tick_at is not text", "write it as 2025-06-01T12:30:00Z (UTC)")
    try:
        return parse_instant(value)
    except UserError as error:
        raise UserError(f"{location}: {error.message}", error.hint) from None
    except OverflowError:
        raise UserError(f"{location}: cannot read {value!r} as a time", "write it as 2025-06-01T12:30:00Z") from None


def _require_known_keys(entry: Mapping[str, Any], keys: Iterable[str], location: str, prefix: str) -> None:
    for key in entry:
        if key not in keys:
            hint = suggestion(key, keys, "known keys:")
            raise UserError(f"{location}: unknown key {prefix}{key[:60]!r}", hint)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
