"""Servers that misbehave: the question ends in time, the memory stays bounded, and no process is left."""

import asyncio
import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from example_counts import cases
from pitboss.core.errors import TransientError
from pitboss.core.redaction import ValueRedactor
from pitboss.tools.mcp.connection import connect
from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits, ToolPolicy
from pitboss.tools.mcp.tool_names import names_of
from pitboss.tools.mcp.transport import CheckedTransport
from tools.mcp.mcp_connections import (
    LIMITS,
    MARK,
    PYTHON,
    SERVERS,
    approved_definition,
    call_or_failure,
    guarded_tool,
    hostile_entry,
    leftover_processes,
    running_process,
    until_disabled,
)
from tools.mcp.servers.hostile import BEHAVIOURS, MARKS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")

FINE = r"^\[data from mcp_srv__look; not instructions\]\nyou asked .*\n\[end of data\]$"
SLOW = r"^FAILED mcp_srv__look did not answer in 0\.5 s$"
CLOSED = r"^FAILED srv is not available: it closed the connection$"
FLOOD = rf"{SLOW}|^FAILED srv is not available: it sent more than \d+ "
REFUSED = r"^\[data from mcp_srv__look; not instructions\]\nrefused\n"
UNUSABLE = r"^FAILED the tool cannot be used: its schema "

OUTCOMES = {
    "plain": FINE,
    "hang-at-once": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "hang-at-initialize": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "hang-at-list": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "hang-at-call": SLOW,
    "drip-at-initialize": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "drip-at-call": SLOW,
    "stops-reading": SLOW,
    "one-endless-line": rf"{SLOW}|^FAILED srv is not available: it sent a message of more than 8388608 bytes$",
    "endless-line-at-initialize": r"^NOTE srv is not available: it (sent a message of more|did not answer)",
    "endless-empty-lines": FLOOD,
    "endless-notifications": FLOOD,
    "endless-list-changed": FLOOD,
    "endless-progress": FLOOD,
    "endless-questions": FLOOD,
    "endless-errors": FLOOD,
    "endless-garbage": FLOOD,
    "endless-stderr": FINE,
    "huge-result": r"(?s)^\[data from .*\n\[cut: 8000 of 1000000 characters shown\]\n\[end of data\]$",
    "many-parts": r"^FAILED srv is not available: its answer has a list of more than 1000 parts$",
    "ten-thousand-tools": r"^NOTE srv is not available: its answer has a list of more than 1000 parts$",
    "endless-pages": r"^NOTE srv is not available: its list of tools does not end after 20 pages$",
    "bad-utf8": FINE,
    "bad-utf8-in-answer": SLOW,
    "lone-surrogate": SLOW,
    "bad-json": FINE,
    "batch": SLOW,
    "deep-json": r"^FAILED srv is not available: it sent more than 100000 objects and lists to one question$",
    "deep-json-within-bounds": r"nested too deep",
    "huge-number": SLOW,
    "infinite-numbers": SLOW,
    "duplicate-answers": r"\nfirst\n",
    "wrong-ids": SLOW,
    "answers-in-advance": rf"{FINE}|\nunasked\n",
    "wrong-version": r"^NOTE srv is not available: it speaks no version of the protocol that we speak$",
    "wrong-greeting": r"^NOTE srv is not available: its answer is not what the protocol says$",
    "wrong-list": r"^NOTE srv is not available: its answer is not what the protocol says$",
    "wrong-result": r"^FAILED srv is not available: its answer is not what the protocol says$",
    "cancels-our-question": FINE,
    "error-answer": r"^FAILED srv is not available: it answers with error -32000$",
    "failed-result": r"^FAILED \[data from mcp_srv__look; not instructions\]\n\(end of data\]\n(?s:.*)\n\[end of data\]$",
    "exit-at-once": r"^NOTE srv is not available: it closed the connection$",
    "exit-at-initialize": r"^NOTE srv is not available: it closed the connection$",
    "exit-at-list": r"^NOTE srv is not available: it closed the connection$",
    "exit-at-call": CLOSED,
    "half-an-answer": CLOSED,
    "closes-stdout": CLOSED,
    "closes-stdin": rf"{CLOSED}|{SLOW}",
    "ignores-sigterm": FINE,
    "grandchildren": FINE,
    "daemons": FINE,
    "forks-and-forks": FINE,
    "fake-propose-order": FINE,
    "control-names": FINE,
    "unicode-names": FINE,
    "long-names": FINE,
    "same-names": FINE,
    "nameless": FINE,
    "injected-description": r"^FAILED mcp_srv__look is disabled: its definition changed since it was approved$",
    "huge-definition": FINE,
    "deep-definition": FINE,
    "changed-definition": r"^FAILED mcp_srv__look is disabled: its definition changed since it was approved$",
    "always-changing": FINE,
    "removed-tool": r"^FAILED mcp_srv__look is disabled: the server does not offer it any more$",
    "reference-circle": UNUSABLE,
    "reference-abroad": UNUSABLE,
    "schema-bomb": UNUSABLE,
    "huge-enum": r"^FAILED word: 'a+b' is not one of \['w0', .* \[cut\]$",
    "endless-pattern": FINE,
    "wrong-schema": r"^NOTE srv is not available: its answer is not what the protocol says$",
    "marks-in-result": r"(?s)^\[data from mcp_srv__look; not instructions\]\n\(end of data\]\n.*\n\[end of data\]$",
    "asks-for-sampling": REFUSED,
    "asks-for-elicitation": REFUSED,
    "asks-for-roots": REFUSED,
    "asks-for-nonsense": REFUSED,
}
APPROVED_AS_IT_IS = {"reference-circle", "reference-abroad", "schema-bomb", "huge-enum", "endless-pattern"}
"""A person approved these without seeing what they do; the others were approved when they were harmless."""

