"""Every route of the API and every page, for callers without credentials, of each role, and of another owner.

The routes are those of the app itself, so that one that is added later is covered too. What belongs to somebody else must be exactly
like what does not exist: the same status and, but for the id, the same words.
"""

import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.role import ROLES, Role
from pitboss.jobs.study_plans import sweep_plan
from pitboss.runs.stored import journal_of, request_of
from pitboss.server.access.scopes import includes, role_of, scope_of
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.sim.study.axis import parse_axis
from pitboss.store.import_run import insert_run
from server.web.conftest import ADDRESS, TOKEN
from stored_records import records_of

OPEN = {"/health", "/sign-in", "/sign-out", "/start", "/static/{digest}/{name}", "/api/openapi.json"}
"""What needs no credentials. Everything else must name a role."""
SHARED = ("/api/keys", "/api/settings", "/api/audit", "/api/users")
"""What belongs to the workspace and not to a person; its routes are for admins."""
MARK = "belongs to somebody else"
MISSING = {"run": "9e8d7c6b5a49", "skill": "9e8d7c6b5a4e", "study": "9e8d7c6b5a4a", "token": "9e8d7c6b5a4b"}
MISSING["deployment"] = "9e8d7c6b5a4d"
MISSING["approval"] = "9e8d7c6b5a4c9e8d7c6b5a4c9e8d7c6b"


@dataclass
class ServerOfTwoOwners:
    """A server with the things of two owners: `theirs` of the owner `local`, `own` of the owner `anna`."""

    client: TestClient
    workspace: Workspace
    tokens: dict[Role, str]
    theirs: dict[str, str]
    own: dict[str, str]
    scoped: dict[frozenset[str], str] = field(default_factory=dict)

    def token_with(self, scopes: frozenset[str]) -> str:
        """A token of an admin that is limited to some scopes."""
        if scopes not in self.scoped:
            accounts = Accounts(self.workspace)
            user = accounts.users.get("anna-admin")
            assert user is not None
            self.scoped[scopes] = accounts.create_token(user, "limited", "admin", None, scopes)[0]
        return self.scoped[scopes]

    @property
    def routes(self) -> list[tuple[str, Any]]:
        """Every route with its method, those of included routers with their prefix."""
        app: Any = self.client.app
        found: list[Any] = [route for route in app.routes if isinstance(route, APIRoute)]
        for included in app.routes:
            if hasattr(included, "effective_route_contexts"):
                found += included.effective_route_contexts()
        return [(method, route) for route in found for method in sorted(route.methods)]

    def ask(
        self, method: str, route: Any, ids: dict[str, str], role: Role | None, scopes: Collection[str] | None = None
    ) -> Any:
        token = None if role is None else self.tokens[role] if scopes is None else self.token_with(frozenset(scopes))
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        query = {param.alias: ids[kind] for param in route.dependant.query_params if (kind := kind_of(param.alias))}
        if route.path == "/skills/new":
            query["from"] = ids["skill"]
        body = body_of(route, ids) if method in ("POST", "PUT", "PATCH") else None
        return self.request(method, path_of(route.path, ids), headers, params=query, json=body)

    def request(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx2.Response:
        """Send a request in the loop of the app: the client for tests changes threads seven times for each."""

        async def send() -> httpx2.Response:
            transport = httpx2.ASGITransport(self.client.app, raise_app_exceptions=False)  # pyright: ignore[reportArgumentType]
            async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                return await client.request(method, path, headers=headers, **options)

        assert self.client.portal is not None
        return self.client.portal.call(send)


@pytest.fixture(scope="module")
def two_owner_server(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerOfTwoOwners]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PITBOSS_EXECUTOR", "none")
        home = Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("matrix") / "home"))
        workspace = open_workspace(load_settings(home))
        accounts, anna = Accounts(workspace), workspace.owned_by("anna")
        (run,) = workspace.runs.listing().runs
        skill = workspace.skills.get_by_id(run.skill_id, run.skill_version)
        copied = anna.skills.save("annas-skill", skill.digest, skill.body)
        records, state = records_of(workspace, run), journal_of(workspace, run).latest_state()
        assert state is not None
        document = {**run.params["skill"], "name": "annas-skill"}
        params = {**run.params, "skill": document}
        changes = {"owner": "anna", "skill_id": copied.id, "skill_version": 1, "params": params, "report": None}
        other = replace(run, id="a" * 12, **changes)
        insert_run(workspace.database, other, records, state[1])
        # with a name that no shipped skill has: those are offered to everybody
        body = codec.dumps({**codec.loads(skill.body), "name": "their-skill"})
        workspace.skills.save("their-skill", "e" * 64, body)
        theirs, own = {"run": run.id, "skill": "their-skill"}, {"run": other.id, "skill": "annas-skill"}
        for place, things in ((workspace.owned_by("local"), theirs), (anna, own)):
            things["study"] = ("b" if things is theirs else "c") * 12
            name = MARK if things is theirs else "mine"
            plan = sweep_plan(request_of(run), [parse_axis("risk.max_leverage=1,2")], name=name).plan
            place.studies.save(things["study"], plan.document())
            request = place.approval_requests.ask("k" * 64, things["run"], "community", name, b"{}")
            things["approval"] = request.id
            deployment = place.deployments.create(things["run"], name, 1, "perp", "paper")
            things["deployment"] = deployment.id
        local = accounts.users.get("local")
        assert local is not None
        theirs["token"] = accounts.create_token(local, MARK, "admin", None)[1].id
        tokens: dict[Role, str] = {}
        for role in ROLES:
            user = accounts.users.add(f"anna-{role}", role, "", "anna")
            tokens[role], stored = accounts.create_token(user, "mine", "admin", None)
            own["token"] = stored.id
        app = create_app(workspace, SignIn(digest(TOKEN), random_hex))
        with TestClient(app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False) as client:
            yield ServerOfTwoOwners(client, workspace, tokens, theirs, own)


