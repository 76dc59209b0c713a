"""What an editor of skills works with: the check of a text with its values as written, and one change to it.

The same check as `pitboss skill check --json`, with what a form needs besides: the venue, the complete document, and the document
as it is written, without defaults.
"""

from typing import Any, cast

from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.runs.documents import check, suffix_of, venue_of_text
from pitboss.runs.venue import Venue
from pitboss.runs.venues import default_venue
from pitboss.skill.document import to_plain
from pitboss.skill.edit import edit
from pitboss.skill.load import SkillCheck
from pitboss.skill.parse import parse, parse_value
from pitboss.skill.schema import SkillDocument
from pitboss.skill.spelling import canonical, field_at, keys_at, takes_text

MAX_PATH = 10


def check_document(result: SkillCheck[SkillDocument], text: str | None) -> dict[str, Any]:
    """The document of `skill check --json` with `venue`, `plain` (complete, if it is valid) and `written` (as in the text)."""
    plain = None if result.skill is None else json_values(to_plain(result.skill))
    written = None if text is None else _written(text)
    venue = (plain or written or {}).get("venue") or default_venue().name
    return {**result.plain(), "venue": venue if isinstance(venue, str) else None, "plain": plain, "written": written}


def edit_text(settings: Settings, text: str, path: str, value: Any) -> dict[str, Any]:
    """One field of a text set to a value, or removed for None: the new text with its check. Comments are kept."""
    names = path.split(".")
    if not all(names) or len(names) > MAX_PATH:
        raise UserError(f"{path[:100]!r} is not the path of a field", "for example risk.max_leverage")
    suffix = suffix_of(text)
    root = _venue(text, suffix).skill_type()
    spelled = canonical(parse(text, suffix).value, root)
    own = tuple(spelled.written.get(tuple(names[: end + 1]), name) for end, name in enumerate(names))
    result = edit(text, own, _exact(value), suffix, lambda at: keys_at(at, root))
    return {"text": result, **check_document(check(result, suffix, settings), result)}


def value_of_text(text: str, path: str, written: str) -> Any:
    """A value as a person writes it into a field of a form: text where the field takes text, else YAML."""
    root = _venue(text, suffix_of(text)).skill_type()
    info = field_at(tuple(path.split(".")), root)
    if info is not None and takes_text(info):
        return written
    return parse_value(written)


def json_values(plain: Any) -> Any:
    """Plain values with exact decimals as JSON numbers."""
    return codec.plain(codec.number_fragments(plain))


def _venue(text: str, suffix: str) -> Venue:
    try:
        return venue_of_text(text, suffix)
    except UserError:  # an unknown venue is among the errors of the check
        return default_venue()


def _written(text: str) -> dict[str, Any] | None:
    """The values of a text under their canonical keys; None if it cannot be parsed."""
    suffix = suffix_of(text)
    try:
        plain = parse(text, suffix).value
    except UserError:
        return None
    if not isinstance(plain, dict):
        return None
    return cast("dict[str, Any]", json_values(canonical(plain, _venue(text, suffix).skill_type()).value))


def _exact(value: Any) -> Any:
    """The values of a JSON request with exact numbers."""
    if isinstance(value, dict | list):
        return parse(codec.dumps(codec.number_fragments({"value": value})).decode(), ".json").value["value"]
    return parse_value(codec.dumps(value).decode()) if isinstance(value, float) else value
