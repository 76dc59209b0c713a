"""Settings for child processes, passed in environment variables and never as arguments.

Every user of the machine can read a process's arguments, and a database address may contain a password.
"""

import os
import sys

from pitboss.bootstrap.machine import lent_credentials
from pitboss.bootstrap.settings import PREFIX, Settings


def variables(settings: Settings) -> dict[str, str]:
    """The settings that differ from their defaults, and those of venues that are set, as environment variables."""
    changed = {
        name: value
        for name, field in Settings.model_fields.items()
        if (value := getattr(settings, name)) != field.default and value is not None
    }
    return {
        f"{PREFIX}{name.upper()}": str(value) for name, value in {**changed, **(settings.model_extra or {})}.items()
    }


def surroundings(settings: Settings) -> dict[str, str]:
    """The environment of a child process: this process's own, with the settings and the lent credentials."""
    return {**os.environ, **lent_credentials(), **variables(settings)}


def program(module: str, *arguments: str) -> list[str]:
    """The command that runs one of pitboss's modules with the same Python."""
    return [sys.executable, "-m", module, *arguments]
