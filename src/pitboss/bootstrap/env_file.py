"""The file `.env` in the current folder: settings and keys for the environment of this process.

A variable that the environment has already is left as it is, so the order is environment, `.env`, `settings.toml`. Only
names that pitboss reads are taken from the file, and no value of it is ever shown.
"""

import os
from pathlib import Path

from pitboss.bootstrap.settings import PREFIX

FILE = ".env"
PRESET_VARIABLES = ("LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL")


def load_env_file(folder: Path = Path()) -> str:
    """Add the variables of the file to the environment; returns a warning about the file, empty if there is none.

    A file of another user is not read: its settings could send keys elsewhere.
    """
    path = folder / FILE
    try:
        status = path.stat()
    except OSError:
        return ""
    if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
        return f"{path} belongs to another user and is not read"
    from dotenv import dotenv_values

    try:
        values = dotenv_values(path, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"{path} cannot be read ({type(error).__name__})"
    if any("\0" in value for value in values.values() if value):
        return f"{path} cannot be read (it has a NUL character)"
    names = _names()
    for name, value in values.items():
        if value and (name.startswith(PREFIX) or name in names):
            os.environ.setdefault(name, value)
    is_open = os.name == "posix" and status.st_mode & 0o004
    return f"{path} can be read by every user of this machine; run: chmod 600 {path}" if is_open else ""


def _names() -> frozenset[str]:
    """The variables without the prefix that hold keys or addresses of providers and services."""
    from pitboss.bootstrap.key_entries import NOTIFICATION_KEYS
    from pitboss.data.sources.cryptopanic import KEY
    from pitboss.models.providers import PROVIDERS

    of_providers = (name for provider in PROVIDERS.values() for name in (*provider.key_names, *provider.url_names))
    return frozenset((*of_providers, *PRESET_VARIABLES, *NOTIFICATION_KEYS, KEY))
