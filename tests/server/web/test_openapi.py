"""The OpenAPI document against the app: every route is complete, and gives only what it declares, whatever it is sent."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from server.web.conftest import ADDRESS, TOKEN
from server.web.queue_work import run_queued
from server.web.test_api_studies import ARENA

METHODS = ("get", "put", "post", "delete", "patch")
EXAMPLES, MANY_EXAMPLES = 1, 100
CHECKS = [
    not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_headers_conformance,
    schemathesis.checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def client_and_ids(
    demo_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A client, and the values of path parameters that exist. No worker is started, and no other host is reached."""
    home = Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("openapi") / "home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PITBOSS_EXECUTOR", "none")
        for source in ("HYPERLIQUID", "BINANCE", "PYTH", "CRYPTOPANIC"):
            patch.setenv(f"PITBOSS_{source}_URL", "http://127.0.0.1:9")
        workspace = open_workspace(load_settings(home))
        app = create_app(workspace, SignIn(digest(TOKEN), random_hex))
        with TestClient(app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False) as client:
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            study = client.post("/api/studies", json=ARENA).json()
            run_queued(workspace)
            deployed = client.post("/api/deployments", json={"skill": "trends", "mode": "paper"}).json()
            known = {"deployment_id": deployed["deployment_id"], "name": "trends"}
            yield client, {**known, "run_id": study["run_ids"][0], "study_id": study["study_id"]}


@pytest.fixture(scope="module")
def document(client_and_ids: tuple[TestClient, dict[str, str]]) -> dict[str, Any]:
    return client_and_ids[0].get("/api/openapi.json").json()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method, path, methods[method]


def test_every_route_says_what_it_is_and_which_errors_it_gives(document: dict[str, Any]) -> None:
    ids: list[str] = []
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        assert operation.get("description"), where
        assert operation.get("tags"), where
        assert {"401", "403", "422", "500"} <= set(operation["responses"]), where
        assert "{" not in path or method == "put" or "404" in operation["responses"], where
        ids.append(operation["operationId"])
    assert len(ids) == len(set(ids))
    assert all("__" not in name and name == name.lower() for name in ids)


def test_every_body_and_document_has_an_example(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def has_example(schema: Any, seen: tuple[str, ...] = ()) -> bool:
        if isinstance(schema, list):
            return any(has_example(item, seen) for item in schema)
        if not isinstance(schema, dict):
            return False
        if "examples" in schema or "example" in schema:
            return True
        name = schema.get("$ref", "").rpartition("/")[2]
        if name and name not in seen and has_example(schemas[name], (*seen, name)):
            return True
        return any(has_example(value, seen) for key, value in schema.items() if isinstance(value, dict | list))

    without: list[str] = []
    for method, path, operation in operations(document):
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [response.get("content", {}) for status, response in operation["responses"].items() if status < "3"]
        for content in contents:
            without += [
                f"{method} {path} {kind}"
                for kind, media in content.items()
                if "json" in kind and media.get("schema") and not has_example(media)
            ]
    assert without == []


def call_all(client_and_ids: tuple[TestClient, dict[str, str]], examples: int) -> int:
    """Send generated requests to every operation, valid and not, and check each response against the document. Returns their number."""
    client, known = client_and_ids
    cases = 0
    schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    failures: dict[str, str] = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), exists=st.booleans())
        def call(case: Any, exists: bool) -> None:
            nonlocal cases
            cases += 1
            if exists and case.method != "DELETE":
                case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
            elif case.operation.path.endswith("/events"):  # the start of an id may name a queued run, which never ends
                case.path_parameters["run_id"] = "none"
            request = case.as_transport_kwargs(base_url=ADDRESS)
            body = {"content": request["data"]} if request.get("data") is not None else {"json": request.get("json")}
            parts = {name: request[name] for name in ("method", "url", "params", "headers") if name in request}
            case.validate_response(client.request(**parts, **body), checks=CHECKS)

        try:
            call()
        except (Exception, BaseExceptionGroup) as failure:  # noqa: BLE001 - the others are tried too
            failures[operation.label] = str(failure)[:2_000]
    assert failures == {}
    return cases


def test_no_request_gives_an_undeclared_response(client_and_ids: tuple[TestClient, dict[str, str]]) -> None:
    call_all(client_and_ids, EXAMPLES)


@pytest.mark.proof
def test_many_requests_give_no_undeclared_response(client_and_ids: tuple[TestClient, dict[str, str]]) -> None:
    cases = call_all(client_and_ids, MANY_EXAMPLES)
    print(f"{cases:,} requests")
    assert cases > 3_000
