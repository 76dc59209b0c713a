"""Access control: hosts, origins, CSRF tokens, sessions, passwords, tokens, limits, the audit log."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.server.access.allowed_hosts import AllowedHosts, is_loopback
from pitboss.server.access.gate import COOKIE, Serving
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.server.serve import require_users
from pitboss.store.audit_log import AuditLog
from pitboss.store.database import open_database
from pitboss.store.passwords import hash_password
from server.web.conftest import ADDRESS, TOKEN

PASSWORD = "correct horse battery staple"
HASH = hash_password(PASSWORD, "ab" * 16, log_n=4, p=1)  # cheap, for tests that sign in often
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HOSTILE = '"><img src=x onerror=alert(1)>\u202e<script>alert(1)</script>'


@dataclass
class ServerWithClock:
    """A server with a clock that only tests move."""

    client: TestClient
    accounts: Accounts
    home: Path
    at: int = 1_800_000_000_000

    def sign_in(self, name: str = "anna", password: str = PASSWORD, **headers: str) -> Any:
        form = {"name": name, "password": password, "next": "/settings"}
        return self.client.post("/sign-in", data=form, headers=headers)

    @property
    def csrf(self) -> str:
        page = self.client.get("/settings").text
        return page.partition('name="pitboss-csrf" content="')[2].partition('"')[0]


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a user, to be copied."""
    home = tmp_path_factory.mktemp("access") / "home"
    with open_workspace(load_settings(home)) as workspace:
        Accounts(workspace).users.add("anna", "admin", HASH)
    return home


@pytest.fixture
def server(empty_home: Path, tmp_path: Path) -> Iterator[ServerWithClock]:
    yield from running_server(Path(shutil.copytree(empty_home, tmp_path / "home")), Serving(rpm=100))


def running_server(home: Path, serving: Serving) -> Iterator[ServerWithClock]:
    workspace = open_workspace(load_settings(home))
    server = ServerWithClock(None, None, home)  # pyright: ignore[reportArgumentType]
    app = create_app(workspace, SignIn(digest(TOKEN), random_hex), serving, lambda: server.at)
    server.accounts = app.state.credentials.accounts
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as client:
        server.client = client
        yield server


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8700", True),
        ("localhost:9", True),
        ("[::1]:8700", True),
        ("evil.example", False),
        ("evil.example:8700", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8700", False),
        ("192.168.1.5:8700", False),
        ("", False),
    ],
)
def test_a_request_under_a_foreign_name_is_refused_whatever_it_carries(
    server: ServerWithClock, host: str, allowed: bool
) -> None:
    reply = server.client.get("/api/me", headers={**BEARER, "Host": host})
    assert reply.status_code == (200 if allowed else 400)
    assert allowed or reply.json()["code"] == "bad_host"


def test_a_server_on_all_addresses_takes_any_address_and_the_names_of_its_setting() -> None:
    hosts = AllowedHosts.of("0.0.0.0", "Pit.Example, other.example")
    assert all(map(hosts.allow, ("192.168.1.5:8700", "[fe80::1]:8700", "pit.example", "other.example:443")))
    assert not any(map(hosts.allow, ("evil.example", "0.0.0.0.evil.example", "")))
    assert AllowedHosts.of("10.1.2.3", "").allow("10.1.2.3:8700")


def test_other_machines_are_served_only_when_a_user_has_a_password(empty_home: Path, tmp_path: Path) -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.9.9.9")))
    with open_workspace(load_settings(tmp_path / "new")) as workspace:
        require_users(workspace, "127.0.0.1")
        with pytest.raises(UserError, match="no user has a password"):
            require_users(workspace, "0.0.0.0")
    with open_workspace(load_settings(Path(shutil.copytree(empty_home, tmp_path / "home")))) as workspace:
        require_users(workspace, "0.0.0.0")
        Accounts(workspace).change_user("anna", disabled=True)
        with pytest.raises(UserError, match="no user has a password"):
            require_users(workspace, "0.0.0.0")


