"""`pitboss <venue> serve`: the HTTP server of a venue that has one (`Venue.routes`)."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from pitboss.terminal import screen
from pitboss.terminal.options import WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.runs.venue import Venue

HELP = """Serve the {name} venue over HTTP until Ctrl-C.

    Data is in the database of --db, or in a file of the workspace. Several processes share the port and the database; with
    many of them a Postgres database is faster than a file.

    For example:

        pitboss {name} serve
        pitboss {name} serve --port {port} --processes 4 --db postgresql://user@host/name
    """

HOST = "127.0.0.1"
Host = Annotated[str, option("--host", "Address to listen on.")]
Port = Annotated[WholeNumber, option("--port", "Port to listen on; 0 selects a free one.")]
Processes = Annotated[WholeNumber, option("--processes", "Number of server processes.")]


def serve_command(venue: "Venue") -> Callable[..., int]:
    """Build the command, with the options that the venue declares for its server."""
    kind = venue.serve_options()

    def serve(
        *,
        host: str = HOST,
        port: int = venue.serve_port,
        processes: int = 1,
        location: WorkspaceOptions,
        options: Any = None,
    ) -> int:
        from pitboss.server.venue_server import serve_routes

        chosen = options if options is not None or kind is None else kind()
        serve_routes(venue.routes, location, chosen, host, port, processes, screen.note)
        return 0

    def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    parameters = [
        parameter("host", Host, HOST),
        parameter("port", Port, venue.serve_port),
        parameter("processes", Processes, 1),
        *([] if kind is None else [parameter("options", kind | None, None)]),
        parameter("location", Location),
    ]
    serve.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    serve.__annotations__ = {one.name: one.annotation for one in parameters}
    serve.__doc__ = HELP.format(name=venue.name, port=venue.serve_port)
    return serve
