"""Tests of the client side of MCP, with real processes and real sockets."""
