"""Changing `settings.toml`: one value is replaced in its line, everything else stays as it is, comments included.

The file is read again after the change; if anything but that value were different it is not written.
"""

import os
import re
import tomllib
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.settings import FILE, PREFIX, Settings, load_settings
from pitboss.core.errors import UserError

EDITABLE = ("daily_usd", "confirm_above_usd")
"""The settings that the web app changes: those of budgets. The others decide what programs are started and where data goes."""
MOST_USD = 1_000_000
_LINE = r"^(\s*{key}\s*=\s*)([^#\n]*?)(\s*(?:#[^\n]*)?)$"


def source_of(settings: Settings, key: str) -> str:
    """Where the value of a setting comes from: `environment`, `file` or `default`."""
    if environment(f"{PREFIX}{key.upper()}"):
        return "environment"
    return "file" if key in _read(settings.home / FILE)[1] else "default"


def change_setting(settings: Settings, key: str, value: str) -> Settings:
    """Write an amount of money into the file; returns the settings with it. Raises `UserError` for one that is not valid."""
    if key not in EDITABLE:
        raise UserError(f"the setting {key} is not changed here", f"edit {FILE}, or set {PREFIX}{key.upper()}")
    if source_of(settings, key) == "environment":
        raise UserError(f"{PREFIX}{key.upper()} is set in the environment and takes precedence", "change it there")
    amount = _amount(key, value)
    path = settings.home / FILE
    text, before = _read(path)
    after = _replaced(text, key, str(amount))
    if tomllib.loads(after) != {**before, key: _number(str(amount))}:
        raise UserError(f"{path} has a form that cannot be changed safely", f"edit {key} in it yourself")
    _write(path, after)
    return load_settings(settings.home, settings.database_url or None)


def _amount(key: str, value: str) -> Decimal:
    try:
        amount = Decimal(value.strip())
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 <= amount <= MOST_USD and amount == round(amount, 6)):
        raise UserError(f"{key}: an amount of USD from 0 to {MOST_USD:,} is expected", "for example 5 or 2.50")
    return Decimal(format(amount.normalize(), "f"))


def _number(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]


def _replaced(text: str, key: str, value: str) -> str:
    """The text with a value replaced, or with a line more before the first table."""
    pattern = re.compile(_LINE.replace("{key}", re.escape(key)), re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda match: f"{match[1]}{value}{match[3]}", text, count=1)
    line = f"{key} = {value}\n"
    table = re.search(r"^\s*\[", text, re.MULTILINE)
    if table:
        return text[: table.start()] + line + text[table.start() :]
    return text + ("" if not text or text.endswith("\n") else "\n") + line


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
        return text, tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return "", {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}", "fix or remove the file") from None


def _write(path: Path, text: str) -> None:
    """Replace the file in one step: a reader sees the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, "utf-8")
        with suppress(FileNotFoundError):
            new.chmod(path.stat().st_mode & 0o777)
        os.replace(new, path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}", "check the workspace folder") from None
