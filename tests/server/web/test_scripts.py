"""The scripts of the pages: what no script and no page may contain. Their types are checked by `make check`."""

import ast
import re
from pathlib import Path

import pitboss.report
import pitboss.server.pages
import pitboss.venues
from pitboss.report.shell import CHART_SCRIPTS

STATIC = Path(pitboss.server.pages.__file__).parent / "static"
SCRIPTS = [
    *sorted(STATIC.glob("*.js")),
    *(Path(pitboss.report.__file__).parent / name for name in CHART_SCRIPTS),
]
NEVER = re.compile(
    r"\beval\(|\bnew Function\(|document\.write|\.outerHTML\s*=|setAttribute\(['\"]on|https?://(?!www\.w3\.org/)"
)


def test_no_script_runs_text_or_names_another_host() -> None:
    assert SCRIPTS
    for script in SCRIPTS:
        text = script.read_text("utf-8")
        assert "// @ts-check" in text.splitlines()[:3] or "// @ts-check" in text[:400], script.name
        assert not NEVER.search(text), script.name


def test_no_page_writes_a_style_attribute_or_an_event_handler() -> None:
    folders = (STATIC.parent, Path(pitboss.report.__file__).parent, Path(pitboss.venues.__file__).parent)
    for module in (module for folder in folders for module in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tag":
                names = {keyword.arg or "" for keyword in node.keywords}
                assert not {name for name in names if name == "style" or name.startswith("on")}, (module, node.lineno)
