"""Cards: actions that the chat prepares and a person confirms. Preparing one checks it and changes nothing.

A card holds the ordinary request of the API; the page sends it with the person's own session when it is confirmed, and
`pitboss chat` calls the same use case. Without that confirmation nothing happens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from pitboss.chat.chat_tool import RUN, ChatTool, Find, ToolFinding, schema, text
from pitboss.chat.citations import cite
from pitboss.chat.context import ReadContext
from pitboss.core import codec
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import Instant, iso
from pitboss.core.ports import ToolSpec
from pitboss.models import catalog
from pitboss.report.figures import plural
from pitboss.runs import documents
from pitboss.runs.data_end import end_of_data
from pitboss.runs.explain import find_record
from pitboss.runs.fork import ForkChange
from pitboss.runs.run import refuse_live
from pitboss.runs.stored import one_line, request_of
from pitboss.runs.venues import period_ms, venue_of
from pitboss.sim.course import ticks_between
from pitboss.skill.document import to_json
from pitboss.skill.load import override, read_skill, summary
from pitboss.tools.history_text import moment

Kind = Literal["skill_edit", "backtest", "fork"]
MOST_CARDS, MOST_CHANGES = 4, 40
SHOWN = "The card is shown to the person, who confirms or dismisses it. Nothing has been changed."


@dataclass(frozen=True, slots=True)
class Card:
    """A prepared action. `request` is `{method, path, body}` of the API, `details` what the person should know about it."""

    kind: Kind
    title: str
    request: Mapping[str, Any]
    details: Sequence[str] = ()

    def plain(self) -> dict[str, Any]:
        """As the API sends it."""
        return {"kind": self.kind, "title": self.title, "request": dict(self.request), "details": list(self.details)}


Show = Callable[[Card], None]


def card_tools(context: ReadContext, show: Show) -> dict[str, ChatTool]:
    """The tools that prepare actions. `show` gets each card."""
    shown: list[Card] = []

    def prepared(prepare: Callable[[ReadContext, Mapping[str, Any]], tuple[Card, list[str]]]) -> Find:
        def find(reading: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
            if len(shown) >= MOST_CARDS:
                raise ToolFailed(f"at most {MOST_CARDS} cards in one answer")
            card, cites = prepare(reading, arguments)
            shown.append(card)
            show(card)
            return ToolFinding("\n".join([card.title, *card.details, SHOWN]), cites)

        return find

    return {
        name: ChatTool(ToolSpec(name, about, arguments), context, prepared(prepare))
        for name, about, prepare, arguments in _TOOLS
    }


def _skill_edit(context: ReadContext, arguments: Mapping[str, Any]) -> tuple[Card, list[str]]:
    changes = _changes(arguments)
    if not changes:
        raise ToolFailed("give set: one change a line, such as risk.max_leverage=2")
    plain, cites = _document(context, arguments)
    changed = override(plain, changes, venue_of(plain).skill_type())
    body = _checked_text(context, changed)
    name = str(changed.get("name", ""))
    details = [f"{path}: {before} → {after}" for path, before, after in _differences(plain, changed)]
    if not details:
        raise ToolFailed("the skill has these values already")
    request = {"method": "PUT", "path": f"/api/skills/{quote(name, safe='')}", "body": {"text": body}}
    return Card("skill_edit", f"Save a new version of {one_line(name, 80)}", request, details), cites


def _backtest(context: ReadContext, arguments: Mapping[str, Any]) -> tuple[Card, list[str]]:
    plain, cites = _document(context, arguments)
    changed = override(plain, _changes(arguments), venue_of(plain).skill_type())
    # over the data of the run whose skill it is
    run = None if arguments.get("skill") else context.run(arguments.get("run", ""))
    data_venue = "" if run is None else str(run.params.get("data_venue", ""))

    def end() -> Instant:
        return end_of_data(changed, context.workspace.lake, context.workspace.settings, data_venue)

    from_at, to_at = moment(arguments, "from", end), moment(arguments, "to", end)
    if to_at <= from_at:
        raise ToolFailed("the range is empty: to is not after from")
    model = _model(arguments) or str(changed.get("model", ""))
    ticks = len(ticks_between(from_at, to_at, period_ms(changed)))
    body = {"text": _checked_text(context, changed), "from": iso(from_at), "to": iso(to_at), **_own_model(arguments)}
    if run is not None:
        body["data_venue"] = data_venue
    details = [f"{iso(from_at)} to {iso(to_at)}, {plural(ticks, 'tick')}", f"model {one_line(model, 120)}"]
    details += [f"{path}: {before} → {after}" for path, before, after in _differences(plain, changed)]
    title = f"Run a backtest of {one_line(changed.get('name', ''), 80)}"
    return Card("backtest", title, {"method": "POST", "path": "/api/runs", "body": body}, details), cites


def _fork(context: ReadContext, arguments: Mapping[str, Any]) -> tuple[Card, list[str]]:
    run = context.run(arguments.get("run", ""))
    refuse_live(run)
    record = find_record(context.workspace, run, arguments["tick"])
    change = ForkChange(_model(arguments), _changes(arguments))
    request = request_of(run)
    changed = change.apply(request)
    _checked_text(context, changed.skill)
    body = {
        "at": iso(record.tick_at),
        **_own_model(arguments),
        **({"set": list(change.settings)} if change.settings else {}),
    }
    details = [f"from {iso(record.tick_at)} on, with {one_line(changed.source, 120)}"]
    details += [f"{path}: {before} → {after}" for path, before, after in _differences(request.skill, changed.skill)]
    card = Card(
        "fork", f"Fork run {run.id}", {"method": "POST", "path": f"/api/runs/{run.id}/fork", "body": body}, details
    )
    return card, [cite(run.id, record.tick_at)]


def _document(context: ReadContext, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """The skill in question: a saved one by its name, or that of a run."""
    name = arguments.get("skill", "")
    if not name:
        run = context.run(arguments.get("run", ""))
        return request_of(run).skill, [cite(run.id)]
    saved, _, version = name.partition("@")
    if version and not (version.isdecimal() and len(version) < 10):
        raise ToolFailed(f"{one_line(name, 60)} has no valid version")
    return documents.read_stored(context.workspace, saved, int(version) if version else None), []


def _checked_text(context: ReadContext, plain: Mapping[str, Any]) -> str:
    """The document as text, if it is valid."""
    body = to_json(read_skill(plain, venue_of(plain).skill_type())).decode()
    check = documents.check(body, ".json", context.workspace.settings)
    if check.skill is None:
        raise summary("the changed skill", check.errors)
    return body


def _changes(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    lines = tuple(line.strip() for line in arguments.get("set", "").splitlines() if line.strip())
    if len(lines) > MOST_CHANGES:
        raise ToolFailed(f"at most {MOST_CHANGES} changes at once")
    return lines


def _model(arguments: Mapping[str, Any]) -> str:
    name = arguments.get("model", "")
    if name:
        catalog.describe(name)
    return name


def _own_model(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {"model": arguments["model"]} if arguments.get("model") else {}


def _differences(before: Any, after: Any, path: str = "") -> list[tuple[str, str, str]]:
    """The fields that differ, with both values."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return [
            difference
            for name in sorted({*before, *after})
            for difference in _differences(before.get(name), after.get(name), f"{path}.{name}" if path else str(name))
        ]
    if codec.plain(before) == codec.plain(after):
        return []
    return [(path, _shown(before), _shown(after))]


