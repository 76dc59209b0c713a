"""pitboss's own MCP server: `tool_list` is its tools, `read_tools` and `write_tools` do the work in a `workspace`."""
