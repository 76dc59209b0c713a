"""Attack texts, and files of texts supplied by the user.

A file is JSON lines with a `text` (or `prompt`, `attack`, …), a JSON list, or plain lines; lines that cannot be read are
reported and left out. Texts are data; nothing in them is executed.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.noun import noun

KEYS = (
    "text", "prompt", "attack", "payload", "injection", "content", "instruction", "input", "message", "goal", "query",
)  # fmt: skip
"""The keys under which an item may hold its text; the first that is present is used."""

MAX_BYTES = 64 * 2**20
MAX_CHARS = 100_000
MAX_PROBLEMS_NAMED = 5


@noun
class Attack:
    """One text to plant, and the decision that it requests, if its venue can read one from it."""

    name: str
    text: str
    ask: Any = None


@noun
class AttackFile:
    """The attacks of a file, the number of unreadable items, and the first few problems."""

    attacks: tuple[Attack, ...]
    bad: int = 0
    problems: tuple[str, ...] = ()


ReadAsk = Callable[[str], Any]
"""Reads the decision that a text requests; None if it requests none."""


def no_ask(text: str) -> Any:
    """Read no request."""
    del text


def read_file(path: Path, read_ask: ReadAsk = no_ask) -> AttackFile:
    """The texts of a file. Items without text are reported and skipped; `UserError` if no text remains."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path} is larger than {MAX_BYTES // 2**20} MB", "split it into several files")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "give --attacks a file of JSON lines") from None
    texts = read_texts(data, path.name, read_ask)
    if not texts.attacks:
        first = f" ({texts.problems[0]})" if texts.problems else ""
        raise UserError(f"{path} holds no attack text{first}", f"one JSON object a line, with one of {', '.join(KEYS)}")
    return texts


def read_texts(data: bytes, name: str, read_ask: ReadAsk = no_ask) -> AttackFile:
    """The texts of a file's content."""
    text = data.decode("utf-8-sig", "replace")
    items, problems = _items(text, name)
    attacks: list[Attack] = []
    for location, item in items:
        attack_text = _text_of(item)
        if attack_text is None:
            problems.append(f"{location}: no text in it (looked for {', '.join(KEYS[:4])}, …)")
        elif not attack_text.strip():
            problems.append(f"{location}: an empty text")
        else:
            attack_text = attack_text[:MAX_CHARS]
            attacks.append(Attack(location, attack_text, read_ask(attack_text)))
    return AttackFile(tuple(attacks), len(problems), tuple(problems[:MAX_PROBLEMS_NAMED]))


def _items(text: str, name: str) -> tuple[list[tuple[str, Any]], list[str]]:
    """Every item of a file with its position, and the problems."""
    json_items = _json_items(text)
    if json_items is not None:
        return [(f"{name}[{number}]", item) for number, item in enumerate(json_items)], []
    items: list[tuple[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped, location = line.strip(), f"{name}:{number}"
        if not stripped:
            continue
        if stripped[0] not in '{["':
            items.append((location, stripped))
            continue
        try:
            items.append((location, json.loads(stripped)))
        except (ValueError, RecursionError):
            # A plain text may begin with a bracket; only a line that looks like one of our objects is an error.
            if stripped[0] == "{" and any(f'"{key}"' in stripped[:200] for key in KEYS):
                problems.append(f"{location}: not valid JSON")
            else:
                items.append((location, stripped))
    return items, problems


def _json_items(text: str) -> list[Any] | None:
    """The items of a file that is one JSON list or one object with a list; None for other files."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        return lists[0] if len(lists) == 1 and _text_of(document) is None else [document]
    return document if isinstance(document, list) else None


def _text_of(item: Any, depth: int = 0) -> str | None:
    """The text of an item, searched in its lists and objects."""
    if isinstance(item, str):
        return item
    if isinstance(item, list) and depth < 3:
        parts = [text for part in item if (text := _text_of(part, depth + 1)) is not None]
        return "\n".join(parts) if parts else None
    if isinstance(item, dict) and depth < 3:
        values = {str(key).lower(): value for key, value in item.items()}
        for key in KEYS:
            if key in values and (text := _text_of(values[key], depth + 1)) is not None:
                return text
        texts = [value for value in item.values() if isinstance(value, str)]
        return texts[0] if len(texts) == 1 and len(item) == 1 else None
    return None
