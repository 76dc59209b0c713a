"""Reading the decision out of a reply: valid, malformed, repeated, contradictory or missing.

Identical proposals in one reply count once; different ones are a conflict, so that a confused or hijacked reply never
gets to pick by order. A malformed one is told to the model.
"""

from dataclasses import field
from typing import Any

from pitboss.core import codec
from pitboss.core.noun import noun
from pitboss.core.ports import ModelReply
from pitboss.venues.perp.intents import read

RECORDED = "recorded"
MAX_ARGUMENT_CHARS = 16_000


@noun
class Answer:
    """What a reply decided. `told` maps the place of each terminal call to what the model hears about it."""

    proposal: Any = None
    conflict: bool = False
    problem: str = ""
    told: dict[int, str] = field(default_factory=dict[int, str])
    malformed: frozenset[int] = frozenset()


def read_answer(reply: ModelReply, terminal: str) -> Answer:
    """The decision in a reply, if there is one. A malformed call beside a valid one is a conflict too."""
    told: dict[int, str] = {}
    malformed: set[int] = set()
    different: set[bytes] = set()
    proposal: Any = None
    for place, call in enumerate(reply.calls):
        if call.name != terminal:
            continue
        raw: Any = None
        try:
            if len(call.arguments) > MAX_ARGUMENT_CHARS:
                problems = [f"the arguments are over {MAX_ARGUMENT_CHARS} characters"]
            else:
                raw = codec.loads_exact(call.arguments or "{}")
                problems = read(raw)[1]
        except (ValueError, RecursionError):
            problems = ["the arguments are not valid JSON"]
        content = call.arguments.encode("utf-8", "replace")
        different.add(content if raw is None else codec.dumps(codec.number_fragments(raw)))
        if problems:
            malformed.add(place)
            told[place] = f"invalid proposal: {'; '.join(problems)}"
        else:
            told[place] = RECORDED
            proposal = raw
    if proposal is not None and len(different) > 1:
        return Answer(conflict=True, told=told, malformed=frozenset(malformed))
    problem = f"You did not call a tool. Call {terminal} to decide; no_op is a valid action."
    return Answer(proposal, False, problem, told, frozenset(malformed))