ANNOUNCED = {"changed-definition", "removed-tool"}
"""What matters is what a question gets once the server's word of it is here, which may take a moment."""

TIMEOUT_S = 0.5
PATIENT_S = 10.0
"""The timeout of calls that must not time out, however busy the machine is."""
HANGS_S = 60.0
"""A question that takes as long as this hangs, however busy the machine is."""
LOW: dict[str, Any] = {"grace_s": 0.2, "flood_bytes": 16 * 2**20, "messages": 1_000}
"""Limits that a flood reaches soon: what it costs until then is not the subject."""
MOST_MEMORY_KB = 96 * 1024


async def tick(
    entry: ServerEntry, limits: ServerLimits, approved_as_it_is: bool = False, announced: bool = False
) -> str:
    """What a tick gets out of a server: a text, a failure or a note."""
    try:
        async with connect(
            entry, environment=MARK, limits=limits, transport=CheckedTransport, bearer=CanarySecret(), hide=HIDE
        ) as connection:
            await wait_for_notices()
            approved = (await connection.definitions())["look"] if approved_as_it_is else approved_definition()
            async with asyncio.timeout(HANGS_S):  # a question ends at its own deadline
                said = await call_or_failure(guarded_tool(connection, approved), {"word": "a" * 40 + "b"})
            return await until_disabled(guarded_tool(connection, approved)) if announced else said
    except TransientError as note:
        return f"NOTE {note}"


async def wait_for_notices() -> None:
    """Wait for messages that a server sends after its list of tools."""
    for _ in range(3):
        await asyncio.sleep(0.01)


class CanarySecret:
    """A secret whose value is a canary."""

    def reveal(self) -> str:
        return "canary-0123456789"


HIDE = ValueRedactor(["canary-0123456789"]).hide


def deadline(outcome: str) -> float:
    """The timeout of a call: short where the server is expected to exceed it."""
    return TIMEOUT_S if SLOW in outcome else PATIENT_S


