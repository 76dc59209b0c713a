"""npm packages for the tests. Skips where they cannot be installed."""

from pathlib import Path

import pytest

from pitboss_dev import npm

EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
NODE = "node@22"
"""The suite needs a newer Node than many machines have; npm has it as a package."""


def node_modules_with(*packages: str) -> Path:
    """The `node_modules` folder with these packages."""
    try:
        return npm.installed(*packages)
    except npm.NotInstalled as reason:
        pytest.skip(str(reason))
