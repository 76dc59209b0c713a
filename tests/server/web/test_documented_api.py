"""Every curl line of docs/api.md is sent to the app."""

import re
import shlex
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from server.web.conftest import ADDRESS, TOKEN
from server.web.queue_work import run_queued
from server.web.test_api_data import bars
from server.web.test_api_runs import SKILL

PAGE = Path(__file__).parents[3] / "docs" / "api.md"

pytestmark = pytest.mark.usefixtures("no_workers")


def request_of(line: str, values: dict[str, str]) -> tuple[str, str, dict[str, str], bytes | None]:
    """The method, address, headers and body of a curl line."""
    for name, value in values.items():
        line = line.replace(f"${name}", value)
    words = iter(shlex.split(line)[1:])
    method, address, headers, body = "", "", dict[str, str](), None
    for word in words:
        if word == "-s":
            continue
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "--json":
            body, headers["Content-Type"] = next(words).encode(), "application/json"
        elif word == "--data-binary":
            assert next(words) == "@BTC.csv"
            body = bars(range(5))
        else:
            address = word
    return method or ("GET" if body is None else "POST"), address, headers, body


def test_every_documented_request_succeeds(anonymous: TestClient, workspace: Workspace) -> None:
    values = {
        "API": f"{ADDRESS}/api",
        "KEY": f"Authorization: Bearer {TOKEN}",
        "RUN": "",
        "STUDY": "",
        "DEPLOYMENT": "",
    }
    lines = re.findall(r"^curl .+$", PAGE.read_text("utf-8"), re.MULTILINE)
    key = {"Authorization": f"Bearer {TOKEN}"}
    text = {"text": SKILL.replace("trends", "momentum")}
    anonymous.post("/api/runs", json={**text, "from": "2025-03-01", "to": "2025-03-02"}, headers=key)
    assert len(lines) == 22
    for line in lines:
        method, address, headers, body = request_of(line, values)
        response = anonymous.request(method, address, headers=headers, content=body)
        assert response.status_code in (200, 201), f"{line}\n{response.text}"
        if method == "POST" and response.status_code == 201:
            run_queued(workspace)
            values["RUN"] = values["RUN"] or response.json().get("run_id", "")
            values["STUDY"] = response.json().get("study_id", "")
            values["DEPLOYMENT"] = response.json().get("deployment_id", "")
