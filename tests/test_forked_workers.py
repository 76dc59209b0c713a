"""The worker processes of a test run: each test runs once, and a worker that dies fails one test."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forked_workers

pytestmark = pytest.mark.skipif(not forked_workers.AVAILABLE, reason="workers are forked on Linux only")

CONFTEST = """
import forked_workers

def pytest_xdist_auto_num_workers(config):
    config.pluginmanager.register(forked_workers.ForkedWorkers(3, globals().get("prepare")))
    return 0
"""


def run(folder: Path, tests: str, *options: str, prepare: str = "", settings: str = "") -> tuple[int, str]:
    """The exit code and the output of a run of these tests in three workers."""
    folder.joinpath("conftest.py").write_text(CONFTEST + prepare, "utf-8")
    folder.joinpath("test_some.py").write_text(tests, "utf-8")
    folder.joinpath("pytest.ini").write_text(f"[pytest]\n{settings}\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "auto", "-p", "no:cacheprovider", "-ra", *options]
    with folder.joinpath("output").open("w+", encoding="utf-8") as output:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=output, check=False)
        output.seek(0)
        return done.returncode, output.read()


@given(tests=st.integers(0, 40), workers=st.integers(1, 5), order=st.randoms(use_true_random=False))
def test_in_any_order_of_workers_each_test_is_taken_once(tests: int, workers: int, order: Random) -> None:
    shares = forked_workers.Shares(tests, workers)
    at_work, taken = list(range(workers)), list[int]()
    while at_work:
        worker = order.choice(at_work)
        test = shares.take(worker)
        if test is None:
            at_work.remove(worker)
        else:
            taken.append(test)
    shares.close()
    assert sorted(taken) == list(range(tests))


def test_a_worker_alone_takes_its_tests_in_order_and_then_half_of_what_others_have_left() -> None:
    shares = forked_workers.Shares(20, 2)
    assert [shares.take(0) for _ in range(11)] == [*range(10), 15]
    shares.close()


def test_what_a_dead_worker_took_but_did_not_begin_is_taken_again() -> None:
    shares = forked_workers.Shares(4, 1)
    first = shares.take(0)
    assert first == 0
    shares.begin(0, first)
    assert shares.take(0) == 1
    assert shares.release(0) == 0
    assert [shares.take(0) for _ in range(4)] == [1, 2, 3, None]
    shares.close()


def test_so_is_what_it_took_from_another() -> None:
    shares = forked_workers.Shares(6, 2)
    assert [shares.take(1) for _ in range(3)] == [3, 4, 5]
    shares.begin(1, 5)
    assert shares.take(1) == 1
    assert shares.release(1) == 5
    assert [shares.take(1) for _ in range(4)] == [1, 2, 0, None]
    shares.close()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_dead_worker_that_had_taken_the_last_test_leaves_nothing(workers: int) -> None:
    shares = forked_workers.Shares(6, workers)
    while (test := shares.take(0)) is not None:
        shares.begin(0, test)
    assert shares.release(0) is not None
    assert shares.take(0) is None
    shares.close()


def test_every_kind_of_result_is_reported_once(tmp_path: Path) -> None:
    tests = """
        import os, pytest, sys

        @pytest.fixture
        def breaks_before():
            raise RuntimeError("no table")

        @pytest.fixture
        def breaks_after():
            yield
            raise RuntimeError("no broom")

        @pytest.mark.parametrize("number", range(20))
        def test_passes(number, tmp_path):
            assert os.environ["PYTEST_XDIST_WORKER"] in tmp_path.parts
            print("not shown")

        def test_fails():
            print("what it said")
            assert 1 == 2

        def test_skipped():
            pytest.skip("not here")

        @pytest.mark.xfail(strict=True)
        def test_expected():
            raise ValueError

        def test_before(breaks_before): ...
        def test_after(breaks_after): ...
    """
    code, output = run(tmp_path, dedent(tests))
    assert code == 1
    assert "1 failed, 21 passed, 1 skipped, 1 xfailed, 2 errors" in output
    assert "what it said" in output
    assert "not shown" not in output
    assert "not here" in output
    assert "no table" in output
    assert "no broom" in output


@pytest.mark.parametrize("death", ["os._exit(3)", f"os.kill(os.getpid(), {int(signal.SIGKILL)})"])
def test_a_worker_that_dies_fails_its_test_and_all_others_run(tmp_path: Path, death: str) -> None:
    tests = f"""
        import os, pytest

        @pytest.mark.parametrize("number", range(30))
        def test_number(number):
            if number in (4, 29):
                {death}
    """
    code, output = run(tmp_path, dedent(tests))
    assert code == 1
    assert "2 failed, 28 passed" in output
    assert sorted(re.findall(r"FAILED test_some.py::test_number\[(\d+)\]", output)) == ["29", "4"]
    assert "while it ran test_some.py::test_number[4]" in output


def test_after_as_many_failures_as_allowed_no_test_begins(tmp_path: Path) -> None:
    tests = """
        import pathlib, pytest, time

        @pytest.mark.parametrize("number", range(300))
        def test_number(number):
            pathlib.Path(f"began-{number}").touch()
            time.sleep(0.05)
            assert number != 0
    """
    code, output = run(tmp_path, dedent(tests), "-x")
    assert code == 1
    assert "stopping after 1 failures" in output
    assert "1 failed" in output
    assert len(list(tmp_path.glob("began-*"))) < 300  # all of them take five seconds


@pytest.mark.parametrize("problem", ["", "raise OSError('none here')", "pytest.skip('not installed')", "os._exit(1)"])
def test_what_is_prepared_is_there_until_the_last_test_has_ended_and_a_problem_with_it_stops_nothing(
    tmp_path: Path, problem: str
) -> None:
    prepare = f"""
        import atexit, os, pathlib, pytest

        forked_workers._are_compiled = lambda: True

        def prepare(config):
            atexit.register(pathlib.Path("let-go").touch)
            pathlib.Path("prepared").write_text(os.environ["PYTEST_XDIST_TESTRUNUID"])
            {problem}
    """
    tests = """
        import os, pathlib, pytest, time

        @pytest.mark.parametrize("number", range(20))
        def test_number(number):
            while not (prepared := pathlib.Path("prepared")).exists() or not prepared.read_text():
                time.sleep(0.01)
            assert prepared.read_text() == os.environ["PYTEST_XDIST_TESTRUNUID"]
            assert not pathlib.Path("let-go").exists()
    """
    code, output = run(tmp_path, dedent(tests), prepare=dedent(prepare), settings="testpaths = .")
    assert (code, "20 passed" in output) == (0, True), output
    assert (tmp_path / "let-go").exists() == ("_exit" not in problem)


def test_a_part_of_the_tests_is_not_prepared_for(tmp_path: Path) -> None:
    prepare = "\ndef prepare(config):\n    open('prepared', 'w').close()\n"
    tests = "def test_one(): ...\ndef test_other(): ...\n"
    code, output = run(tmp_path, tests, "test_some.py", prepare=prepare, settings="testpaths = .")
    assert (code, "2 passed" in output) == (0, True), output
    assert not (tmp_path / "prepared").exists()


def test_fixtures_of_a_session_end_in_each_worker_and_so_do_exit_handlers(tmp_path: Path) -> None:
    tests = """
        import atexit, os, pathlib, pytest, time

        @pytest.fixture(scope="session")
        def table():
            atexit.register(pathlib.Path(f"left-{os.getpid()}").touch)
            yield
            pathlib.Path(f"cleared-{os.getpid()}").touch()

        @pytest.mark.parametrize("number", range(9))
        def test_number(number, table):
            time.sleep(0.1)
    """
    code, output = run(tmp_path, dedent(tests))
    assert code == 0, output
    cleared = {path.name.partition("-")[2] for path in tmp_path.glob("cleared-*")}
    assert cleared
    assert {path.name.partition("-")[2] for path in tmp_path.glob("left-*")} == cleared


def test_a_process_that_a_test_leaves_behind_does_not_delay_the_end(tmp_path: Path) -> None:
    tests = """
        import os, signal, time, pathlib

        def test_leaves():
            pid = os.fork()
            if not pid:
                time.sleep(600)
                os._exit(0)
            pathlib.Path("pid").write_text(str(pid))

        def test_other(): ...
    """
    code, output = run(tmp_path, dedent(tests))
    os.kill(int(tmp_path.joinpath("pid").read_text("utf-8")), signal.SIGKILL)
    assert code == 0, output
    assert "2 passed" in output
