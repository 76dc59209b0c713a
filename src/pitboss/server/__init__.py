"""The web app, the REST API, and the MCP servers that pitboss ships.

`app` puts the web server together: `access` checks every request, `api` answers programs, `pages` people. `mcp` is pitboss as
an MCP server (`pitboss mcp serve`); `hyperliquid_info` is a separate program for Hyperliquid's public data, started by
`python -m`. `tool_server` is what the two MCP servers share.
"""
