"""Tools: what a model may look at. A tool reads and never changes anything.

Those of a venue are in its `tools` package, where `registry` finds them; those of MCP servers come through `mcp`. Which of
them an agent has is listed in its skill.
"""
