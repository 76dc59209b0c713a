"""The pages for people: they name things that exist, link to pages that exist, and agree with the code."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from pitboss.cli import main as program
from pitboss.cli.main import app
from pitboss.core import errors
from pitboss.report.meaning import METRICS
from pitboss.runs.venues import venues
from pitboss.skill.document import describe_fields
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.rules import RULES
from pitboss_dev.docs import pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN = [page for page in PAGES if page.name not in ("CHANGELOG.md",)]
CODE = re.compile(r"```.*?```|`[^`\n]+(?:\n[^`\n]+)?`", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
INDEX_HOSTS = ("pypi.org", "pythonhosted", "pypi.python", "index-url", "/simple", "npmjs", "anaconda.org")


def name_of(page: Path) -> str:
    """The page as it is called in the repository."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page's text without its code."""
    return CODE.sub("", page.read_text("utf-8"))


def code(page: Path) -> Iterator[str]:
    """Everything a page marks as code, block by block and word by word, on one line each."""
    for found in CODE.finditer(page.read_text("utf-8")):
        for line in found[0].strip("`").splitlines() if found[0].startswith("```") else [" ".join(found[0].split())]:
            yield line.strip("` ")


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


def commands(node: App, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that can be typed, groups included."""
    for name, below in node.resolved_commands().items():
        if not name.startswith("-"):
            yield (*words, name)
            yield from commands(below, (*words, name))


def options(chain: tuple[str, ...]) -> set[str]:
    """What a command takes."""
    node = app
    for word in chain:
        node = node[word]
    if node.default_command is None:
        return set(program.GLOBAL_OPTIONS)
    return {
        *program.GLOBAL_OPTIONS,
        *(name for argument in node.assemble_argument_collection() for name in argument.names),
    }


MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def targets() -> set[str]:
    """The targets of the Makefile that say what they do."""
    return set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))


# Generated pages ------------------------------------------------------------------------------------------------------


def test_generated_pages_are_what_the_code_says_now_whatever_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "COLUMNS": "30",
        "PITBOSS_MAX_GAP": "77",
        "PITBOSS_HOME": "/elsewhere",
        "TZ": "Asia/Tokyo",
    }.items():
        monkeypatch.setenv(name, value)
    pages._ask_program.cache_clear()
    assert pages.stale(DOCS, pages.pages()) == {}, "run: make docs"


def test_a_page_that_was_edited_by_hand_is_named_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pages.main([], tmp_path) == 0
    assert pages.main(["--check"], tmp_path) == 0
    page = tmp_path / "rules.md"
    page.write_text(page.read_text("utf-8").replace("R3_POSITION_CAP", "R3_SOMETHING_ELSE"), "utf-8")
    capsys.readouterr()
    assert pages.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    assert "docs/rules.md is out of date" in said
    assert "docs/skill.md" not in said
    assert pages.write(tmp_path, pages.pages()) == ["rules.md"]
    assert pages.main(["--check"], tmp_path) == 0


def test_every_rule_has_its_section_with_code_words_and_scope() -> None:
    page = (DOCS / "rules.md").read_text("utf-8")
    for rule in RULES:
        section = re.search(rf"^## {rule.code}\n\n(.+?)(?=\n## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert section, rule.code
        assert section[1].startswith(rule.doc.strip().splitlines()[0])
        assert ("every action" in section[1]) == (rule.scope == "every")


def test_every_field_tool_setting_and_command_has_its_entry() -> None:
    skill, tools, settings, cli = (
        (DOCS / name).read_text("utf-8") for name in ("skill.md", "tools.md", "settings.md", "cli.md")
    )
    for venue in venues():
        for note in describe_fields(venue.skill_type()):
            assert f"`{note.path}`" in skill or f"\n## {note.path}\n" in skill, note.path
        for name in venue.tools():
            assert f"\n## {name}\n" in tools
    for setting in pages.describe(pages.Settings.model_construct()):
        assert f"`{setting['variable']}`" in settings
    for words in commands(app):
        assert re.search(rf"^##+ pitboss {' '.join(words)}$", cli, re.MULTILINE), words


# Links ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{link} leaves the repository"
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: there is no such heading"


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(prose(page)) if "://" not in link)
        ahead += [(page.parent / link).resolve() for link in links if link]
    assert {name_of(page) for page in PAGES} - {name_of(page) for page in seen} == set()


def test_the_picture_of_the_report_is_a_small_png() -> None:
    data = (DOCS / "report.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 300_000


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    known = targets()
    for line in code(page):
        if line.startswith("make "):
            words = line.split("#")[0].split()[1:]
            variables = {word.split("=")[0] for word in words if "=" in word}
            assert {word for word in words if "=" not in word} <= known, line
            assert all(f"$({name})" in MAKEFILE for name in variables), line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_pitboss_command_that_is_named_exists_with_its_options(page: Path) -> None:
    known = set(commands(app))
    groups = {words[:-1] for words in known if len(words) > 1}
    for line in code(page):
        for typed in re.findall(r"(?:^|\| )(?:\.venv/bin/)?pitboss ([^|#>…]+)", line):
            words = typed.split()
            plain = tuple(word for word in words if not word.startswith("-"))
            if not plain or plain == ("COMMAND", "[OPTIONS]"):
                continue
            chain = plain[: 3 if plain[:2] in groups else 2 if plain[:1] in groups else 1]
            assert chain in known, line
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert named <= options(chain), line


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_file_of_the_repository_that_is_named_exists(page: Path) -> None:
    package = ROOT / "src" / "pitboss"
    for word in code(page):
        if not re.fullmatch(r"[\w./-]+\.py|(?:docs|tests|src)/[\w./-]+", word):
            continue
        if "<" in word or "NN" in word:
            continue
        places = [ROOT / word, package / word]
        assert any(place.exists() for place in places) or list(package.rglob(word)), word


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_names_a_package_index(page: Path) -> None:
    text = page.read_text("utf-8").lower()
    assert [host for host in INDEX_HOSTS if host in text] == []


def test_the_two_commands_of_the_readme_are_targets() -> None:
    blocks = re.findall(r"```console\n(make [a-z]+)\n```", (ROOT / "README.md").read_text("utf-8"))
    assert blocks == ["make demo", "make test"]
    assert {"demo", "test"} <= targets()


def test_the_example_of_the_readme_uses_a_skill_that_init_writes() -> None:
    named = set(re.findall(r"[\w-]+\.yaml", (ROOT / "README.md").read_text("utf-8")))
    assert named
    assert named <= {name for venue in venues() for name in venue.examples()}


def test_policies_assets_errors_and_exit_codes_are_all_reported() -> None:
    perp, result = (DOCS / "perp.md").read_text("utf-8"), (DOCS / "errors.md").read_text("utf-8")
    assumed, predict, community = (
        (DOCS / page).read_text("utf-8") for page in ("backtesting-assumptions.md", "predict.md", "community.md")
    )
    for venue in venues():
        for name in venue.policies():
            texts = {"predict": [predict], "community": [community]}.get(venue.name, [perp, assumed])
            assert any(f"`policy/{name}`" in text for text in texts), name
    for name in {**METRICS, **next(venue for venue in venues() if venue.name == "perp").metrics()}:
        assert f"`{name}`" in perp, name
    for symbol in SHIPPED:
        assert re.search(rf"\b{symbol}\b", perp), symbol
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, BaseException):
            assert f"| `{name}` |" in result, name
    for number in (program.OK, program.FAILED, program.USER_ERROR, program.INTERRUPTED):
        assert f"\n| {number} | " in result


def test_sections_of_the_prompt_are_reported_in_their_order() -> None:
    perp = (DOCS / "perp.md").read_text("utf-8")
    folder = ROOT / "src" / "pitboss" / "venues" / "perp" / "sections"
    modules = [
        importlib.import_module(f"pitboss.venues.perp.sections.{file.stem}") for file in folder.glob("[a-z]*.py")
    ]
    titles = [re.search(r"`(## [\w ]+)", module.__doc__ or "") for module in sorted(modules, key=lambda one: one.PLACE)]
    places = [perp.find(f"`{title[1].strip()}") for title in titles if title]
    assert len(places) == len(modules)
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("page", sorted((DOCS / "adr").glob("0*.md")), ids=name_of)
def test_a_decision_record_has_its_three_parts_and_is_under_a_page(page: Path) -> None:
    text = page.read_text("utf-8")
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert heads[0].startswith(page.name[:4])
    assert heads[1:] == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 60
    assert f"]({page.name})" in (DOCS / "adr" / "README.md").read_text("utf-8")
