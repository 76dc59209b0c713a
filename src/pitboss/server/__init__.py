"""MCP servers that we ship: programs of their own, started by `python -m`, spoken to over the protocol and nothing else.

They sit beside `bench`, above everything they use. What they have in common is `serving`.
"""