def kind_of(name: str) -> str | None:
    """What a parameter of this name is an id of."""
    known = {"run": "run", "run_id": "run", "with": "run", "skill": "skill", "study": "study", "study_id": "study"}
    return known.get(name)


def path_of(template: str, ids: dict[str, str]) -> str:
    """The path of a route with ids in it: a parameter is an id of what the part before it names."""
    kinds = {"runs": "run", "skills": "skill", "studies": "study", "arena": "study", "tokens": "token"}
    kinds |= {"approvals": "approval", "reports": "run", "deployments": "deployment"}
    parts: list[str] = []
    for part in template.split("/"):
        kind = kinds.get(parts[-1] if parts else "")
        parts.append(part if not part.startswith("{") else ids.get(kind or "", "1"))
    return "/".join(parts)


def body_of(route: Any, ids: dict[str, str]) -> Any:
    """A body with the required fields of a route, and with the ids of things in those that name some."""
    if route.body_field is None:
        return None
    model = route.body_field.field_info.annotation
    schema = model.model_json_schema() if hasattr(model, "model_json_schema") else {"type": "object"}
    return _value(schema, schema.get("$defs", {}), "", ids)


def _value(schema: dict[str, Any], definitions: dict[str, Any], name: str, ids: dict[str, str]) -> Any:
    if kind := kind_of(name):
        return ids[kind]
    if name in ("runs", "run_ids"):
        return [ids["run"], ids["run"]]
    if "$ref" in schema:
        return _value(definitions[schema["$ref"].rpartition("/")[2]], definitions, name, ids)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _value(schema[choice][0], definitions, name, ids)
    if "enum" in schema:
        return schema["enum"][0]
    if "examples" in schema and schema.get("type") == "string":
        return schema["examples"][0]
    if schema.get("type") == "object":
        wanted = set(schema.get("required", ())) | {key for key in schema.get("properties", {}) if kind_of(key)}
        properties = schema.get("properties", {})
        return {key: _value(properties[key], definitions, key, ids) for key in sorted(wanted) if key in properties}
    return {"array": [], "integer": 1, "number": 1, "boolean": False}.get(schema.get("type", ""), "2025-06-01")


def test_every_route_names_a_role_unless_it_is_known_to_be_open(two_owner_server: ServerOfTwoOwners) -> None:
    assert len(two_owner_server.routes) > 20
    open_routes = {route.path for _, route in two_owner_server.routes if role_of(route) is None}
    assert open_routes <= OPEN


def test_without_credentials_a_program_is_refused_and_a_person_is_sent_to_sign_in(
    two_owner_server: ServerOfTwoOwners,
) -> None:
    faults = []
    for method, route in two_owner_server.routes:
        if route.path in OPEN:
            continue
        reply = two_owner_server.ask(method, route, two_owner_server.theirs, None)
        is_page = not route.path.startswith("/api")
        if is_page and method == "GET":
            fits = reply.status_code == 303 and reply.headers["location"].startswith("/sign-in")
        else:
            fits = reply.status_code == 401
        if not fits:
            faults.append((method, route.path, reply.status_code))
    assert faults == []


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_it_is_for_and_nothing_more(two_owner_server: ServerOfTwoOwners, role: Role) -> None:
    faults = []
    for method, route in two_owner_server.routes:
        needed = role_of(route)
        if needed is None:
            continue
        may = ROLES.index(role) >= ROLES.index(needed)
        reply = two_owner_server.ask(method, route, MISSING, role)
        # a token cannot do what needs a session
        only_sessions = may and reply.status_code == 403 and "token" in reply.text
        if (reply.status_code == 403) is may and not only_sessions:
            faults.append((method, route.path, needed, reply.status_code))
        if reply.status_code >= 500 and reply.status_code != 503:
            faults.append((method, route.path, reply.status_code, reply.text[:200]))
    assert faults == []


