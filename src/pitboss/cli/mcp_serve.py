"""`pitboss mcp serve`: pitboss as an MCP server for coding assistants and other clients."""

from pathlib import Path
from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.options import option
from pitboss.terminal.workspace_options import Location


def serve(
    *,
    http: Annotated[
        str, option("--http", "Listen on HOST:PORT of this machine instead of standard input, such as 127.0.0.1:8000.")
    ] = "",
    write: Annotated[
        bool, option("--write", "Also offer tools that change something: run backtests, fork runs, save skills.")
    ] = False,
    location: Location,
) -> int:
    """Serve pitboss to an MCP client: list and check skills, preview prompts, read runs, explain decisions.

    Uses standard input and output, as a client starts it, or streamable HTTP for this machine only. Without --write
    nothing can be changed. Files are read from the working directory and the workspace.

    For example:

        pitboss mcp serve
        pitboss mcp serve --write
        pitboss mcp serve --http 127.0.0.1:8000
    """
    from pitboss.bootstrap.logs import start_logs
    from pitboss.server.mcp import tool_list
    from pitboss.server.mcp.workspace import ServerWorkspace
    from pitboss.server.tool_server import read_address
    from pitboss.server.tool_server import serve as serve_tools

    address = read_address(http) if http else None
    settings = location.settings()
    start_logs(settings.log_level, settings.log_file)
    server_workspace = ServerWorkspace(settings, Path.cwd(), write)
    serve_tools(tool_list.create(server_workspace), address, screen.note)
    return 0
