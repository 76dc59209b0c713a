"""Calling the command line inside the test's own process, and what it answered."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from pitboss.cli.main import main


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit code and both outputs."""

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


def pitboss(*words: object) -> Answer:
    """Type a command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return Answer(code, out.getvalue(), err.getvalue())


def done(*words: object) -> Answer:
    """Type a command that must succeed."""
    answer = pitboss(*words)
    assert answer.code == 0, answer.err
    return answer


def refused(*words: object) -> str:
    """Type something wrong: exit 2, one clear line and at most one hint, no answer and no traceback. Gives the line."""
    answer = pitboss(*words)
    lines = answer.err.splitlines()
    assert answer.code == 2, (answer.code, answer.out, answer.err)
    assert answer.out == ""
    assert lines[0].startswith("error: "), answer.err
    assert [line for line in lines[1:] if not line.startswith("hint: ")] == [], answer.err
    assert len(lines) <= 2, answer.err
    return answer.err
