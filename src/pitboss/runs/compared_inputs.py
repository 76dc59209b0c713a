"""What differs between the inputs of runs: venue, skill, model, range, data, and every other field of their requests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.runs.stored import endpoint_text, one_line
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

MOST_CHARS = 80
SHORT_DIGEST = 12
NOT_COMPARED = frozenset(
    {"skill", "model", "from_at", "to_at", "disguise", "max_cost_usd", "price_in", "price_out", "any_price"}
    | {"prompts", "speculate", "max_waste_pct"}
)
"""Fields of a request that are compared under another name, or that no decision depends on."""


def differing_inputs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The inputs that are not the same in all runs, each with its value in every run; None where a run has no such input."""
    inputs = [dict(_inputs(run)) for run in runs]
    names = dict.fromkeys(name for each in inputs for name in each)
    values = {name: [each.get(name) for each in inputs] for name in names}
    return [
        {"name": name, "values": [_text(value) for value in of_runs]}
        for name, of_runs in values.items()
        if any(value != of_runs[0] for value in of_runs[1:])
    ]


def _inputs(run: Run) -> Iterator[tuple[str, Any]]:
    params, skill = run.params, run.params["skill"]
    venue = venue_of(skill)
    yield "venue", venue.name
    yield "model", run.model
    yield "endpoint", endpoint_text(run)
    yield "from", iso(params["from_at"])
    yield "to", iso(params["to_at"])
    yield "data digest", None if run.data_digest is None else run.data_digest[:SHORT_DIGEST]
    for field in fields(venue.request_type()):
        if field.name not in NOT_COMPARED:
            yield from _leaves(field.name, params.get(field.name))
    yield from _leaves("skill", skill)


def _leaves(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """The single values inside a value. A list is one value."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item)
    else:
        yield name, codec.plain(value)


def _text(value: object) -> str | None:
    """The value in one line. Only the beginning of a long text is shown."""
    if value is None:
        return None
    if isinstance(value, list):
        value = ", ".join(str(item) for item in value)
    text = str(value)
    return one_line(text) if len(text) <= MOST_CHARS else f"{one_line(text, MOST_CHARS)} ({len(text)} characters)"
