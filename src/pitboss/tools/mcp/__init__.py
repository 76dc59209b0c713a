"""The client side of MCP: tools that live in other programs, behind a wrapper that trusts none of them.

`entry` says which servers there may be, `definition` what one says about its tools, `child` and `connection` how one is
talked to, `guarded` how a model may use a tool of one. Nothing here decides which servers a skill gets, and nothing here
is imported by a run that names none: the protocol library is loaded on the first connection.
"""
