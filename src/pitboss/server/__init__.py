"""The MCP servers that pitboss ships. `tool_server` is what they share.

`mcp` is pitboss's own server (`pitboss mcp serve`); `hyperliquid_info` is a separate program for Hyperliquid's public
data, started by `python -m`.
"""
