"""`pitboss serve`: the web app and the REST API of a workspace."""

from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.options import Json, WholeNumber, option
from pitboss.terminal.workspace_options import Location

PORT = 8700


def serve(
    *,
    host: Annotated[str, option("--host", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[WholeNumber, option("--port", "Port to listen on; 0 selects a free one.")] = PORT,
    https_proxy: Annotated[
        bool, option("--https-proxy", "A proxy on this machine serves the app over HTTPS (setting serve_https).")
    ] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Serve the web app and the REST API of the workspace until Ctrl-C.

    Prints an address with a one-time token: open it in a browser. The API takes the same token as a bearer token. With --json the
    first line is `{url, token, api}`. An address that other machines reach needs a user with a password (`pitboss users add`).

    For example:

        pitboss serve
        pitboss serve --port 8701 --json
    """
    from pitboss.server.serve import serve_app

    def announce(address: str, token: str) -> None:
        url = f"{address}/start?token={token}"
        if json:
            screen.put_line({"url": url, "token": token, "api": f"{address}/api"})
            return
        screen.put(f"open {url}")
        screen.note("the link works once; Ctrl-C stops the server")

    serve_app(location, host, port, https_proxy, announce)
    return 0
