"""The server processes of the `community_server` measurement: the forum itself, or a bare app that sends bodies of the same size.

Run as a module with a workspace and the name of an app; prints the address, then serves until it is stopped.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pitboss.server.venue_server import serve_routes
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.sns.serve_options import SnsOptions

if TYPE_CHECKING:
    from pitboss.venues.community.sns.serve_options import SnsOptions as Options

PROCESSES = 1
APPS = {
    "forum": "pitboss.venues.community.sns.app:make_app",
    "bare": f"{__spec__.name if __spec__ else __name__}:bare_app",
}
CONTEXT_FILE = "context.json"
"""A reply with the context document, for the bare app."""

Send = Callable[[dict[str, Any]], Awaitable[None]]


def bare_app(place: WorkspaceOptions, options: "Options") -> Callable[..., Awaitable[None]]:
    """An ASGI app without framework, database and checks: what HTTP, server and client themselves cost."""
    del options
    context = (place.settings().home / CONTEXT_FILE).read_bytes()
    nonce = b'{"nonce":"%s"}' % (b"0" * 32)

    async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        path = scope["path"]
        body = context if path.endswith("/context") else nonce if path.endswith("/nonce") else b'{"comment":{}}'
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


if __name__ == "__main__":
    _, home, name = sys.argv
    serve_routes(
        APPS[name],
        WorkspaceOptions(Path(home), None),
        SnsOptions(),
        "127.0.0.1",
        0,
        PROCESSES,
        lambda line: print(line, flush=True),
    )
