"""A small GitHub on a port of this machine: issues of repositories, and faults on request."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class FakeGithub:
    """Issues by repository. `faults` are used up, one per request: what goes wrong, and a value for it."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.url = ""
        self.issues: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.faults: deque[tuple[str, Any]] = deque()
        self.on_created: Callable[[], None] = lambda: None
        self.at = "2026-03-10T12:00:00Z"

    @property
    def bodies(self) -> list[str]:
        return [issue["body"] for issues in self.issues.values() for issue in issues]

    def add(self, repository: str, title: str, body: str) -> dict[str, Any]:
        issues = self.issues.setdefault(repository, [])
        issue = {"number": len(issues) + 1, "title": title, "body": body, "created_at": self.at}
        issues.append(issue)
        return issue

    async def handle(self, request: web.Request) -> web.StreamResponse:
        repository = f"{request.match_info['owner']}/{request.match_info['name']}"
        self.requests.append((request.method, request.path_qs, await request.text()))
        kind, value = self.faults.popleft() if self.faults else ("", None)
        if kind == "drop before":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if kind == "status":
            status, headers, document = value
            return web.json_response(document, status=status, headers=headers)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"message": f"Bad credentials {request.headers.get('Authorization')}"}, status=401)
        if request.method == "GET":
            page, size = int(request.query["page"]), int(request.query["per_page"])
            listed = [one for one in self.issues.get(repository, []) if one["created_at"] >= request.query["since"]]
            return web.json_response(listed[::-1][(page - 1) * size : page * size])
        document = await request.json()
        issue = self.add(repository, document["title"], document["body"])
        self.on_created()
        if kind == "drop after":
            assert request.transport is not None
            request.transport.abort()
        if kind == "garbage after":
            return web.Response(text="<html>", status=201)
        if kind == "status after":
            return web.json_response({"message": "unlucky"}, status=value)
        return web.json_response({**issue, "html_url": "https://elsewhere.example/1"}, status=201)


@asynccontextmanager
async def github(token: str = "ghp-Canary0123456789") -> AsyncIterator[FakeGithub]:
    """A server until the end of the block."""
    fake = FakeGithub(token)
    app = web.Application()
    app.router.add_route("*", "/repos/{owner}/{name}/issues", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