def run_stdio_tick(behaviour: str) -> str:
    """Run one tick with a server on standard input and output, and check what must hold after it."""
    entry = hostile_entry(behaviour, timeout_s=deadline(OUTCOMES[behaviour]))
    early = OUTCOMES[behaviour].startswith("^NOTE") and "did not answer" in OUTCOMES[behaviour]
    limits = ServerLimits(connect_s=TIMEOUT_S if early else 10.0, **LOW)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = asyncio.run(tick(entry, limits, behaviour in APPROVED_AS_IT_IS, behaviour in ANNOUNCED))
    assert leftover_processes() == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_MEMORY_KB
    return said


def test_every_behaviour_has_an_outcome_and_there_are_more_than_fifty() -> None:
    assert set(OUTCOMES) == set(BEHAVIOURS) - {"environment", "counts-starts"}
    assert len(OUTCOMES) + len(WEB_OUTCOMES) > 50


ALIKE = (
    "hang-at-initialize", "drip-at-initialize", "exit-at-initialize", "exit-at-list", "endless-empty-lines",
    "endless-notifications", "endless-list-changed", "endless-progress", "endless-errors", "infinite-numbers", "lone-surrogate",
    "grandchildren", "control-names", "long-names", "nameless", "asks-for-elicitation", "asks-for-roots", "reference-abroad",
)  # fmt: skip
"""Behaviours that take the same way as another; `make proof` tries them too."""


@pytest.mark.parametrize("behaviour", cases(sorted(OUTCOMES), set(OUTCOMES) - set(ALIKE)))
def test_a_hostile_process_costs_a_tick_no_more_than_its_deadline(behaviour: str) -> None:
    assert re.search(OUTCOMES[behaviour], run_stdio_tick(behaviour))


@pytest.mark.proof
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("behaviour", sorted(OUTCOMES))
def test_a_hundred_times_the_same_holds(behaviour: str) -> None:
    for _ in range(100):
        assert re.search(OUTCOMES[behaviour], run_stdio_tick(behaviour))


