"""The client side of MCP: tools of external servers, none of which is trusted.

`catalog` and `server_entry` describe the allowed servers, `definition` a server's description of a tool, `connection`,
`session`, `server_process` and `http_client` the communication, `guarded_tool` the tool as a model may use it. Which
servers a skill gets is decided elsewhere. A run without MCP servers imports nothing from here; the protocol library is
loaded on the first connection.
"""
