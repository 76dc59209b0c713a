"""`Gate`: what every request passes before a route sees it, and the headers that every response gets.

It finds the caller by its bearer token or session cookie; refuses requests under foreign names (`Host`), of other sites (`Origin`,
`Sec-Fetch-Site`, the CSRF token), too many and too large ones; and enters every write into the audit log before it is answered. What
a caller may do is the business of the routes (`access/caller.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.server.access.allowed_hosts import LOOPBACK, AllowedHosts
from pitboss.server.access.body_limit import limited, too_large
from pitboss.server.access.caller import Caller
from pitboss.server.access.credentials import Credentials, is_csrf
from pitboss.server.access.rate_limit import RateLimit
from pitboss.server.access.writes import API, UNSAFE, is_write
from pitboss.server.problem import Problem, problem_of
from pitboss.store.audit_log import AuditLog
from pitboss.store.retry import Unreachable

COOKIE = "pitboss_session"
CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
MOST_FORM_BYTES = 64_000
OPEN = ("/health",)
"""Answered under any name: programs that watch a server address it as they can."""
ENTERED_ELSEWHERE = frozenset({"/sign-in", "/sign-out"})
"""What is entered into the audit log with more detail by its own route."""
KEYS = f"{API}/keys/"
"""Below it a path may hold a key in place of its name: such an entry of the audit log has no path but the one that its route gives."""
ANONYMOUS_RPM = 600
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer` a browser sends `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Serving:
    """How a server is reached: its names, and whether a proxy on this machine serves it over HTTPS."""

    hosts: AllowedHosts = field(default_factory=AllowedHosts)
    https: bool = False
    rpm: int = 0


class Gate:
    """An ASGI middleware. Streams pass through it unbuffered. `refuse` makes the response of a refusal."""

    def __init__(
        self,
        app: Any,
        credentials: Credentials,
        audit: AuditLog,
        serving: Serving,
        now: Callable[[], Instant],
        refuse: Callable[[Any, Problem], Response],
    ) -> None:
        self._app = app
        self._credentials = credentials
        self._audit = audit
        self._serving = serving
        self._rates = RateLimit(now, MINUTE_MS)
        self._refuse = refuse

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, headers = scope["path"], Headers(scope=scope)
        state = scope.setdefault("state", {})
        state["address"] = self._address(scope, headers)
        receive = limited(receive, path)

        began = is_log_away = False

        async def send_on(message: Any) -> None:
            nonlocal began, is_log_away
            if message["type"] == "http.response.start":
                _add_headers(message, self._serving.https)
                try:
                    if not is_log_away:
                        await self._enter(scope, message["status"])
                except Unreachable:
                    is_log_away = True
                    raise
                began = True
            await send(message)

        try:
            problem = await self._admit(scope, headers)
        except Unreachable as error:
            problem = problem_of(error)
        if problem is None and scope["method"] in UNSAFE and state.get("session"):
            given, receive = await _csrf_given(headers, receive)
            if not is_csrf(given, state["caller"].csrf):
                problem = Problem(
                    403, "forbidden", "the request does not come from a page of this session", "reload it"
                )
        app = self._app if problem is None else self._refuse(scope, problem)
        try:
            await app(scope, receive, send_on)
        except Exception as error:
            if is_log_away and not began:  # nothing is answered that is not in the audit log
                away = problem_of(Unreachable("the audit log is away"))
                await self._refuse(scope, away)(scope, receive, send_on)
                return
            if not began:  # a bug: its response passes here too, and `ErrorLog` logs it
                await self._refuse(scope, problem_of(error))(scope, receive, send_on)
            raise

    async def _admit(self, scope: Any, headers: Headers) -> Problem | None:
        """Find the caller; the reason if the request is refused."""
        path, state = scope["path"], scope["state"]
        state["caller"] = None
        if path in OPEN:
            return None
        if not self._serving.hosts.allow(headers.get("host", "")):
            return Problem(
                400, "bad_host", "this server is not known by that name", "add it to the setting serve_hosts"
            )
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            state["caller"] = caller = await run_sync(self._credentials.by_token, token.strip())
            if caller is None:
                return self._too_many(state) or Problem(401, "unauthorized", "the token is not valid")
        elif secret := session_of(headers):
            state["caller"] = await run_sync(self._credentials.by_session, secret)
            state["session"] = state["caller"] is not None
        if scope["method"] in UNSAFE and scheme.lower() != "bearer" and _is_foreign(headers):
            return Problem(403, "forbidden", "requests of other sites are refused")
        if not path.startswith("/static/") and (problem := self._too_many(state)):
            return problem
        return too_large(path, headers)

    def _too_many(self, state: Any) -> Problem | None:
        caller: Caller | None = state["caller"]
        if not self._serving.rpm:
            return None
        who = f"from {state['address']}" if caller is None else f"user {caller.name}"
        wait_s = self._rates.wait_s({who: ANONYMOUS_RPM if caller is None else self._serving.rpm})
        if not wait_s:
            return None
        hint = f"try again in {wait_s} s"
        return Problem(429, "too_many_requests", "too many requests", hint, retry_after_s=wait_s)

    def _address(self, scope: Any, headers: Headers) -> str:
        """The address of the caller: what connects, or what a proxy on this machine says."""
        peer = scope["client"][0] if scope.get("client") else ""
        if self._serving.https and peer in LOOPBACK:
            return headers.get("x-forwarded-for", peer).rpartition(",")[2].strip()
        return peer

    async def _enter(self, scope: Any, status: int) -> None:
        """Enter a write into the audit log, whether it was done or refused."""
        state, path = scope["state"], scope["path"]
        caller: Caller | None = state["caller"]
        if caller is None or path in ENTERED_ELSEWHERE or not is_write(scope["method"], path):
            return
        template = getattr(scope.get("route"), "path", path)  # without the prefix of its router
        template = API + template if path.startswith(API) and not template.startswith(API) else template
        if path.startswith(KEYS):
            template = KEYS + "{name}"
            path = state.get("audit_path", template)
        detail = f"{status} {state.get('audit', '')}".strip()
        await run_sync(self._audit.append, caller.name, state["address"], f"{scope['method']} {template}", path, detail)


def _add_headers(message: Any, https: bool) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        if name not in headers:
            headers[name] = value
    if https:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    if "cache-control" not in headers:
        headers["Cache-Control"] = "no-store"


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser says that another site has sent this request."""
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin", "")
    return site not in ("same-origin", "none") or (
        bool(origin) and origin.partition("://")[2] != headers.get("host", "")
    )


async def _csrf_given(headers: Headers, receive: Any) -> tuple[str, Any]:
    """The CSRF token of a request, in its header or in the field of a form, and `receive` with the whole body again."""
    if CSRF_HEADER in headers:
        return headers[CSRF_HEADER], receive
    if not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return "", receive
    body, more = b"", True
    while more and len(body) <= MOST_FORM_BYTES:  # fewer than the limit on a request, which `receive` enforces
        message = await receive()
        if message["type"] != "http.request":
            break
        body, more = body + message.get("body", b""), message.get("more_body", False)
    messages = [{"type": "http.request", "body": body, "more_body": more}]

    async def receive_again() -> Any:
        return messages.pop() if messages else await receive()

    return form_field(body, CSRF_FIELD), receive_again


def form_field(body: bytes, name: str) -> str:
    """A field of a form; empty if it is not there."""
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50).get(name, [""])[0]
    except ValueError:
        return ""


def session_of(headers: Headers) -> str:
    """The session cookie of a request; empty if there is none."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