def _shown(value: Any) -> str:
    return "not set" if value is None else one_line(value, 120)


SET = text("The changes, one a line, such as risk.max_leverage=2.", 4_000)
SKILL = text("A saved skill (trend, trend@2); left out: the skill of the run.", 120)
MODEL = text("Who decides, such as policy/sma_cross; left out: as the skill says.", 200)

_TOOLS = (
    (
        "propose_skill_edit",
        "Prepare a new version of a skill for the person to confirm. Changes nothing.",
        _skill_edit,
        schema(("set",), skill=SKILL, run=RUN, set=SET),
    ),
    (
        "propose_backtest",
        "Prepare a backtest for the person to confirm. Starts nothing.",
        _backtest,
        schema(
            ("from", "to"),
            skill=SKILL,
            run=RUN,
            set=SET,
            model=MODEL,
            from_=text(
                "First instant of the range (UTC), such as 2025-02-10, or -30d before the end of the data.", 40, 2
            ),
            to=text("End of the range (UTC), in the same forms.", 40, 2),
        ),
    ),
    (
        "propose_fork",
        "Prepare a fork of a run, which asks again from a tick on with another model or changed settings, for the person to "
        "confirm. Starts nothing.",
        _fork,
        schema(
            ("tick",),
            run=RUN,
            tick=text("The tick's time (UTC), -2d before the end of the run, or its record's number.", 40, 1),
            set=SET,
            model=MODEL,
        ),
    ),
)
