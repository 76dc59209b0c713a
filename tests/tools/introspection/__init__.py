"""Tests of the tools that look at a run itself."""
