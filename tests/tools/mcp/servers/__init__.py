"""Servers for the tests, each a script of its own that needs nothing but the standard library."""
