"""The mandate of a predict skill that lies in a file of its own: its text takes the place of its name.

Which files may be read, and how, is `skill.load`'s to say; what the text says is not judged here.
"""

from collections.abc import Callable
from typing import Any, cast

from pitboss.core.errors import UserError
from pitboss.skill.explain import show
from pitboss.skill.names import Found
from pitboss.venues.predict.skill import MANDATE_FILE

_MANDATE, _TEXT = ("strategy", "mandate"), ("strategy", "text")


def take_in(document: dict[str, Any], read: Callable[[str], str]) -> tuple[str, list[Found]]:
    """Put the text of a mandate's file in the place of its name; the name, and what is wrong with the file.

    Beside a text of the document's own the file is not even read: that is one mandate too many whatever it says.
    """
    strategy = document.get("strategy")
    if not isinstance(strategy, dict):
        return "", []
    plain = cast("dict[str, Any]", strategy)
    name = plain.get("mandate")
    if not isinstance(name, str) or not name.lower().endswith(MANDATE_FILE):
        return "", []
    rest = {key: value for key, value in plain.items() if key != "mandate"}
    if "text" in plain:
        document["strategy"] = rest
        return "", [(_TEXT, "is given together with mandate", "keep one of them")]
    try:
        text = read(name)
    except UserError as error:
        return "", [(_MANDATE, error.message, error.hint)]
    document["strategy"] = {**rest, "text": text}
    return name, []


def told_of(found: Found, mandate: str) -> Found:
    """What is wrong with a text that was read from a file is told of the file."""
    path, message, hint = found
    return (_MANDATE, f"{show(mandate)} {message}", hint) if mandate and path == _TEXT else found
