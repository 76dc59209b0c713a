"""The house as it is drawn: layers, pure packages, no mode, small files, words at the top, nothing of one machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pitboss"
MODULES = sorted(SOURCE.rglob("*.py"))
PURE = ("prompt", "core", "skill", "venues", "engine")
MOST_LINES = 450

IMPURE = frozenset(
    [
        "asyncio",
        "concurrent",
        "ctypes",
        "email",
        "fcntl",
        "ftplib",
        "glob",
        "http",
        "httpx",
        "logging",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "polars",
        "queue",
        "random",
        "requests",
        "secrets",
        "select",
        "shutil",
        "signal",
        "smtplib",
        "socket",
        "socketserver",
        "sqlalchemy",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
        "webbrowser",
    ]
)
"""Modules through which the machine, the network, the clock or chance could get into a pure package."""

MODES = frozenset(
    [
        "live",
        "is_live",
        "simulated",
        "is_simulated",
        "simulation",
        "is_sim",
        "backtest",
        "is_backtest",
        "paper",
        "dry_run",
        "shadow",
    ]
)


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name]


def texts() -> Iterator[tuple[Path, str]]:
    """Every tracked file that is text."""
    for path in tracked():
        if path.is_file():
            data = path.read_bytes()
            if b"\0" not in data:
                yield path, data.decode("utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def test_the_import_contracts_hold() -> None:
    """A line imports only lines below it, siblings never in a circle: what import-linter is told in pyproject.toml."""
    program = Path(sys.executable).with_name("lint-imports")
    if not program.exists():
        pytest.skip("import-linter is not installed here")
    done = subprocess.run([str(program), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"[1-9]\d* kept, 0 broken", done.stdout)


def test_every_layer_of_the_drawing_is_under_contract() -> None:
    written = (ROOT / "pyproject.toml").read_text("utf-8")
    layers = re.search(r"layers = \[(.*?)\]", written, re.DOTALL)
    assert layers is not None
    named = {part.strip() for line in re.findall(r'"([^"]+)"', layers[1]) for part in line.split("|")}
    present = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert present - {"__init__", "__main__", "__pycache__"} <= named


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_imports_nothing_that_touches_the_machine(package: str) -> None:
    found = [
        f"{name_of(path)}:{line} imports {module}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for line, module in imports(ast.parse(path.read_text("utf-8")))
        if module.split(".")[0] in IMPURE and not allowed(path, module)
    ]
    assert found == []


def allowed(path: Path, module: str) -> bool:
    """A skill is a file that a person names: reading that one file is its loader's whole purpose."""
    return path == SOURCE / "skill" / "load.py" and module == "pathlib"


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_is_synchronous(package: str) -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        if not port(path)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, waits)
    ]
    assert found == []


def port(path: Path) -> bool:
    """Ports are where waiting begins: their protocols, and the one function that sends what was allowed."""
    return path in (SOURCE / "core" / "ports.py", SOURCE / "engine" / "execute.py")


def test_there_is_no_mode() -> None:
    """Simulation and live differ in the ports they pass; nothing below them asks which one it is."""
    found: list[str] = []
    for path in [
        *(one for name in ("tick", "agent", "engine", "venues", "core") for one in (SOURCE / name).rglob("*.py")),
    ]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            words = (
                {node.id} if isinstance(node, ast.Name) else {node.attr} if isinstance(node, ast.Attribute) else set()
            )
            words |= (
                {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
                if isinstance(node, ast.arguments)
                else set()
            )
            if words & MODES:
                found.append(f"{name_of(path)}: {', '.join(sorted(words & MODES))}")
    assert found == []


def test_no_source_file_has_grown_out_of_one_screenful_of_ideas() -> None:
    long = {
        name_of(path): count for path in MODULES if (count := len(path.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}


@pytest.mark.parametrize("path", MODULES, ids=[path.relative_to(SOURCE).as_posix() for path in MODULES])
def test_a_module_says_what_it_is(path: Path) -> None:
    written = path.read_text("utf-8")
    if not written.strip():
        return  # an empty package file has nothing to say
    doc = ast.get_docstring(ast.parse(written))
    assert doc, "no docstring"
    assert len(doc) > 20


@pytest.mark.parametrize(
    "folder",
    [
        "venues/perp/rules",
        "venues/predict/rules",
        "agent/sections",
        "agent/predict/sections",
        "tools/builtin",
        "tools/predict",
        "models/policies",
    ],
)
def test_every_plug_in_explains_itself(folder: str) -> None:
    """These docstrings become pages of the docs."""
    modules = [path for path in (SOURCE / folder).glob("*.py") if path.stem != "__init__"]
    assert len(modules) >= 4
    for path in modules:
        doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        assert doc.split("\n\n")[0].endswith((".", ":", "?", "!")), f"{name_of(path)}: the first words are no sentence"


def test_banned_words_are_not_module_names() -> None:
    banned = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "service", "base"}
    assert [name_of(path) for path in MODULES if path.stem in banned] == []


def test_no_tracked_file_names_a_package_index() -> None:
    words = "|".join(
        ("py" + r"pi\.org", "python" + r"hosted\.org", "--(?:extra-)?" + "index-url[ =]", "trusted" + "-host")
    )
    found = [
        f"{name_of(path)}: {match[0]}"
        for path, text in texts()
        if path.name != "test_docs.py"  # looks for the same names in the pages
        for match in re.finditer(words, text)
    ]
    assert found == []


def test_no_tracked_file_names_a_place_on_one_machine() -> None:
    words = (
        r"(?<![\w.~-])/(?:" + "|".join(("wo" + "rk", "ro" + "ot", "Us" + "ers", "ho" + r"me/\w+", "tm" + "p/w")) + r")/"
    )
    found = [f"{name_of(path)}: {match[0]}" for path, text in texts() for match in re.finditer(words, text)]
    assert found == []


def test_the_loop_knows_no_venue() -> None:
    """What a venue brings to a tick is its ports, in a file of its own."""
    for name in ("__init__.py", "record.py"):
        tree = ast.parse((SOURCE / "tick" / name).read_text("utf-8"))
        imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [module for module in imported if "venues" in module or "skill" in module]
