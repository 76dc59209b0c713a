"""What a process that is started for a workspace is given: settings as they are here, by variables, never by arguments.

Arguments of a process can be read by everybody on the machine, and a database's address may hold a password.
"""

import os
import sys

from pitboss.bootstrap.machine import lent
from pitboss.bootstrap.settings import Settings


def variables(settings: Settings) -> dict[str, str]:
    """Settings that are not what they are by default, as variables of the environment."""
    return {
        f"PITBOSS_{name.upper()}": str(value)
        for name, field in Settings.model_fields.items()
        if (value := getattr(settings, name)) != field.default and value is not None
    }


def surroundings(settings: Settings) -> dict[str, str]:
    """The environment of a process of our own on this machine: this one's, with the settings and what was lent to us."""
    return {**os.environ, **lent(), **variables(settings)}


def program(module: str, *words: str) -> list[str]:
    """The command that runs one of our modules with the same Python."""
    return [sys.executable, "-m", module, *words]
