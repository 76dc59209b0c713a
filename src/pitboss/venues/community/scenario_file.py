"""Reads scenario files: bounded YAML without anything executable."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.skill.parse import parse
from pitboss.venues.community.scenario import read_scenario

MAX_BYTES = 2_000_000


def read_scenario_file(path: Path) -> dict[str, Any]:
    """The document of a scenario file, checked."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path.name} is over {MAX_BYTES} bytes")
    document = parse(content.decode("utf-8", "replace"), path.suffix).value
    read_scenario(document, path.name)
    return codec.plain(codec.number_fragments(document))


@cache
def shipped_scenario() -> dict[str, Any]:
    """The scenario that is used if none is given."""
    text = (resources.files("pitboss.venues.community") / "scenarios" / "vault.yaml").read_text(encoding="utf-8")
    return codec.plain(codec.number_fragments(parse(text).value))
