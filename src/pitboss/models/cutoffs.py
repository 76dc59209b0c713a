"""Until when the text that a model was trained on reaches, and on which side of that a stretch of time lies.

The table is `cutoffs.toml`: what publishers say, with where they say it. A person may know better and say so in a
setting or an option; that wins. What nobody has said is unknown and never guessed. Nothing here judges a result.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.models.providers import LOCAL, PROGRAMS, REPLAY

Kind = Literal["training", "knowledge", "given"]
Side = Literal["before", "after", "across", "unknown", "not_applicable"]
"""Where a range lies, seen from the cutoff."""

UNKNOWN = "unknown"
GIVEN = "given by you"
NOT_LISTED = "no row of our table fits this name"
OWN_FILE = "a file of this machine: what it was trained on nobody here can say"
REPLAYED = "the answers are those of an earlier run: look at the model of that one"

_DAY = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


@noun
class Cutoff:
    """What is known about a model. `until` is the last day that its training reaches; None where nobody says.

    Programs and files of decisions were not trained on anything: `applies` is False.
    """

    model: str
    until: date | None = None
    kind: Kind | None = None
    source: str = NOT_LISTED
    as_of: str = ""
    applies: bool = True

    @property
    def ends_at(self) -> Instant | None:
        """The first instant after it."""
        if self.until is None:
            return None
        after = self.until + timedelta(days=1)
        return int(datetime(after.year, after.month, after.day, tzinfo=UTC).timestamp() * 1000)

    def side(self, from_at: Instant, to_at: Instant) -> Side:
        """Whether [from, to) lies before it, after it, or across it."""
        ends_at = self.ends_at
        if not self.applies:
            return "not_applicable"
        if ends_at is None:
            return "unknown"
        return "before" if to_at <= ends_at else "after" if from_at >= ends_at else "across"


@noun
class CutoffRow:
    """One row of the table."""

    models: tuple[str, ...]
    until: date | None
    kind: Kind | None
    source: str
    as_of: str


def cutoff_of(model: str, given: str | date = "") -> Cutoff:
    """What is known about a model by its whole name, such as `groq/llama-3.3-70b-versatile`.

    `given` is a date that holds for this model, or the text of the setting `model_cutoffs`.
    """
    if model == "decisions" or model.startswith(PROGRAMS):
        return Cutoff(model, source="not a language model", applies=False)
    own = given if isinstance(given, date) else read_given(given).get(model)
    if own is not None:
        return Cutoff(model, own, "given", GIVEN)
    provider, _, rest = model.partition("/")
    if provider == REPLAY:
        return Cutoff(model, source=REPLAYED)
    if provider == LOCAL:
        return Cutoff(model, source=OWN_FILE)
    row = find(rest)
    return Cutoff(model) if row is None else Cutoff(model, row.until, row.kind, row.source, row.as_of)


def find(name: str) -> CutoffRow | None:
    """The row whose pattern fits a provider's own name of a model best."""
    last = name.rpartition("/")[2].lower().removesuffix(":free")
    fitting = [(len(pattern), row) for row in table() for pattern in row.models if fnmatchcase(last, pattern)]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


@cache
def table() -> Sequence[CutoffRow]:
    """Every row, in the order of the file."""
    document = tomllib.loads(files("pitboss.models").joinpath("cutoffs.toml").read_text("utf-8"))
    return tuple(
        CutoffRow(
            tuple(row["models"]),
            None if row["until"] == UNKNOWN else read_day(row["until"]),
            row.get("kind"),
            row["source"],
            row["as_of"],
        )
        for row in document["cutoff"]
    )


def read_day(text: str) -> date:
    """`2025-07-14`, or `2025-07` for the last day of that month."""
    found = _DAY.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError(text)
        first = date(int(found[1]), int(found[2]), int(found[3] or 1))
        if found[3] is not None:
            return first
        return date(first.year + first.month // 12, first.month % 12 + 1, 1) - timedelta(days=1)
    except (ValueError, OverflowError):
        raise UserError(
            f"{text.strip()!r} is no day for a cutoff", "write 2025-07-31, or 2025-07 for its end"
        ) from None


def read_given(text: str) -> Mapping[str, date]:
    """The setting: `groq/llama-3.3-70b-versatile=2023-12, llm/mine=2025-01-31`."""
    found: dict[str, date] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, sign, day = one.rpartition("=")
        if not sign or not name.strip():
            raise UserError(f"setting model_cutoffs: {one!r} is not name=day", "for example llm/mine=2025-01-31")
        found[name.strip()] = read_day(day)
    return found


# In words -------------------------------------------------------------------------------------------------------------


def told(cutoff: Cutoff, from_at: Instant, to_at: Instant) -> dict[str, Any]:
    """As it stands in the document of a run."""
    return {
        "until": None if cutoff.until is None else cutoff.until.isoformat(),
        "kind": cutoff.kind,
        "source": cutoff.source,
        "as_of": cutoff.as_of or None,
        "range": cutoff.side(from_at, to_at),
        "words": words(cutoff, from_at, to_at),
    }


def words(cutoff: Cutoff, from_at: Instant, to_at: Instant) -> str:
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
    what = "its training data ends there" if cutoff.kind == "training" else "its knowledge is said to reach so far"
    return f"{cutoff.until}, {what} ({cutoff.source}; as of {cutoff.as_of})"


def _meaning(cutoff: Cutoff, side: Side) -> str:
    said = f"The whole range lies {side} it"
    if side == "before":
        return f"{said}: a good result can be memory."
    if side == "across":
        said = "The range lies across it: what comes before it can be memory"
    elif cutoff.kind != "knowledge":
        return f"{said}: if that is right, the model has not read about it in its training."
    further = ". The training data itself may reach some months further." if cutoff.kind == "knowledge" else "."
    return said + further