def refused_by_scope(reply: Any) -> bool:
    return "needs the scope" in reply.text or "token with scopes" in reply.text


def test_a_route_is_open_to_a_token_with_its_scope_and_to_none_with_all_the_other_scopes(
    two_owner_server: ServerOfTwoOwners,
) -> None:
    app: Any = two_owner_server.client.app
    offered, faults, seen = set(app.state.scopes), [], set[str]()
    for method, route in two_owner_server.routes:
        if role_of(route) is None:
            continue
        needed = scope_of(method, route)
        assert (needed is None) is not route.path.startswith("/api/")
        seen |= {needed} - {None}
        others = offered if needed is None else {scope for scope in offered if not includes({scope}, needed)}
        refused = two_owner_server.ask(method, route, MISSING, "admin", frozenset(others))
        if refused.status_code != 403 or not refused_by_scope(refused):
            faults.append((method, route.path, needed, refused.status_code))
        if needed is not None and refused_by_scope(two_owner_server.ask(method, route, MISSING, "admin", {needed})):
            faults.append((method, route.path, needed, "its own scope is not enough"))
    assert faults == []
    assert seen == offered
    assert 10 <= len(offered) <= 25


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_what_belongs_to_another_owner_is_exactly_like_what_does_not_exist(
    two_owner_server: ServerOfTwoOwners, role: Role
) -> None:
    faults = []
    for method, route in two_owner_server.routes:
        if role_of(route) is None or route.path.startswith(SHARED) or (role == "admin" and "tokens/" in route.path):
            continue
        foreign, missing = (
            two_owner_server.ask(method, route, ids, role) for ids in (two_owner_server.theirs, MISSING)
        )
        if (foreign.status_code, _without(foreign, two_owner_server.theirs)) != (
            missing.status_code,
            _without(missing, MISSING),
        ):
            faults.append((method, route.path, foreign.status_code, missing.status_code, foreign.text[:300]))
    assert faults == []


def _without(reply: Any, ids: dict[str, str]) -> str:
    """The text of a reply without the ids that the request named, and without what differs at every request."""
    text = reply.text
    for value in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(value, "ID")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][0-9:.]+Z?", "TIME", text)
    return re.sub(r'"(csrf|etag)": ?"[^"]*"|pb_[0-9a-f]{64}|[0-9a-f]{12}\b', "ID", text)


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_no_list_has_anything_of_another_owner(two_owner_server: ServerOfTwoOwners, role: Role) -> None:
    faults, seen = [], set[str]()
    for method, route in two_owner_server.routes:
        if method != "GET" or "{" in route.path or role_of(route) is None or route.path.startswith(SHARED):
            continue
        headers = {"Authorization": f"Bearer {two_owner_server.tokens[role]}"}
        text = two_owner_server.request("GET", route.path, headers).text
        seen |= {value for value in two_owner_server.own.values() if value in text}
        for value in (*two_owner_server.theirs.values(), MARK):
            if value in text:
                faults.append((route.path, value))
    assert faults == []
    assert two_owner_server.own["run"] in seen


def test_after_all_that_the_things_of_the_other_owner_are_unchanged(two_owner_server: ServerOfTwoOwners) -> None:
    own = two_owner_server.workspace.owned_by("local")
    assert own.runs.get(two_owner_server.theirs["run"]).status == "complete"
    assert own.skills.get(two_owner_server.theirs["skill"]).version == 1
    assert own.studies.document(two_owner_server.theirs["study"])["name"] == MARK
    assert own.approval_requests.find(two_owner_server.theirs["approval"]).state == "pending"
    assert own.deployments.get(two_owner_server.theirs["deployment"]).state == "running"
    assert own.deployments.commands(two_owner_server.theirs["deployment"]) == []
    token = next(token for token in Accounts(own).tokens.list("local") if token.id == two_owner_server.theirs["token"])
    assert token.is_valid(own.now())
