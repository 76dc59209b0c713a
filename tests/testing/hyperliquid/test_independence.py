"""The fake exchange is a second reading of the exchange's rules: it shares no code with the venue and the signer it checks."""

import ast
from pathlib import Path

import pitboss.testing.hyperliquid as package

SHARED = ("pitboss.core", "pitboss.testing.hyperliquid", "pitboss.bootstrap.machine")


def test_it_imports_nothing_of_the_venue_and_nothing_of_the_signer() -> None:
    modules = sorted(Path(package.__path__[0]).glob("*.py"))
    assert len(modules) > 20
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pitboss"):
                assert node.module.startswith(SHARED), f"{module.name} imports {node.module}"