def test_a_password_gives_a_session_with_a_cookie_that_no_script_and_no_other_site_can_use(
    server: ServerWithClock,
) -> None:
    reply = server.sign_in()
    assert (reply.status_code, reply.headers["location"]) == (303, "/settings")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert server.client.get("/api/me").json() == {"name": "anna", "owner": "anna", "role": "admin", "scopes": None}
    assert server.client.get("/sign-in").headers["location"] == "/"


def test_behind_an_https_proxy_the_cookie_is_for_https_and_the_address_is_the_one_the_proxy_tells(
    empty_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(empty_home, tmp_path / "home"))
    for server in running_server(home, Serving(https=True)):
        reply = server.sign_in(**{"X-Forwarded-For": "203.0.113.7"})
        assert "Secure" in reply.headers["set-cookie"]
        assert "max-age" in reply.headers["strict-transport-security"]


def test_the_secret_of_a_session_is_not_in_the_database_and_is_new_at_every_sign_in(server: ServerWithClock) -> None:
    server.sign_in()
    first = server.client.cookies[COOKIE]
    server.sign_in(**{"X-CSRF-Token": server.csrf})
    second = server.client.cookies[COOKIE]
    assert first != second
    stored = b"".join(path.read_bytes() for path in server.home.glob("pitboss.db*"))
    assert first.encode() not in stored
    assert second.encode() not in stored
    assert server.client.get("/api/me", headers={"Cookie": f"{COOKIE}={second}"}).status_code == 200
    server.client.cookies.clear()
    assert server.client.get("/api/me", headers={"Cookie": f"{COOKIE}={first}"}).status_code == 401


@pytest.mark.parametrize(
    "wanted", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n//evil.example"]
)
def test_signing_in_never_leads_to_another_site(server: ServerWithClock, wanted: str) -> None:
    form = {"name": "anna", "password": PASSWORD, "next": wanted}
    assert server.client.post("/sign-in", data=form).headers["location"] == "/"


def test_a_wrong_password_an_unknown_name_and_a_disabled_user_get_the_same_words(server: ServerWithClock) -> None:
    server.accounts.users.add("off", "viewer", HASH)
    server.accounts.change_user("off", disabled=True)
    server.accounts.users.add("none", "viewer", "")
    pages = [
        server.sign_in(*both) for both in (("anna", "wrong"), ("ghost", PASSWORD), ("off", PASSWORD), ("none", ""))
    ]
    assert {page.status_code for page in pages} == {401}
    texts = {page.text.replace(f'value="{name}"', "") for page, name in zip(pages, NAMES, strict=True)}
    assert len(texts) == 1
    assert COOKIE not in server.client.cookies


NAMES = ("anna", "ghost", "off", "none")


