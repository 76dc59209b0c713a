"""Log lines are structured, redacted, never on standard output, and a failure to log never stops the work."""

import io
import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitboss.bootstrap.logs import start_logs, stop_logs
from pitboss.bootstrap.redact import Redactor
from pitboss.core.errors import UserError

KEY = "sk-canary-0123456789"
LOG = logging.getLogger("pitboss.test")


class TerminalStream(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _stop_logs_afterwards() -> Iterator[None]:
    yield
    stop_logs()


def start(stream: io.StringIO | None = None, level: str = "info", file: Path | None = None) -> None:
    start_logs(level, file, redactor=Redactor(), environment={"GROQ_API_KEY": KEY}, stream=stream)


def test_where_a_program_reads_a_line_is_one_json_object() -> None:
    stream = io.StringIO()
    start(stream)
    LOG.info("run %s began", "abc", extra={"fields": {"ticks": 3, "model": "groq/x", "note": "two\nlines"}})
    (line,) = stream.getvalue().splitlines()
    document = json.loads(line)
    assert document.pop("at").endswith("Z")
    assert document == {
        "level": "info",
        "logger": "pitboss.test",
        "message": "run abc began",
        "ticks": 3,
        "model": "groq/x",
        "note": "two\nlines",
    }


def test_on_a_terminal_a_line_is_pairs_that_cannot_forge_another_line() -> None:
    stream = TerminalStream()
    start(stream)
    LOG.info(
        "began\nerror: forged \x1b[2J", extra={"fields": {"ticks": 3, "note": "a b", "bad": "x\ny\x1b", "none": ""}}
    )
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(
        r'info began\nerror: forged \u001b[2J logger=pitboss.test ticks=3 note="a b" bad="x\ny\u001b" none=""'
    )


@pytest.mark.parametrize("stream", [io.StringIO, TerminalStream])
def test_a_secret_is_taken_out_of_message_fields_and_traceback(stream: type[io.StringIO]) -> None:
    written = stream()
    start(written)
    try:
        raise ValueError(f"the server said {KEY}")
    except ValueError:
        LOG.exception(
            "failed with %s", KEY, extra={"fields": {"key": KEY, "deep": {"list": [KEY, KEY.encode().hex()]}}}
        )
    said = written.getvalue()
    assert "ValueError: the server said ***" in said
    assert KEY not in said
    assert KEY.encode().hex() not in said


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    start(stream, "warning")
    LOG.info("no")
    LOG.warning("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_off_is_off_for_libraries_too() -> None:
    stream = io.StringIO()
    start(stream, "off")
    LOG.critical("no")
    logging.getLogger("some.library").critical("no")
    assert stream.getvalue() == ""


def test_what_a_library_says_is_redacted_too() -> None:
    stream = io.StringIO()
    start(stream)
    logging.getLogger("some.library").warning("header was %s", f"Bearer {KEY}")
    assert json.loads(stream.getvalue())["message"] == "header was Bearer ***"


def test_a_file_is_private_appended_to_and_always_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pitboss.log"
    for number in range(2):
        start(file=file)
        LOG.info("line", extra={"fields": {"number": number, "odd": "\udcff"}})
        stop_logs()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [json.loads(line)["number"] for line in file.read_text().splitlines()] == [0, 1]
    assert capfd.readouterr() == ("", "")


def test_nothing_goes_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    start()
    LOG.warning("here")
    said = capfd.readouterr()
    assert said.out == ""
    assert json.loads(said.err)["message"] == "here"


def test_starting_twice_writes_a_line_once() -> None:
    stream = io.StringIO()
    start(stream)
    start(stream)
    LOG.info("once")
    assert len(stream.getvalue().splitlines()) == 1


def test_a_line_that_cannot_be_written_ends_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    start(stream)
    stream.close()
    LOG.warning("lost %s", KEY)
    assert capfd.readouterr() == ("", "")


def test_a_wrong_level_or_file_is_the_persons_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="log_level"):
        start(level="loud")
    with pytest.raises(UserError, match="log_file"):
        start(file=tmp_path / "none" / "pitboss.log")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_on_a_full_disk_ends_nothing_not_even_when_it_is_closed(capfd: pytest.CaptureFixture[str]) -> None:
    start_logs("info", Path("/dev/full"), environment={})
    logging.getLogger("pitboss.test").info("a line")
    stop_logs()
    assert capfd.readouterr() == ("", "")
