"""Runs the command line in the process of the test: `pitboss`, `pitboss_ok` and `pitboss_refused`."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from pitboss.cli.main import main


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def pitboss(*words: object) -> CommandResult:
    """Run a command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return CommandResult(code, out.getvalue(), err.getvalue())


def pitboss_ok(*words: object) -> CommandResult:
    """Run a command that must succeed."""
    result = pitboss(*words)
    assert result.code == 0, result.err
    return result


def pitboss_refused(*words: object) -> str:
    """Run a command that must fail with exit code 2, one error line, at most one hint and no output; return standard error."""
    result = pitboss(*words)
    lines = result.err.splitlines()
    assert result.code == 2, (result.code, result.out, result.err)
    assert result.out == ""
    assert lines[0].startswith("error: "), result.err
    assert [line for line in lines[1:] if not line.startswith("hint: ")] == [], result.err
    assert len(lines) <= 2, result.err
    return result.err
