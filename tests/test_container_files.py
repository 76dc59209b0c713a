"""Dockerfile and compose file: what they start exists, and nothing secret is in the image or in the files."""

import re
import shlex
from pathlib import Path
from typing import Any

import orjson
from ruamel.yaml import YAML

from pitboss.cli.commands import complete_app

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = YAML(typ="safe").load((ROOT / "compose.yaml").read_text("utf-8"))
EXAMPLE = (ROOT / ".env.example").read_text("utf-8")


def test_the_commands_of_the_containers_are_commands_of_pitboss() -> None:
    (default,) = re.findall(r"(?m)^CMD (\[.+\])$", DOCKERFILE)
    commands = [service["command"] for service in COMPOSE["services"].values() if "command" in service]
    assert orjson.loads(default) in commands
    for command in commands:
        complete_app().parse_args(command, print_error=False, exit_on_error=False)


def test_the_image_runs_as_another_user_than_root_and_tells_its_health() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert re.search(r"(?m)^USER pitboss$", last)
    assert "/health" in last
    ports = COMPOSE["services"]["server"]["ports"]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_only_named_files_get_into_the_image_and_each_exists() -> None:
    allowed = re.findall(r"(?m)^!(.+)$", (ROOT / ".dockerignore").read_text("utf-8"))
    copied = re.findall(r"(?m)^COPY (?!--)(.+) (?:\./|src)$", DOCKERFILE)
    assert {name for line in copied for name in shlex.split(line)} == set(allowed)
    assert all((ROOT / name).exists() for name in allowed)
    assert "*" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def test_every_variable_of_the_compose_file_is_in_the_example_of_env() -> None:
    used = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text("utf-8")))
    named = set(re.findall(r"(?m)^#?(\w+)=$", EXAMPLE))
    assert used
    assert used <= named
    assert not re.search(r"(?m)^\w+=\S", EXAMPLE)
