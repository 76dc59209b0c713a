"""The architecture as documented: layers, pure packages, no mode flags, small files, docstrings, no paths of one machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pitboss"
MODULES = sorted(SOURCE.rglob("*.py"))
PURE = ("prompt", "core", "skill", "engine")
CONTRACTS = (ROOT / "pyproject.toml").read_text("utf-8")
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


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


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


def pure_modules(package: str) -> list[Path]:
    """The modules of a pure package; of `venues`, those that the contract of the pure part names."""
    if package != "venues":
        return sorted((SOURCE / package).rglob("*.py"))
    part = CONTRACTS.split("stands on core alone")[1].split("forbidden_modules")[0]
    names = re.findall(r'"pitboss\.(venues\.[\w.]+)"', part)
    assert len(names) > 30
    folders = [SOURCE / name.replace(".", "/") for name in names]
    return [path for one in folders for path in ([one.with_suffix(".py")] if not one.is_dir() else one.glob("*.py"))]


@pytest.mark.parametrize("package", [*PURE, "venues"])
def test_a_pure_package_imports_nothing_that_touches_the_machine(package: str) -> None:
    found = [
        f"{name_of(path)}:{line} imports {module}"
        for path in pure_modules(package)
        for line, module in imports(parsed(path))
        if module.split(".")[0] in IMPURE and not allowed(path, module)
    ]
    assert found == []


def allowed(path: Path, module: str) -> bool:
    """A skill is a file that a person names: reading that one file is its loader's whole purpose."""
    return path == SOURCE / "skill" / "load.py" and module == "pathlib"


@pytest.mark.parametrize("package", [*PURE, "venues"])
def test_a_pure_package_is_synchronous(package: str) -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in pure_modules(package)
        if not port(path)
        for node in ast.walk(parsed(path))
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
        *(one for name in ("tick", "agent", "engine", "core") for one in (SOURCE / name).rglob("*.py")),
        *pure_modules("venues"),
        *(SOURCE / "venues").glob("*/ports.py"),
    ]:
        for node in ast.walk(parsed(path)):
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


def test_a_module_says_what_it_is() -> None:
    """An empty package file has nothing to say."""
    docstring = re.compile(r'"""(?:(?!""").){21}', re.DOTALL)
    modules = [path for path in MODULES if path.stat().st_size]
    assert [name_of(path) for path in modules if not docstring.match(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "folder",
    [
        "venues/perp/rules",
        "venues/predict/rules",
        "venues/perp/sections",
        "venues/predict/sections",
        "venues/perp/tools",
        "venues/predict/tools",
        "venues/perp/policies",
    ],
)
def test_every_plug_in_explains_itself(folder: str) -> None:
    """These docstrings become pages of the docs."""
    modules = [path for path in (SOURCE / folder).glob("*.py") if path.stem != "__init__"]
    assert len(modules) >= 4
    for path in modules:
        doc = ast.get_docstring(parsed(path)) or ""
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


def test_the_platform_names_no_module_of_a_venue() -> None:
    """Venues are found by entry point: outside `venues/` no line of code or text names one of their modules."""
    names = "|".join(folder.name for folder in (SOURCE / "venues").iterdir() if (folder / "venue.py").exists())
    found = [
        f"{name_of(path)}: {match[0]}"
        for path in MODULES
        if not path.is_relative_to(SOURCE / "venues")
        for match in re.finditer(rf"venues[./](?:{names})\b", path.read_text("utf-8"))
    ]
    assert found == []


SAME_NAME: dict[str, str] = {}
"""Class names that two modules may share, each with the reason."""


def test_a_class_name_has_one_meaning() -> None:
    """One name for one thing across the whole tree; what is listed above has a reason."""
    where: dict[str, list[str]] = {}
    for path in [*MODULES, *sorted((ROOT / "dev").rglob("*.py"))]:
        for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE):
            where.setdefault(name, []).append(name_of(path))
    assert len(where) > 500
    assert {name: places for name, places in where.items() if len(places) > 1 and name not in SAME_NAME} == {}


def test_every_class_of_the_glossary_exists() -> None:
    """A term that is written as code is a class, a protocol or a module of this tree."""
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    classes = {
        name for path in MODULES for name in re.findall(r"^ *class (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)*)`", page))
    assert len(named) > 30
    assert named - classes == set()


def test_paths_and_commands_of_contributing_exist() -> None:
    """Every path that CONTRIBUTING names is in the tree; a placeholder such as <name> stands for any file."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = set(re.findall(r"`((?:src|tests|docs|dev|examples)/[\w./<>*-]+)`", page))
    assert len(paths) > 15
    missing = [path for path in sorted(paths) if not list(ROOT.glob(re.sub(r"<[^>]+>|NN", "*", path).rstrip("/")))]
    assert missing == []
