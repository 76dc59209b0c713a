"""The wheel alone, in an empty environment: pinned packages, no source tree, and the demo runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")


def run(*words: object, folder: Path, **environment: str) -> str:
    """Run a program to its end; its output is shown if it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PITBOSS_", "PYTHON"))}
    finished = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def interpreter(version: str) -> str | None:
    """A program of this Python version; None where there is none."""
    program = shutil.which(f"python{version}")
    if program is None or subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
        return None
    return program


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what the image is built from."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    copied = re.findall(r"(?m)^COPY (?!--)(.+) (?:\./|src)$", (ROOT / "Dockerfile").read_text("utf-8"))
    for name in (name for line in copied for name in line.split()):
        item = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(item, source / name, ignore=ignored) if item.is_dir() else shutil.copy(item, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", target, ".", folder=source)
    (built,) = target.glob("pitboss-*.whl")
    return built


@pytest.mark.proof
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_runs_the_demo_in_an_empty_environment(tmp_path: Path, wheel: Path, version: str) -> None:
    program = interpreter(version)
    if program is None:
        pytest.skip(f"there is no Python {version} on this machine")
    run(program, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    install = (tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--no-deps")
    run(*install, "-r", ROOT / "requirements.lock", folder=tmp_path)
    run(*install, wheel, folder=tmp_path)
    run(*install[:3], "check", folder=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    pitboss = tmp_path / "venv" / "bin" / "pitboss"
    assert "verified: " in run(pitboss, "demo", "--home", "demo", folder=empty)
    assert "complete" in run(pitboss, "runs", "list", "--home", "demo", folder=empty)