def test_attempts_to_sign_in_are_limited_for_a_name_from_an_address(server: ServerWithClock) -> None:
    statuses = [server.sign_in(password="wrong").status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    assert server.sign_in().status_code == 429
    server.at += HOUR_MS
    assert server.sign_in().status_code == 303


def test_attempts_from_one_address_do_not_keep_a_user_out_elsewhere(empty_home: Path, tmp_path: Path) -> None:
    for server in running_server(Path(shutil.copytree(empty_home, tmp_path / "home")), Serving(https=True)):
        server.client = TestClient(server.client.app, ADDRESS, client=("127.0.0.1", 1), follow_redirects=False)
        for _ in range(110):
            server.sign_in(password="wrong", **{"X-Forwarded-For": "203.0.113.1"})
        assert server.sign_in(**{"X-Forwarded-For": "203.0.113.1"}).status_code == 429
        assert server.sign_in(**{"X-Forwarded-For": "203.0.113.2"}).status_code == 303


def test_a_long_name_is_cut_before_it_is_counted_and_shown(server: ServerWithClock) -> None:
    refused = server.sign_in("x" * 100_000)
    assert refused.status_code == 401
    assert "x" * 1_000 not in refused.text


def test_the_right_password_of_a_session_is_not_counted_as_an_attempt(
    server: ServerWithClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitboss.bootstrap.accounts.hash_password", lambda *_: HASH)  # a new one takes half a second
    server.sign_in()
    change = {"present": PASSWORD, "password": PASSWORD}
    headers = {"X-CSRF-Token": server.csrf}
    replies = [server.client.put("/api/me/password", json=change, headers=headers) for _ in range(12)]
    assert {reply.status_code for reply in replies} == {204}


def test_requests_of_one_caller_are_limited(server: ServerWithClock) -> None:
    statuses = [server.client.get("/api/me", headers=BEARER).status_code for _ in range(101)]
    assert statuses == [200] * 100 + [429]
    assert server.client.get("/api/me", headers=BEARER).headers["retry-after"] == "60"
    server.at += 60_000
    assert server.client.get("/api/me", headers=BEARER).status_code == 200


def test_a_session_ends_without_requests_and_after_a_week_in_any_case(server: ServerWithClock) -> None:
    server.sign_in()
    server.at += 11 * HOUR_MS
    assert server.client.get("/api/me").status_code == 200
    server.at += 13 * HOUR_MS
    assert server.client.get("/api/me").status_code == 401
    server.sign_in()
    for _ in range(17):
        server.at += 10 * HOUR_MS
        last = server.client.get("/api/me").status_code
    assert last == 401


def test_signing_out_ends_the_session_at_once(server: ServerWithClock) -> None:
    server.sign_in()
    secret = server.client.cookies[COOKIE]
    assert server.client.post("/sign-out", data={"csrf": "wrong"}).status_code == 403
    assert server.client.post("/sign-out", data={"csrf": server.csrf}).headers["location"] == "/sign-in"
    assert server.client.get("/api/me", headers={"Cookie": f"{COOKIE}={secret}"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-CSRF-Token": "wrong"}, 403),
        ({"X-CSRF-Token": "RIGHT"}, 201),
        ({"X-CSRF-Token": "RIGHT", "Origin": ADDRESS}, 201),
        ({"X-CSRF-Token": "RIGHT", "Origin": "https://evil.example"}, 403),
        ({"X-CSRF-Token": "RIGHT", "Origin": "http://127.0.0.1:9999"}, 403),
        ({"X-CSRF-Token": "RIGHT", "Origin": "null"}, 403),
        ({"X-CSRF-Token": "RIGHT", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"X-CSRF-Token": "RIGHT", "Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_a_write_with_a_session_needs_the_token_of_its_page_and_comes_from_this_site(
    server: ServerWithClock, headers: dict[str, str], status: int
) -> None:
    server.sign_in()
    given = {name: server.csrf if value == "RIGHT" else value for name, value in headers.items()}
    reply = server.client.post("/api/tokens", json={"label": "a"}, headers=given)
    assert reply.status_code == status
    assert len(server.accounts.tokens.list()) == (status == 201)


def test_another_site_cannot_sign_a_user_in(server: ServerWithClock) -> None:
    assert server.sign_in(Origin="https://evil.example").status_code == 403
    assert server.sign_in(**{"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_a_token_has_the_least_of_its_role_and_that_of_its_user_and_ends(server: ServerWithClock) -> None:
    server.accounts.users.add("eve", "author", HASH)
    eve = server.accounts.users.get("eve")
    assert eve is not None
    text, stored = server.accounts.create_token(eve, "x", "admin", 7)
    bearer = {"Authorization": f"Bearer {text}"}
    me = {"name": "eve", "owner": "eve", "role": "author", "scopes": None}
    assert server.client.get("/api/me", headers=bearer).json() == me
    assert text.encode() not in (server.home / "pitboss.db").read_bytes()
    assert server.client.post("/api/tokens", json={"label": "more"}, headers=bearer).status_code == 403
    server.accounts.change_user("eve", role="viewer")
    server.at += 5_000
    assert server.client.get("/api/me", headers=bearer).json()["role"] == "viewer"
    assert server.client.get("/api/tokens", headers=bearer).json()[0]["last_used_at"] is not None
    server.at += 7 * DAY_MS
    assert server.client.get("/api/me", headers=bearer).status_code == 401
    assert server.client.delete(f"/api/tokens/{stored.id}", headers=BEARER).status_code == 204


def test_a_server_deletes_what_is_older_than_the_audit_log_is_to_be_kept(empty_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(empty_home, tmp_path / "home"))
    now = 1_800_000_000_000
    with open_workspace(load_settings(home)) as workspace:
        for days in (500, 399):
            AuditLog(workspace.database, lambda days=days: now - days * DAY_MS).append(
                "anna", "here", f"{days} days ago"
            )
    app = create_app(open_workspace(load_settings(home)), SignIn(digest(TOKEN), random_hex), now=lambda: now)
    with TestClient(app, base_url=ADDRESS):
        pass
    with open_workspace(load_settings(home)) as workspace:
        actions = [entry.action for entry in AuditLog(workspace.database, lambda: now).listing()]
    assert actions == ["audit prune", "399 days ago"]


def test_a_token_with_scopes_does_no_more_than_they_name(server: ServerWithClock) -> None:
    body = {"label": "watch", "role": "author", "scopes": ["runs:write", "account:read"]}
    created = server.client.post("/api/tokens", json=body, headers=BEARER).json()
    bearer = {"Authorization": f"Bearer {created['token']}"}

    assert created["scopes"] == ["account:read", "runs:write"]
    assert server.client.get("/api/me", headers=bearer).json()["scopes"] == ["account:read", "runs:write"]
    assert server.client.get("/api/runs", headers=bearer).status_code == 200
    refused = server.client.get("/api/skills", headers=bearer)
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "this needs the scope skills:read; the token has account:read, runs:write",
    )
    assert server.client.get("/runs", headers=bearer).status_code == 403
    assert server.client.get("/api/openapi.json", headers=bearer).status_code == 200
    assert server.client.delete(f"/api/tokens/{created['id']}", headers=bearer).status_code == 403


@pytest.mark.parametrize("scopes", [[], ["runs:erase"], ["runs:read", ""], ["*"]])
def test_a_token_without_a_real_scope_is_not_created(server: ServerWithClock, scopes: list[str]) -> None:
    reply = server.client.post("/api/tokens", json={"label": "a", "scopes": scopes}, headers=BEARER)
    assert reply.status_code == 422
    assert server.accounts.tokens.list() == []


def test_a_disabled_user_loses_sessions_and_tokens_at_once(server: ServerWithClock) -> None:
    server.accounts.users.add("eve", "viewer", HASH)
    eve = server.accounts.users.get("eve")
    assert eve is not None
    text, _ = server.accounts.create_token(eve, "x", "viewer", None)
    server.sign_in("eve")
    assert server.client.get("/api/me").status_code == 200
    change = server.client.patch("/api/users/eve", json={"disabled": True}, headers=BEARER)
    assert change.json()["disabled"] is True
    assert server.client.get("/api/me").status_code == 401
    assert server.client.get("/api/me", headers={"Authorization": f"Bearer {text}"}).status_code == 401


def test_a_user_changes_its_password_with_the_present_one_in_a_session(server: ServerWithClock) -> None:
    body = {"present": PASSWORD, "password": "another long password"}
    assert server.client.put("/api/me/password", json=body, headers=BEARER).status_code == 403
    server.sign_in()
    headers = {"X-CSRF-Token": server.csrf}
    wrong = server.client.put("/api/me/password", json={**body, "present": "wrong"}, headers=headers)
    assert wrong.status_code == 403
    short = server.client.put("/api/me/password", json={**body, "password": "short"}, headers=headers)
    assert short.status_code == 422
    assert "short" not in short.json()["detail"]
    assert server.client.put("/api/me/password", json=body, headers=headers).status_code == 204
    assert server.client.get("/api/me").status_code == 200
    server.client.cookies.clear()
    assert server.sign_in().status_code == 401
    assert server.sign_in(password="another long password").status_code == 303


def test_large_requests_are_refused_by_their_length_and_by_what_arrives(server: ServerWithClock) -> None:
    reply = server.client.post("/api/tokens", content=b"x" * 1_000_001, headers=BEARER)
    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
    streamed = server.client.post(
        "/api/tokens", content=iter([b" " * 600_000] * 2), headers={**BEARER, "Content-Type": "application/json"}
    )
    assert (streamed.status_code, streamed.json()["code"]) == (413, "too_large")
    assert server.client.post("/api/tokens", headers={**BEARER, "Content-Length": "x"}).status_code == 400


def test_every_write_is_in_the_audit_log_with_who_and_from_where(server: ServerWithClock) -> None:
    server.sign_in(password="wrong")
    server.sign_in()
    headers = {"X-CSRF-Token": server.csrf}
    server.client.post("/api/users", json={"name": "bob", "role": "viewer", "password": PASSWORD}, headers=headers)
    server.client.delete("/api/tokens/none", headers=headers)
    server.client.put("/api/keys/GROQ_API_KEY", json={"value": "gsk_very_secret"}, headers=headers)
    page = server.client.get("/api/audit").json()
    entries = [(entry["user_name"], entry["action"], entry["detail"]) for entry in page["entries"]]
    assert entries == [
        ("anna", "PUT /api/keys/{name}", "204"),
        ("anna", "DELETE /api/tokens/{token_id}", "404"),
        ("anna", "POST /api/users", "201 bob as viewer"),
        ("anna", "sign-in", ""),
        ("anna", "sign-in refused", "the name or the password is wrong"),
    ]
    assert {entry["address"] for entry in page["entries"]} == {"testclient"}
    assert "very_secret" not in server.client.get("/settings?tab=audit").text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
@pytest.mark.parametrize(
    "secret", ["gsk_Canary0123456789", "GSK_CANARY_0123456789", "gsk_canary/0123456789", "gsk_canary" * 7]
)
def test_a_key_in_place_of_its_name_is_not_entered_into_the_audit_log(
    server: ServerWithClock, method: str, secret: str
) -> None:
    for body in ({"value": ""}, {}):
        reply = server.client.request(method, f"/api/keys/{secret}", json=body, headers=BEARER)
        assert reply.status_code in (404, 405, 422)
    entries = server.client.get("/api/audit", headers=BEARER).json()["entries"]
    assert [(entry["action"], entry["object"]) for entry in entries] == [
        (f"{method} /api/keys/{{name}}", "/api/keys/{name}")
    ] * 2
    assert "canary" not in str(entries).lower()


def test_the_audit_log_names_the_key_that_was_stored_and_removed(server: ServerWithClock) -> None:
    for name in ("groq", "MY_SERVER_TOKEN"):
        assert (
            server.client.put(f"/api/keys/{name}", json={"value": "gsk_s3cr3t_0123"}, headers=BEARER).status_code == 204
        )
        assert server.client.put(f"/api/keys/{name}", json={"value": "of two words"}, headers=BEARER).status_code == 422
        assert server.client.delete(f"/api/keys/{name}", headers=BEARER).status_code == 204
    entries = server.client.get("/api/audit", headers=BEARER).json()["entries"]
    names = ["MY_SERVER_TOKEN"] * 3 + ["GROQ_API_KEY"] * 3
    assert [entry["object"] for entry in entries] == [f"/api/keys/{name}" for name in names]


def test_no_response_has_a_key_a_password_or_its_hash(server: ServerWithClock) -> None:
    secret = "sk_" + "s3cr3t" * 6
    assert server.client.put("/api/keys/groq", json={"value": secret}, headers=BEARER).status_code == 204
    assert server.client.put("/api/keys/groq", json={"value": secret + " "}, headers=BEARER).status_code == 422
    listed = server.client.get("/api/keys", headers=BEARER).json()
    assert next(key for key in listed if key["name"] == "GROQ_API_KEY")["set_at"] is not None
    tabs = [f"/settings?tab={tab}" for tab in ("account", "tokens", "budgets", "keys", "mcp", "users", "audit")]
    for path in (*tabs, "/api/keys", "/api/settings", "/api/users", "/api/audit", "/api/me", "/api/tokens"):
        text = server.client.get(path, headers=BEARER).text
        for hidden in (secret, PASSWORD, HASH, "scrypt", TOKEN):
            assert hidden not in text, path
    assert server.client.delete("/api/keys/groq", headers=BEARER).status_code == 204
    assert server.client.delete("/api/keys/groq", headers=BEARER).status_code == 404


def test_a_hostile_label_is_text_on_the_page_and_a_hostile_name_is_refused(server: ServerWithClock) -> None:
    created = server.client.post("/api/tokens", json={"label": HOSTILE}, headers=BEARER)
    assert created.status_code == 201
    for tab in ("tokens", "audit"):
        page = server.client.get(f"/settings?tab={tab}", headers=BEARER).text
        assert "<img src=x" not in page
        assert "<script>alert" not in page
    user = {"name": HOSTILE, "role": "viewer", "password": PASSWORD}
    assert server.client.post("/api/users", json=user, headers=BEARER).status_code == 422
    refused = server.sign_in(name=HOSTILE)
    assert refused.status_code == 401
    assert "<img src=x" not in refused.text
    assert "<img src=x" not in server.client.get("/settings?tab=audit", headers=BEARER).text


def test_a_budget_is_changed_in_the_file_with_its_comments_and_holds_at_once(server: ServerWithClock) -> None:
    home = server.home
    before = "# ours\nmax_gap = 3 # bars\ndaily_usd = 1.5 # a day\n"
    (home / "settings.toml").write_text(before)
    reply = server.client.put("/api/settings/daily_usd", json={"value": "12.50"}, headers=BEARER)
    assert reply.status_code == 204
    assert (home / "settings.toml").read_text() == before.replace("1.5", "12.5")
    listed = {row["key"]: row for row in server.client.get("/api/settings", headers=BEARER).json()}
    assert (listed["daily_usd"]["value"], listed["daily_usd"]["source"]) == ("12.5", "file")
    for key, value in (("daily_usd", "-1"), ("daily_usd", "nan"), ("daily_usd", "1e9"), ("log_level", "off")):
        assert server.client.put(f"/api/settings/{key}", json={"value": value}, headers=BEARER).status_code == 422
    server.client.put("/api/settings/confirm_above_usd", json={"value": "0"}, headers=BEARER)
    assert (home / "settings.toml").read_text().endswith("# a day\nconfirm_above_usd = 0\n")


def test_an_error_is_a_page_for_a_person_and_problem_json_for_a_program(server: ServerWithClock) -> None:
    server.sign_in()
    assert "there is nothing at this address" in server.client.get("/nothing", headers={"Accept": "text/html"}).text
    for headers in ({"Accept": "application/json"}, {"Sec-Fetch-Dest": "empty"}):
        assert server.client.get("/nothing", headers=headers).headers["content-type"] == "application/problem+json"
    server.client.cookies.clear()
    wanted = server.client.get("/settings?tab=users", headers={"Accept": "text/html"})
    assert (wanted.status_code, wanted.headers["location"]) == (303, "/sign-in?next=%2Fsettings%3Ftab%3Dusers")


def test_an_entry_of_the_audit_log_that_was_changed_is_marked(server: ServerWithClock) -> None:
    server.sign_in()
    with open_database(server.home / "pitboss.db") as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE audit_log SET user_name = 'eve'")
    assert [entry["intact"] for entry in server.client.get("/api/audit").json()["entries"]] == [False]
