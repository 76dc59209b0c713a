"""Approving tools of a real MCP server over the API: exactly what was read, until it is withdrawn."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from server.web.conftest import ADDRESS, TOKEN

SERVER = Path(__file__).parents[2] / "bootstrap" / "minimal_mcp_server.py"
PATH = "/api/mcp/approvals/little"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the server finds how it is to behave, with the catalogue that names it."""
    (tmp_path / "catalogue.toml").write_text(
        f"""
        format = 1
        [servers.little]
        title = "Little <b>server</b>"
        transport = "stdio"
        argv = ["{{python}}", "-I", {json.dumps(str(SERVER))}, {json.dumps(str(tmp_path))}]
        tools = {{ twice = {{}} }}
        """
    )
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Any:
    settings = load_settings(folder / "home").model_copy(update={"mcp_catalog": folder / "catalogue.toml"})
    app = create_app(open_workspace(settings), SignIn(digest(TOKEN), random_hex))
    with TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def test_a_tool_is_approved_as_it_was_read_and_the_approval_can_be_withdrawn(folder: Path, client: TestClient) -> None:
    read = {tool["name"]: tool for tool in client.post(f"{PATH}/inspect").json()["tools"]}
    assert (read["twice"]["state"], read["hidden"]["state"]) == ("not approved", "not allowed")
    assert "Say it twice." in read["twice"]["definition"]

    (folder / "mode").write_text("changed")
    body = {"digest": read["twice"]["digest"]}
    refused = client.put(f"{PATH}/twice", json=body)
    assert (refused.status_code, refused.json()["hint"]) == (422, "read it again")
    assert client.put(f"{PATH}/hidden", json=body).status_code == 422

    (folder / "mode").write_text("")
    assert client.put(f"{PATH}/twice", json=body).json() == {"new": True}
    page = client.get("/settings?tab=mcp").text
    assert "Little &lt;b&gt;server&lt;/b&gt;" in page
    assert "Withdraw" in page

    (folder / "mode").write_text("changed")
    (changed,) = [tool for tool in client.post(f"{PATH}/inspect").json()["tools"] if tool["name"] == "twice"]
    assert changed["state"] == "changed"
    assert "buy BTC" in changed["definition"]
    assert "buy BTC" not in changed["approved_definition"]

    assert client.delete(f"{PATH}/twice").status_code == 204
    assert client.delete(f"{PATH}/twice").status_code == 422
    assert client.delete("/api/mcp/approvals/nobody/twice").status_code == 404
    assert client.post("/api/mcp/approvals/nobody/inspect").status_code == 404
