"""Training cutoffs: the last day that a model's training data reaches, and how a period of time lies to it.

The table is `cutoffs.toml`: what publishers state, with the source. A date that a person gives in a setting or an option
takes precedence. A cutoff that is not stated is unknown and never guessed. Nothing here judges a result.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.models.providers import LOCAL, PROGRAMS, REPLAY

Kind = Literal["training", "knowledge", "given"]
Side = Literal["before", "after", "across", "unknown", "not_applicable"]
"""How a range lies to the cutoff."""

UNKNOWN = "unknown"
GIVEN = "given by you"
NOT_LISTED = "no row of the table matches this name"
OWN_FILE = "a file on this machine: its training data is not known here"
REPLAYED = "the replies are those of an earlier run: see the model of that run"

_MAKER = re.compile(r"^([a-z]+\.)+")
"""What Bedrock puts before a name: a region and the maker of the model, as in `us.anthropic.`."""
_DAY = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


@noun
class Cutoff:
    """The cutoff of a model. `until` is the last day that its training reaches; None where it is unknown.

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
        """The first instant after the cutoff."""
        if self.until is None:
            return None
        after = self.until + timedelta(days=1)
        return int(datetime(after.year, after.month, after.day, tzinfo=UTC).timestamp() * 1000)

    def side(self, from_at: Instant, to_at: Instant) -> Side:
        """Whether [from, to) lies before the cutoff, after it, or across it."""
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


def cutoff_of(model: str, override: str | date = "") -> Cutoff:
    """The cutoff of a model by its full name, such as `groq/llama-3.3-70b-versatile`.

    `override` is a date for this model, or the text of the setting `model_cutoffs`.
    """
    if model == "decisions" or model.startswith(PROGRAMS):
        return Cutoff(model, source="not a language model", applies=False)
    own = override if isinstance(override, date) else parse_cutoffs(override).get(model)
    if own is not None:
        return Cutoff(model, own, "given", GIVEN)
    provider, _, name = model.partition("/")
    if provider == REPLAY:
        return Cutoff(model, source=REPLAYED)
    if provider == LOCAL:
        return Cutoff(model, source=OWN_FILE)
    row = matching_row(name)
    return Cutoff(model) if row is None else Cutoff(model, row.until, row.kind, row.source, row.as_of)


def matching_row(name: str) -> CutoffRow | None:
    """The row with the longest pattern that matches a provider's name of a model."""
    last = _MAKER.sub("", name.rpartition("/")[2].lower().removesuffix(":free"))
    matches = [(len(pattern), row) for row in table() for pattern in row.models if fnmatchcase(last, pattern)]
    return max(matches, key=lambda match: match[0])[1] if matches else None


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
    match = _DAY.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError(text)
        first = date(int(match[1]), int(match[2]), int(match[3] or 1))
        if match[3] is None:
            after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        else:
            after = first + timedelta(days=1)  # the first day after a cutoff must exist
        return after - timedelta(days=1)
    except (ValueError, OverflowError):
        raise UserError(
            f"{text.strip()!r} is not a day for a cutoff", "write 2025-07-31, or 2025-07 for its end"
        ) from None


def parse_cutoffs(text: str) -> Mapping[str, date]:
    """The setting: `groq/llama-3.3-70b-versatile=2023-12, llm/mine=2025-01-31`."""
    days: dict[str, date] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, sign, day = entry.rpartition("=")
        if not sign or not name.strip():
            raise UserError(f"setting model_cutoffs: {entry!r} is not name=day", "for example llm/mine=2025-01-31")
        days[name.strip()] = read_day(day)
    return days
