"""Generates the reference pages of `docs/` from the code they describe: rules, skill, tools, cli, settings, limits.

    python -m pitboss_dev.docs.pages            write the pages (`make docs`)
    python -m pitboss_dev.docs.pages --check    exit 1 and name those that are out of date (`make check`)

The same code gives the same bytes: nothing depends on the clock, the environment or other installed packages. Every number
is read from the module that uses it. The other pages of `docs/` are written by hand.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path

from pitboss.bootstrap.settings import FILE, Settings
from pitboss.bootstrap.settings_description import describe
from pitboss_dev.docs import command_tree
from pitboss_dev.docs.limits_page import limits_page
from pitboss_dev.docs.markdown import table
from pitboss_dev.docs.rules_page import rules_page
from pitboss_dev.docs.skill_page import skill_page
from pitboss_dev.docs.tools_page import tools_page

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
HEAD = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def pages() -> dict[str, str]:
    """File name → text of every generated page."""
    texts = {
        "cli.md": cli_page(_ask_program()),
        "limits.md": limits_page(),
        "rules.md": rules_page(),
        "settings.md": settings_page(),
        "skill.md": skill_page(),
        "tools.md": tools_page(),
    }
    return {name: f"{HEAD}\n\n{text.strip()}\n" for name, text in texts.items()}


def stale(folder: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """Pages that are missing or differ, with the first lines of the difference."""
    differences: dict[str, str] = {}
    for name, text in texts.items():
        file = folder / name
        stored = file.read_text("utf-8") if file.is_file() else ""
        if stored != text:
            changes = unified_diff(
                stored.splitlines(), text.splitlines(), f"docs/{name}", "generated now", n=0, lineterm=""
            )
            differences[name] = "\n".join(list(changes)[:12])
    return differences


def write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Write the pages that differ; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = sorted(stale(folder, texts))
    for name in changed:
        (folder / name).write_text(texts[name], "utf-8")
    return changed


# Settings -------------------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting with its default."""
    # Constructed, not loaded: the page must not depend on the environment of this machine.
    rows = [
        (
            f"`{setting['key']}`",
            f"`{setting['variable']}`",
            f"`{setting['default']}`" if setting["default"] else "empty",
            setting["meaning"],
        )
        for setting in describe(Settings.model_construct())
    ]
    return "\n\n".join(
        [
            "# Settings",
            f"Each setting is a key of `{FILE}` in the workspace and an environment variable. The environment takes "
            "precedence over the file `.env` in the current folder ([secrets.md](secrets.md#which-key-is-used)), that over "
            f"`{FILE}`, and that over the default; `--home` and `--db` on the command line take precedence over all of them. "
            "`pitboss settings` shows the values in effect. Secrets are not settings.",
            table(("key", "environment variable", "default", "meaning"), rows),
        ]
    )


# Command line ---------------------------------------------------------------------------------------------------------

_COMMON_OPTIONS = ("* `--home PATH`:", "* `--db STR`:")


@cache
def _ask_program() -> str:
    """The help of every command as Markdown, generated once per process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", f"from {command_tree.__name__} import main; main()"]  # -m would be in the usage
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if process.returncode:
        raise RuntimeError(f"the help of the commands cannot be generated:\n{process.stderr}")
    return process.stdout


def cli_page(markdown: str) -> str:
    """The help of every command. The two options that every command has are described once."""
    first, *commands = re.split(r"\n(?=##+ pitboss )", markdown)
    parts = [
        "# Command line",
        "Exit codes: 0 success · 1 the work itself failed · 2 an error that the user can fix, reported in one line "
        "with a hint · 130 stopped by Ctrl-C, with everything committed so far kept. More in [errors.md](errors.md). With "
        "`--json` standard output is one JSON document and nothing else; remarks and progress go to standard error.",
        "`--home` and `--db` may be given with every command, before or after its name.",
        "`RUN` is the id of a run, the start of it, `last` for the newest run, or `last~1`, `last~2`, … for those before it. "
        "Runs of studies are not counted there. `--from` and `--to` take dates, ISO times (UTC), and times before the end of "
        "the data, such as `-30d` or `-12h`; where no data is meant (`runs spend`, `data download`), before now.",
        "`pitboss completion install` makes the tab key complete commands and options in bash, zsh, fish and PowerShell.",
        re.sub(r"## Table of Contents\n.*?(?=\*\*Commands\*\*)", "", first.partition("\n")[2], flags=re.DOTALL).strip(),
        *(_without_common_options(command) for command in commands),
    ]
    return "\n\n".join(parts)


def _without_common_options(command: str) -> str:
    lines = "\n".join(line for line in command.splitlines() if not line.startswith(_COMMON_OPTIONS))
    return re.sub(r"\*\*Parameters\*\*:\n*\Z", "", lines).strip()


def main(arguments: Sequence[str] | None = None, folder: Path = DOCS) -> int:
    """Write or check the pages; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pitboss_dev.docs.pages", description="Generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is out of date")
    options = parser.parse_args(arguments)
    texts = pages()
    if not options.check:
        for name in write(folder, texts):
            print(f"wrote docs/{name}")
        return 0
    differences = stale(folder, texts)
    for name, changes in sorted(differences.items()):
        print(f"docs/{name} is out of date; run: make docs\n{changes}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
