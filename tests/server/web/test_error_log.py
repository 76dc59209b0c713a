"""A bug that a request meets is in the log of the server: once, with its traceback, without secrets and bodies."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.exc import IntegrityError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.testclient import TestClient

from pitboss.bootstrap.logs import start_logs, stop_logs
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import InvariantError
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.server.api import downloads
from pitboss.server.api.downloads import BackgroundDownload, Downloads
from pitboss.server.venue_server import build_app
from pitboss.terminal.workspace_options import WorkspaceOptions
from server.web.conftest import ADDRESS

SECRET, BODY = "sk-canary-0123456789abcdef", "canary-of-a-body"


@dataclass(frozen=True)
class LogFile:
    """The log of a server."""

    path: Path

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogFile]:
    """The log of this process, at the settings that a server has by default, without what uvicorn would log."""
    start_logs("warning", tmp_path / "log")
    REDACTOR.add(SECRET)
    yield LogFile(tmp_path / "log")
    stop_logs()
    REDACTOR.forget()


def failing(client: TestClient, error: Exception) -> TestClient:
    """A client of the same server with a route that fails."""
    app = client.app
    assert isinstance(app, FastAPI)

    async def fail(name: str, request: Request) -> None:
        await request.body()
        raise error

    app.add_api_route("/api/broken/{name}", fail, methods=["POST"])
    quiet_client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
    quiet_client.headers["Authorization"] = client.headers["Authorization"]
    return quiet_client


def test_a_bug_is_logged_once_with_its_traceback_and_without_secrets(client: TestClient, log: LogFile) -> None:
    reply = failing(client, RuntimeError(f"no {SECRET}")).post(f"/api/broken/{SECRET}", json={"text": BODY})
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    (entry,) = log.entries()
    assert (entry["level"], entry["message"], entry["error"]) == ("error", "request failed", "RuntimeError")
    assert (entry["method"], entry["route"]) == ("POST", "/api/broken/{name}")
    assert "RuntimeError: no ***" in entry["traceback"]
    assert "in fail" in entry["traceback"]
    assert SECRET not in log.path.read_text()
    assert BODY not in log.path.read_text()


def test_the_values_of_a_statement_that_fails_are_not_logged(client: TestClient, log: LogFile) -> None:
    error = IntegrityError("INSERT INTO a VALUES (?)", (BODY,), ValueError("UNIQUE constraint failed"))
    assert failing(client, error).post("/api/broken/a", json={"text": BODY}).status_code == 500
    (entry,) = log.entries()
    assert "UNIQUE constraint failed" in entry["traceback"]
    assert BODY not in log.path.read_text()


def test_a_broken_invariant_is_logged_and_a_refusal_is_not(client: TestClient, log: LogFile) -> None:
    assert client.get("/api/runs/none").status_code == 404
    assert client.post("/api/runs", json={"text": BODY}).status_code == 422
    assert log.entries() == []
    reply = failing(client, InvariantError("the ledger differs")).post("/api/broken/a")
    assert (reply.status_code, reply.json()["code"]) == (500, "invariant_error")
    (entry,) = log.entries()
    assert "InvariantError: the ledger differs" in entry["traceback"]


def test_a_caller_that_has_gone_is_not_logged(client: TestClient, log: LogFile) -> None:
    failing(client, ClientDisconnect()).post("/api/broken/a")
    assert log.entries() == []


def broken_app(place: WorkspaceOptions, options: object) -> Starlette:
    """The server of a venue with a bug."""
    del place, options

    async def fail(request: Request) -> None:
        raise RuntimeError(f"no {SECRET} {request.method}")

    return Starlette(routes=[Route("/broken", fail)])


def test_a_bug_in_the_server_of_a_venue_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_LOG_FILE", str(tmp_path / "log"))
    try:
        app = build_app(f"{__name__}:broken_app", WorkspaceOptions(tmp_path), None)
        REDACTOR.add(SECRET)
        assert TestClient(app, raise_server_exceptions=False).get("/broken").status_code == 500
    finally:
        stop_logs()
        REDACTOR.forget()
    (entry,) = LogFile(tmp_path / "log").entries()
    assert "RuntimeError: no *** GET" in entry["traceback"]


def test_a_download_that_meets_a_bug_is_logged_with_its_traceback(
    tmp_path: Path, log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object) -> None:
        raise RuntimeError(f"no {SECRET}")

    monkeypatch.setattr(downloads, "run_download", fail)
    downloaded = BackgroundDownload("a", "ada", "binance", DownloadRequest("binance"), 0)
    background = Downloads()
    background.start(downloaded, Lake(tmp_path / "lake"), Settings(), replacing=False)
    background.join()
    (entry,) = log.entries()
    assert entry["source"] == "binance"
    assert "RuntimeError: no ***" in entry["traceback"]
    assert "the log of the server tells more" in downloaded.error_text


def test_the_log_of_the_web_server_stays_off() -> None:
    """An error of a request would otherwise be logged twice, and a closed connection as an error."""
    from pitboss.server.venue_server import CONFIG

    assert CONFIG["log_level"] == "critical"
    assert logging.getLogger("pitboss.server").propagate
