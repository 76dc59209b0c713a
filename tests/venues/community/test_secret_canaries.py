"""25 secrets in 8 encodings, written into forum text, model output, feedback and errors: none is in a log, an issue, a message or a file."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from github_server import github

from canary_secrets import CANARIES, ENCODED, SHAPES, all_encodings, every_text
from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.redact import REDACTOR
from pitboss.cli.main import main
from pitboss.models.secret import Secret
from pitboss.venues.community.communication_log import CommunicationLog, log_folder
from pitboss.venues.community.github_reports import GithubReports
from pitboss.venues.community.issue_text import SharedPost
from pitboss.venues.community.log_reader import read_entries
from pitboss.venues.community.sns.client import SnsClient, SnsRefused, SnsUnavailable
from secret_search import leaks, leaks_below

COUNTS = pytest.mark.parametrize("count", [SHAPES, pytest.param(len(CANARIES), marks=pytest.mark.proof)])
"""How many of the secrets are written: one of each shape, or all. The process knows all of them."""


@pytest.fixture(autouse=True)
def redacted_canaries() -> Iterator[None]:
    """The canaries are secrets of this process."""
    REDACTOR.forget()
    REDACTOR.add(*CANARIES.values())
    yield
    REDACTOR.forget()


def test_the_scanner_sees_every_canary_in_every_encoding() -> None:
    """Without this the other tests would prove nothing."""
    for name, secret in CANARIES.items():
        for encoding, encode in ENCODED.items():
            assert leaks({name: secret}, encode(secret).encode(), ""), (name, encoding)
    assert len(list(every_text())) == 200


@COUNTS
def test_none_is_in_the_communication_log_or_what_shows_it(tmp_path: Path, count: int) -> None:
    log = CommunicationLog(
        folder=log_folder(tmp_path),
        clock=SystemClock(),
        instance_id="one",
        port=None,
        pid=1,
        agent_id="agent",
        redact=REDACTOR.redact,
    )
    with log:
        for text in every_text(count):
            log.agent_to_runner(text, [text, "tx"])
            log.runner_to_agent({"type": "tx_feedback", text: [text], "result": {"error": text}}, ["tx_feedback"])
    assert len(list(read_entries(log_folder(tmp_path)))) == 16 * count
    assert leaks_below(CANARIES, tmp_path) == []
    for words in ((), ("--json",)):
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            assert main(["community", "log", *words, "--home", str(tmp_path)]) == 0
        assert out.getvalue().count("do not tell") >= 16 * count
        assert leaks(CANARIES, out.getvalue().encode(), "the output") == []


@COUNTS
def test_none_is_in_issues_their_store_or_failures(tmp_path: Path, count: int) -> None:
    notes: list[str] = []

    async def share_all() -> None:
        token = next(iter(CANARIES.values()))
        async with github(token) as fake:

            async def mark(post: SharedPost) -> None:
                notes.append(str(post))

            reports = GithubReports(
                home=tmp_path, clock=SystemClock(), api_url=fake.url, token=Secret(token), mark_issued=mark
            )
            empty = SharedPost("", None, "", "", "", "", "https://github.com/owner/bank", "", 0, "")
            for number, secret in enumerate(list(CANARIES.values())[:count]):
                every = all_encodings(secret)
                post = replace(
                    empty,
                    thread_id=f"thread{number}",
                    title=f"A report {every}",
                    body=f"Before {every} after",
                    community_name=every,
                    author=every,
                    thread_url=f"https://forum.example/{every}",
                )
                notes.append(str(await reports.share(post)))
                fake.faults.append(("status", (422 if number % 2 else 503, {}, {"message": f"not {every}"})))
                notes.append(str(await reports.share(replace(empty, thread_id=f"other{number}"))))
            await reports.close()
            assert len(fake.issues["owner/bank"]) == count
            assert all("Before *** and *** and" in body for body in fake.bodies)
            notes.extend(str(request) for request in fake.requests)

    asyncio.run(share_all())
    assert len(notes) == count * (2 + 1 + 2)
    assert leaks(CANARIES, "\n".join(notes).encode(), "outcomes and requests") == []
    assert leaks_below(CANARIES, tmp_path) == []


@asynccontextmanager
async def _forum(replies: Iterator[tuple[int, Any]]):
    """A forum server that answers everything with the next reply."""

    async def answer(request: web.Request) -> web.Response:
        status, document = next(replies)
        return web.json_response(document, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@COUNTS
def test_none_is_in_errors_of_the_forum(count: int) -> None:
    messages: list[str] = []

    def replies() -> Iterator[tuple[int, Any]]:
        for number, text in enumerate(every_text(count)):
            yield 400 + number % 5, {"error": "x" * (290 - number % 40) + text}
            yield 500, {"error": text}

    async def ask() -> None:
        async with (
            _forum(replies()) as url,
            SnsClient(url, "agent", next(iter(CANARIES.values())), SystemClock()) as client,
        ):
            for _ in range(8 * count):
                with pytest.raises(SnsRefused) as refused:
                    await client.context()
                with pytest.raises(SnsUnavailable) as unavailable:
                    await client.context()
                messages.extend(
                    (repr(refused.value), refused.value.text, refused.value.message, repr(unavailable.value))
                )

    asyncio.run(ask())
    assert leaks(CANARIES, "\n".join(messages).encode(), "the client") == []
    assert sum(message.count("do not tell") for message in messages) >= 24 * count
