"""Citations: how an answer refers to a run, a tick and a rule, such as [run 3f9a tick 2025-01-21T04:00Z].

The tools write them beside their results, the model repeats them, and here they are looked up again: one that refers to something
that is recorded becomes a link to a page of this server, any other one stays text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import Instant, iso
from pitboss.runs.explain import find_record
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

MOST = 40
"""Citations of one answer that are looked up."""

PATTERN = re.compile(
    r"\[run ([0-9a-f]{4,64})(?:,? tick ([0-9][0-9T:. +-]{0,38}Z?))?(?:,? record ([0-9]{1,12}))?(?:,? rule ([A-Z][A-Z0-9_]{0,63}))?\]"
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation that refers to something that is recorded. `text` is how it stands in the answer."""

    text: str
    run_id: str
    tick_at: str | None = None
    seq: int | None = None
    rule: str | None = None

    @property
    def href(self) -> str:
        """The place in the app."""
        if self.seq is not None:
            return f"/runs/{self.run_id}#d{self.seq}"
        return f"/runs/{self.run_id}?code={self.rule}" if self.rule else f"/runs/{self.run_id}"

    def plain(self) -> dict[str, object]:
        """As the API sends it."""
        return {
            "text": self.text,
            "href": self.href,
            "run_id": self.run_id,
            "tick_at": self.tick_at,
            "seq": self.seq,
            "rule": self.rule,
        }


def cite(run_id: str, tick_at: Instant | None = None, rule: str = "") -> str:
    """The citation of a run, one of its ticks, or a rule there."""
    tick = "" if tick_at is None else f" tick {iso(tick_at)}"
    return f"[run {run_id}{tick}{f' rule {rule}' if rule else ''}]"


def citations_of(workspace: Workspace, text: str) -> list[Citation]:
    """The citations of a text that refer to something recorded, each once, in their order."""
    return list(_citations(workspace, text))


def _citations(workspace: Workspace, text: str) -> Iterator[Citation]:
    runs: dict[str, Run | None] = {}
    for match in list({match.group(): match for match in PATTERN.finditer(text)}.values())[:MOST]:
        prefix, tick, seq, rule = match.groups()
        if prefix not in runs:
            runs[prefix] = _run(workspace, prefix)
        run = runs[prefix]
        if run is None or (rule and not _has_rule(run, rule)):
            continue
        name = seq or (tick or "").strip().replace(" ", "T")
        if not name:
            yield Citation(match.group(), run.id, rule=rule)
            continue
        try:
            record = find_record(workspace, run, name)
        except (UserError, InvariantError):
            continue
        yield Citation(match.group(), run.id, iso(record.tick_at), record.seq, rule)


def _run(workspace: Workspace, prefix: str) -> Run | None:
    try:
        return workspace.runs.get(prefix)
    except (UserError, InvariantError):
        return None


def _has_rule(run: Run, code: str) -> bool:
    try:
        return any(rule.code == code for rule in venue_of(run.params["skill"]).rules())
    except UserError:  # a venue that is not installed
        return False
