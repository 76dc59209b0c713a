"""A training cutoff as text: for the document of a run, and as sentences for a person."""

from typing import Any

from pitboss.core.instant import Instant
from pitboss.models.cutoffs import GIVEN, Cutoff, Side


def cutoff_record(cutoff: Cutoff, from_at: Instant, to_at: Instant) -> dict[str, Any]:
    """The cutoff as it is stored in the document of a run."""
    return {
        "until": None if cutoff.until is None else cutoff.until.isoformat(),
        "kind": cutoff.kind,
        "source": cutoff.source,
        "as_of": cutoff.as_of or None,
        "range": cutoff.side(from_at, to_at),
        "words": cutoff_text(cutoff, from_at, to_at),
    }


def cutoff_text(cutoff: Cutoff, from_at: Instant, to_at: Instant) -> str:
    """One or two sentences for a person."""
    side = cutoff.side(from_at, to_at)
    if side == "not_applicable":
        return "Training cutoff: not applicable, the decisions are not a language model's."
    if cutoff.until is None:
        return (
            f"Training cutoff of {cutoff.model}: unknown ({cutoff.source}). The model may have read about this period "
            "while it was trained."
        )
    return f"Training cutoff of {cutoff.model}: {_stated(cutoff)}. {_meaning(cutoff, side)}"


def _stated(cutoff: Cutoff) -> str:
    if cutoff.kind == "given":
        return f"{cutoff.until}, {GIVEN}"
    basis = "its training data ends there" if cutoff.kind == "training" else "the stated end of its knowledge"
    return f"{cutoff.until}, {basis} ({cutoff.source}; as of {cutoff.as_of})"


def _meaning(cutoff: Cutoff, side: Side) -> str:
    text = f"The whole range lies {side} it"
    if side == "before":
        return f"{text}: a good result can be memory."
    if side == "across":
        text = "The range lies across it: what comes before it can be memory"
    elif cutoff.kind != "knowledge":
        return f"{text}: if that is right, the model has not read about it in its training."
    further = ". The training data itself may reach some months further." if cutoff.kind == "knowledge" else "."
    return text + further
