"""Reads scenario files: bounded YAML without anything executable."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.skill.parse import parse
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_check import require_possible

MAX_BYTES = 2_000_000
VAULT, TRIAL = "vault", "trial"
"""The scenario of a backtest without another, and that of a server which is filled for trials."""


def read_scenario_file(path: Path) -> dict[str, Any]:
    """The document of a scenario file, checked: every post and answer in it can happen."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "name a .yaml file with --scenario") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path.name} is over {MAX_BYTES} bytes", "leave out what the run does not need")
    document = parse(content.decode("utf-8", "replace"), path.suffix).value
    require_possible(read_scenario(document, path.name), path.name)
    return codec.plain(codec.number_fragments(document))


@cache
def shipped_scenario(name: str = VAULT) -> dict[str, Any]:
    """A scenario that comes with pitboss."""
    text = (resources.files("pitboss.venues.community") / "scenarios" / f"{name}.yaml").read_text(encoding="utf-8")
    return codec.plain(codec.number_fragments(parse(text).value))
