"""Tests of the tools and their registry."""
