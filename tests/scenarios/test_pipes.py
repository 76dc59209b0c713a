"""Standard output carries data only, and a reader that closes it early causes no error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pitboss_process import run_in_process, start_pitboss, wait_for_exit


def test_a_reader_that_stops_early_is_not_an_error(home: Path, skill: Path) -> None:
    run = run_in_process(
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


def test_help_that_is_not_read_to_its_end_is_not_an_error() -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "pitboss", "--help"], stdout=write, stderr=subprocess.PIPE, timeout=60
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_documents_are_utf_8_whatever_the_terminal_speaks(home: Path, skill: Path) -> None:
    words = ("skill", "preview", skill, "--json", "--home", home)
    said = wait_for_exit(start_pitboss(*words, PYTHONIOENCODING="ascii", PYTHONUTF8="0"))
    assert (said.code, said.err) == (0, "")
    assert said.out == run_in_process(*words).out
    assert not said.out.isascii()


def test_an_output_that_was_closed_is_not_an_error(home: Path) -> None:
    command = [sys.executable, "-m", "pitboss", "venues", "list", "--json", "--home", str(home)]
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], capture_output=True, text=True, timeout=60)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_a_standard_error_that_was_closed_is_not_an_error(home: Path) -> None:
    words = ("runs", "list", "--json")  # which opens a database: it must not get the number that is free
    command = [sys.executable, "-m", "pitboss", *words, "--home", str(home)]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert (closed.returncode, closed.stdout) == (0, run_in_process(*words, "--home", home).out)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_full_is_said_in_one_line_and_not_blamed_on_the_program(home: Path, unbuffered: str) -> None:
    command = [sys.executable, "-m", "pitboss", "venues", "list", "--json", "--home", str(home)]
    settings = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=settings)
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["error: No space left on device"]


def test_the_module_and_the_program_are_the_same(home: Path) -> None:
    program = Path(sys.executable).with_name("pitboss")
    words = ["venues", "list", "--json", "--home", str(home)]
    alone = subprocess.run([str(program), *words], capture_output=True, text=True, check=True)
    assert alone.stdout == run_in_process(*words).out
