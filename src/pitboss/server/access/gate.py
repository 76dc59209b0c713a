"""`Gate`: what every request passes before a route sees it, and the headers that every response gets.

It finds the caller by its bearer token or session cookie, checks Host and Origin, and adds the headers that keep pages from loading
anything of other hosts. What a caller may do is the business of the routes (`access/caller.py`).
"""

from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders

from pitboss.server.access.sign_in import SignIn
from pitboss.server.problem import Problem, problem_response

COOKIE = "pitboss_session"
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Gate:
    """An ASGI middleware. Streams pass through it unbuffered."""

    def __init__(self, app: Any, sign_in: SignIn) -> None:
        self._app = app
        self._sign_in = sign_in

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name not in headers:
                        headers[name] = value
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        headers = Headers(scope=scope)
        problem = self._admit(scope, headers)
        if problem is not None:
            await problem_response(problem)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _admit(self, scope: Any, headers: Headers) -> Problem | None:
        """Find the caller; the reason if the request is refused."""
        caller, is_session = None, False
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            caller = self._sign_in.by_token(token.strip())
            if caller is None:
                return Problem(401, "unauthorized", "the token is not valid")
        elif session := session_of(headers):
            caller, is_session = self._sign_in.by_session(session), True
        scope.setdefault("state", {})["caller"] = caller
        if scope["method"] in UNSAFE and (is_session or caller is None):
            origin = headers.get("origin", "")
            if origin and origin.partition("://")[2] != headers.get("host", ""):
                return Problem(403, "forbidden", "requests of other sites are refused")
        return None


def session_of(headers: Headers) -> str:
    """The session cookie of a request; empty if there is none."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
