"""Standard output belongs to whoever reads it, also when they stop reading."""

import subprocess
import sys
from pathlib import Path

from program import here


def test_a_reader_that_stops_early_is_not_an_error(home: Path, skill: Path) -> None:
    run = here(
        "backtest", skill, "--from", "2025-03-20", "--to", "2025-03-24", "--model", "policy/momentum", "--json",
        "--home", home,
    ).json  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "pitboss",
        "runs",
        "export",
        run["run_id"],
        "--what",
        "equity",
        "--home",
        str(home),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith('{"at":')
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


def test_the_module_and_the_program_are_the_same(home: Path) -> None:
    program = Path(sys.executable).with_name("pitboss")
    words = ["data", "list", "--json", "--home", str(home)]
    alone = subprocess.run([str(program), *words], capture_output=True, text=True, check=True)
    assert alone.stdout == here(*words).out