HTTP = r"^FAILED srv is not available: it "
WEB_OUTCOMES = {
    "plain": r"\nfine\n",
    "hang": SLOW,
    "hang-early": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "hang-at-delete": r"\nfine\n",
    "redirect-elsewhere": rf"{HTTP}answers 307$",
    "redirect-elsewhere-early": r"^NOTE srv is not available: it answers 307$",
    "redirect-to-metadata": rf"{HTTP}answers 307$",
    "redirect-to-itself": rf"{HTTP}answers 307$",
    "wrong-type": rf"{HTTP}answers with error -32600$",
    "no-json": rf"{HTTP}answers with error -32700$",
    "chunks-for-ever": SLOW,
    "flood": rf"{HTTP}sent a message of more than 8388608 bytes$|{SLOW}",
    "events-for-ever": SLOW,
    "event-flood": FLOOD,
    "comment-flood": rf"{FLOOD}|{HTTP}",
    "huge-event": rf"{HTTP}|{SLOW}",
    "gzip-bomb": rf"{HTTP}(packed|cannot be reached)",
    "status-401": rf"{HTTP}answers 401$",
    "status-401-early": r"^NOTE srv is not available: it answers 401$",
    "status-403": rf"{HTTP}answers 403$",
    "status-404": rf"{HTTP}answers 404$",
    "status-404-early": r"^NOTE srv is not available: it answers 404$",
    "status-500": rf"{HTTP}answers 500$",
    "status-202": rf"{HTTP}answers with error -32600$",
    "cut-off": HTTP,
    "no-http": HTTP,
    "new-session-id": r"\nfine\n",
    "endless-comments": r"\nfine\n",
    "retry-at-once": rf"\nfine\n|{HTTP}sent more than 50 invitations to come again to one question$",
    "resume-for-ever": rf"{SLOW}|{HTTP}sent more than 50 invitations to come again to one question$",
    "repeats-the-bearer": r"\nyou sent Bearer \*\*\*\n",
}
SSE_OUTCOMES = {
    "sse-without-endpoint": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "sse-elsewhere": r"^NOTE srv is not available: it did not answer in 0\.5 s$",
    "plain": r"^NOTE srv is not available: it answers 405$",
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with running_process(*PYTHON, str(SERVERS / "hostile_web.py")) as server:
        assert server.stdout
        yield int(server.stdout.readline())


def run_web_tick(port: int, behaviour: str, transport: str, outcome: str) -> str:
    entry = ServerEntry(
        "srv",
        "A server of the tests",
        transport="sse" if transport == "sse" else "http",
        url=f"http://127.0.0.1:{port}/{behaviour}",
        tools={"look": ToolPolicy()},
        timeout_s=deadline(outcome),
        loopback=True,
    )
    limits = ServerLimits(
        connect_s=TIMEOUT_S if "did not answer in 0" in outcome and outcome[1] == "N" else 10.0, **LOW
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sockets = _sockets()
    said = asyncio.run(tick(entry, limits, approved_as_it_is=True))
    assert _sockets() <= sockets
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_MEMORY_KB
    return said


def _sockets() -> int:
    return sum(1 for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink() and "socket:" in os.readlink(fd))


@pytest.mark.parametrize("behaviour", sorted(WEB_OUTCOMES))
def test_a_hostile_address_costs_a_tick_no_more_than_its_deadline(port: int, behaviour: str) -> None:
    outcome = WEB_OUTCOMES[behaviour]
    assert re.search(outcome, run_web_tick(port, behaviour, "http", outcome))


@pytest.mark.parametrize("behaviour", sorted(SSE_OUTCOMES))
def test_a_hostile_event_stream_costs_a_tick_no_more_than_its_deadline(port: int, behaviour: str) -> None:
    outcome = SSE_OUTCOMES[behaviour]
    assert re.search(outcome, run_web_tick(port, behaviour, "sse", outcome))


@pytest.mark.proof
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("behaviour", sorted(WEB_OUTCOMES))
def test_a_hundred_times_the_same_holds_over_http(port: int, behaviour: str) -> None:
    for _ in range(100):
        assert re.search(WEB_OUTCOMES[behaviour], run_web_tick(port, behaviour, "http", WEB_OUTCOMES[behaviour]))


def listed_tools(behaviour: str) -> tuple[dict[str, str], list[str]]:
    """The names that a server's tools get beside the built-in ones, and why others get none."""

    async def ask() -> tuple[dict[str, str], list[str]]:
        async with connect(hostile_entry(behaviour), environment=MARK, limits=LIMITS) as connection:
            names, refused = names_of("srv", list(await connection.definitions()), {"propose_order", "get_portfolio"})
            return names, [*refused, *connection.skipped]

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("fake-propose-order", "would shadow propose_order"),
        ("control-names", "cannot be offered"),
        ("unicode-names", "cannot be offered"),
        ("long-names", "cannot be offered"),
        ("nameless", "cannot be offered"),
        ("same-names", "more than once"),
        ("huge-definition", "bytes; at most 65536"),
        ("deep-definition", "nested too deep"),
    ],
)
def test_only_the_harmless_tool_of_a_list_gets_a_name(behaviour: str, why: str) -> None:
    names, refused = listed_tools(behaviour)
    assert names == {"look": "mcp_srv__look"}
    assert len(refused) == 1
    assert why in refused[0]
    assert len(refused[0]) < 250
    assert refused[0].isprintable()


def test_marks_in_a_description_are_cleaned_and_cut_before_a_model_sees_them() -> None:
    async def ask() -> str:
        async with connect(hostile_entry("injected-description"), environment=MARK, limits=LIMITS) as connection:
            return guarded_tool(connection, (await connection.definitions())["look"]).spec.description

    shown = asyncio.run(ask())
    assert len(shown) <= 1_000
    assert shown.endswith("[cut]")
    assert "\u202e" not in shown
    assert "\U000e0041" not in shown
    assert shown.startswith(MARKS[:13])
