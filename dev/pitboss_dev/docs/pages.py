"""The pages of `docs/` that are written by the code they describe: rules, skill, tools, cli, settings, limits.

    python -m pitboss_dev.docs.pages            write them anew (`make docs`)
    python -m pitboss_dev.docs.pages --check    exit 1 and name those that are out of date (`make check`)

The same code gives the same bytes: no clock, no environment, no order but a fixed one. It does not write the pages that
people write, and it knows no facts of its own: every number is read from the module that uses it. The command line is
a layer above this one, so it is asked as the program it is, in a process of its own.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import unified_diff
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pitboss.bootstrap.settings import FILE, Settings, describe
from pitboss.core.rulebook import Rule
from pitboss.skill.document import FieldNote, describe_fields, json_schema
from pitboss.venues.perp.rules import RULES
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.system_prompt import REQUIRED
from pitboss.venues.predict.rules import RULES as PREDICT_RULES
from pitboss.venues.predict.skill import PredictSkill
from pitboss_dev.docs.markdown import table
from pitboss_dev.docs.tools_page import tools_page

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
HEAD = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def pages() -> dict[str, str]:
    """File name → text of every generated page."""
    program = _ask_program()
    made: dict[str, Callable[[], str]] = {
        "cli.md": lambda: cli_page(program["page"]),
        "limits.md": lambda: limits_page(program["bounds"]),
        "rules.md": rules_page,
        "settings.md": settings_page,
        "skill.md": skill_page,
        "tools.md": tools_page,
    }
    return {name: f"{HEAD}\n\n{make().strip()}\n" for name, make in made.items()}


def stale(folder: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Pages that are missing or differ, with the first lines of the difference."""
    found: dict[str, str] = {}
    for name, text in made.items():
        file = folder / name
        stored = file.read_text("utf-8") if file.is_file() else ""
        if stored != text:
            changes = unified_diff(
                stored.splitlines(), text.splitlines(), f"docs/{name}", "what the code says", n=0, lineterm=""
            )
            found[name] = "\n".join(list(changes)[:12])
    return found


def write(folder: Path, made: Mapping[str, str]) -> list[str]:
    """Write the pages that differ; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = sorted(stale(folder, made))
    for name in changed:
        (folder / name).write_text(made[name], "utf-8")
    return changed


# Rules ----------------------------------------------------------------------------------------------------------------

_SCOPES = {"every": "every action", "opens": "`open_long` and `open_short`", "mints": "`mint`"}


def rules_page() -> str:
    """The book of rules, from the rules' own docstrings."""
    parts = [
        "# Rules of the engine",
        "Every proposal meets the rules of its venue in this order. The first that refuses names the verdict, with "
        "its code and the numbers; the margin of every rule is recorded all the same, so that one can see how close the "
        "others were. Codes are stable: they are never renamed and never used for something else. A refusal changes "
        "nothing on the account.",
        f"The perp venue has {len(RULES)} rules. `close`, `reduce` and `cancel` meet only the rules whose scope is every "
        "action, so no cap and no halt can trap a position. `no_op` is not judged. How the rules fit into the rest is in "
        "[perp.md](perp.md).",
        _book(RULES),
        f"The predict venue has {len(PREDICT_RULES)}. `redeem` meets only the rules whose scope is every action, so no cap "
        "can trap a position; `hold` is not judged. How they fit into the rest is in [predict.md](predict.md).",
        _book(PREDICT_RULES),
    ]
    for rule in (*RULES, *PREDICT_RULES):
        lines = [f"## {rule.code}", _title(rule.doc), _rest(rule.doc)]
        lines.append(f"Judges {_SCOPES[rule.scope]}. Source: [`{_file(rule.check)}`](../{_file(rule.check)}).")
        parts += [line for line in lines if line]
    return "\n\n".join(parts)


def _book(rules: Sequence[Rule]) -> str:
    rows = [(f"[`{rule.code}`](#{rule.code.lower()})", _title(rule.doc), _SCOPES[rule.scope]) for rule in rules]
    return table(("code", "what it makes sure of", "judges"), rows)


def _title(doc: str) -> str:
    return doc.strip().splitlines()[0]


def _rest(doc: str) -> str:
    """The paragraphs after the first line, each on one line."""
    _, _, rest = doc.strip().partition("\n")
    return "\n\n".join(" ".join(part.split()) for part in rest.strip().split("\n\n") if part.strip())


def _file(thing: Callable[..., object]) -> str:
    return f"src/{thing.__module__.replace('.', '/')}.py"


# PerpSkill ----------------------------------------------------------------------------------------------------------------


def skill_page() -> str:
    """Every field of a skill document."""
    notes = describe_fields()
    maps = [note.path for note in notes if note.type == "map" and "." not in note.path]
    parts = [
        "# The skill document",
        "A skill is one YAML or JSON file that says what an agent is to do, what it sees, and how far it may go. Nothing "
        "in it is executable. `pitboss init my-skills` writes three commented examples, `pitboss skill check FILE` says "
        "what is wrong with one, `pitboss skill preview FILE` shows what the model would be given, and `pitboss skill "
        "schema` prints JSON Schema for editors.",
        "Keys may be written in snake_case or camelCase. An unknown key is an error, with the nearest known one as a "
        "hint. `null` is a value only where the default says so; elsewhere a key has a value or is left out.",
        "## Top level",
        _fields([note for note in notes if note.path.partition(".")[0] not in maps]),
    ]
    for name in maps:
        (whole,) = [note for note in notes if note.path == name]
        parts += [f"## {name}", whole.description]
        if name == "strategy":
            parts.append("Which texts a mode cannot do without:")
            rows = [(f"`{mode}`", ", ".join(f"`{text}`" for text in needed)) for mode, needed in REQUIRED.items()]
            parts.append(table(("mode", "required"), rows))
        parts.append(_fields([note for note in notes if note.path.startswith(f"{name}.")]))
    return "\n\n".join([*parts, *_predict_part()])


def _predict_part() -> list[str]:
    """The fields of predict documents, which are a kind of their own."""
    notes = describe_fields(PredictSkill)
    return [
        "## Skills of the predict venue",
        "A document that says `venue: predict` has these fields instead; what is said above about spelling, unknown keys "
        "and `null` holds for it too. `pitboss init my-bets --venue predict` writes a commented "
        "example, `pitboss skill check FILE` checks one, and `pitboss skill schema --venue predict` prints its JSON "
        "Schema. Commands for perp skills refuse it; what there is for it is in [predict.md](predict.md).",
        "The mandate may lie in a `.md` file beside the document, or in a folder below it. It is read with the "
        "document, and from then on the skill holds its text: the digest is that of a document with the same words in "
        "`strategy.text`, so a change of the file changes the digest and its name does not count. A path that leads "
        "outside the document's folder is refused, and so is a file where a document comes without a folder, as over MCP.",
        _fields(notes),
    ]


def _fields(notes: Iterable[FieldNote]) -> str:
    rows = [(f"`{note.path}`", note.type, _default(note), note.description) for note in notes]
    return table(("field", "type", "default", "meaning"), rows)


def _default(note: FieldNote) -> str:
    if note.default in ("required", "left out"):
        return note.default
    return f"`{note.default}`" if note.default else ("see below" if note.type == "map" else "empty")


# Settings -------------------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting with its default."""
    # Built without looking at the environment: the page must not depend on the machine it is made on.
    found = describe(Settings.model_construct())
    rows = [
        (
            f"`{one['key']}`",
            f"`{one['variable']}`",
            f"`{one['default']}`" if one["default"] else "empty",
            one["meaning"],
        )
        for one in found
    ]
    return "\n\n".join(
        [
            "# Settings",
            f"Each setting is a key of `{FILE}` in the workspace and an environment variable. The environment wins over "
            "the file, the file over the default; `--home` and `--db` on the command line win over both. `pitboss "
            "settings` shows the values that hold where you are. Secrets are not settings.",
            table(("key", "environment variable", "default", "meaning"), rows),
        ]
    )


# Limits ---------------------------------------------------------------------------------------------------------------


class Bound(NamedTuple):
    """One bound of the program: what it bounds, where its value stands, in which unit, and what happens beyond it."""

    what: str
    module: str
    name: str
    unit: str
    beyond: str

    def value(self) -> object:
        """The number that the code uses."""
        return getattr(import_module(f"pitboss.{self.module}"), self.name)


BOUNDS = (
    Bound("skill file", "skill.parse", "MAX_BYTES", "bytes", "refused"),
    Bound("nesting of a skill file", "skill.parse", "MAX_DEPTH", "levels", "refused"),
    Bound("values in a skill file, aliases expanded", "skill.parse", "MAX_VALUES", "values", "refused"),
    Bound("bars of a higher timeframe in the prompt", "agent.sections", "HIGHER_BARS", "bars", "the newest are shown"),
    Bound("arguments of one tool call", "agent.terminal", "MAX_ARGUMENT_CHARS", "characters", "told to the model"),
    Bound("result of one tool call", "agent.loop", "MAX_RESULT_CHARS", "characters", "cut, and marked as cut"),
    Bound("calls in one reply of a model", "agent.loop", "MAX_CALLS", "", "the rest are answered with that"),
    Bound("nesting of a stored proposal", "core.codec", "DEEPEST", "levels", "written as a remark in its place"),
    Bound("smallest order of the venue", "venues.perp.caps", "VENUE_MINIMUM_USD", "USD", "`R6_ORDER_SIZE`"),
    Bound("significant figures of a price", "core.asset", "MAX_SIGNIFICANT_FIGURES", "figures", "rounded"),
    Bound(
        "decimals of a price",
        "core.asset",
        "MAX_PRICE_DECIMALS",
        "less the asset's size decimals",
        "rounded; whole numbers are always fine",
    ),
    Bound("bars before a regime is named", "agent.regime", "BARS_NEEDED", "bars", "`unknown` with fewer"),
    Bound("failures of the model in a row", "sim.course", "MAX_MODEL_ERRORS", "ticks", "the run ends, resumable"),
    Bound("daily returns for a Sharpe", "sim.statistics.returns", "MIN_RETURNS", "returns", "none with fewer"),
    Bound(
        "daily returns for an interval",
        "sim.statistics.bootstrap",
        "MIN_BOOTSTRAP_RETURNS",
        "returns",
        "none with fewer",
    ),
    Bound("draws of the bootstrap", "sim.statistics.bootstrap", "DRAWS", "draws", ""),
    Bound("bars of a symbol in a report", "bootstrap.reporting", "MOST_BARS", "bars", "a coarser interval is drawn"),
    Bound("wait for a busy SQLite database", "store.sqlite", "BUSY_TIMEOUT_MS", "milliseconds", "an error"),
    Bound("records read at a time", "store.journal", "PAGE", "records", ""),
)
"""Bounds that are neither a field of the skill nor a setting."""


def limits_page(program: Sequence[Sequence[Any]]) -> str:
    """Every bound in one place: the program's own, the skill's, and what can be set."""
    rows = [(one.what, f"{_grouped(one.value())} {one.unit}".strip(), one.beyond, f"`{one.module}`") for one in BOUNDS]
    rows += [
        (what, f"{_grouped(value)} {unit}".strip(), beyond, f"`{module}`")
        for what, value, unit, beyond, module in program
    ]
    return "\n\n".join(
        [
            "# Limits",
            "Every bound of the program, with what happens beyond it. The caps of an account are not here: those are the "
            "skill's `risk` section and the [rules](rules.md).",
            "## Of the program",
            table(("what", "bound", "beyond it", "where"), rows),
            "## Of the skill's fields",
            "A value outside is refused when the skill is read.",
            *_bounded(PerpSkill),
            "## Of a predict skill's fields",
            "`schedule.every` is from 10s to 1h; a mandate's file is as long as a text at most.",
            *_bounded(PredictSkill),
            "## That can be set",
            "See [settings.md](settings.md): `max_gap` (missing bars in a row that a run tolerates) and `commit_records` "
            "(free ticks that share a transaction). The first can also be given to one run as `--max-gap`.",
        ]
    )


def _bounded(root: type[PerpSkill] | type[PredictSkill]) -> list[str]:
    """The bounds of a kind of document: those of numbers, and those of texts and lists."""
    notes = [note for note in describe_fields(root) if re.search(r"\b(from|above|to) -?\d", note.type)]
    schema = json_schema(root)
    return [
        table(("field", "type", "default"), [(f"`{one.path}`", one.type, _default(one)) for one in notes]),
        "Texts and lists have a greatest length:",
        table(("field", "at most"), [(f"`{path}`", most) for path, most in _lengths(schema, "", schema["$defs"])]),
    ]


def _lengths(schema: Mapping[str, Any], path: str, parts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every field of the schema with a greatest length, in document order. An entry of a list is `field[]`."""
    found: list[tuple[str, str]] = []
    for name, part in _properties(schema).items():
        where = f"{path}.{name}".removeprefix(".")
        for place, one in ((where, part), (f"{where}[]", part.get("items", {}))):
            for keyword, unit in (("maxLength", "characters"), ("maxItems", "entries")):
                if keyword in one:
                    found.append((place, f"{one[keyword]:,} {unit}"))
            if "$ref" in one:
                found += _lengths(parts[one["$ref"].rpartition("/")[2]], place, parts)
    return found


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return schema.get("properties", {})


def _grouped(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


# Command line ---------------------------------------------------------------------------------------------------------

_PROGRAM = """
import json
from pitboss.cli import main, options
bounds = [
    ("repeats of a backtest", options.MOST_REPEATS, "runs", "refused", "cli.options"),
    ("digits of an amount on the command line", options.MOST_DIGITS, "digits", "refused", "cli.options"),
    ("places of an amount on the command line", options.MOST_PLACES, "before or after the point", "refused", "cli.options"),
]
print(json.dumps({"page": main.app.generate_docs(output_format="markdown"), "bounds": bounds}))
"""
_EVERYWHERE = ("* `--home PATH`:", "* `--db STR`:")


@cache
def _ask_program() -> dict[str, Any]:
    """What the command line says about itself; asked once in a process."""
    answer = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"the command line cannot be asked:\n{answer.stderr}")
    return json.loads(answer.stdout)


def cli_page(said: str) -> str:
    """The program's own help for every command. The two options that every command has are told once."""
    first, *commands = re.split(r"\n(?=##+ pitboss )", said)
    parts = [
        "# Command line",
        "Exit codes: 0 the work is done · 1 the work itself failed · 2 something the person can fix, told in one line "
        "with a hint · 130 stopped by Ctrl-C, with everything committed so far kept. More in [errors.md](errors.md). With "
        "`--json` standard output is one JSON document and nothing else; remarks and progress go to standard error.",
        "`--home` and `--db` may be given with every command, before or after its name.",
        re.sub(r"## Table of Contents\n.*?(?=\*\*Commands\*\*)", "", first.partition("\n")[2], flags=re.DOTALL).strip(),
        *(_without_everywhere(command) for command in commands),
    ]
    return "\n\n".join(parts)


def _without_everywhere(command: str) -> str:
    kept = "\n".join(line for line in command.splitlines() if not line.startswith(_EVERYWHERE))
    return re.sub(r"\*\*Parameters\*\*:\n*\Z", "", kept).strip()


def main(arguments: Sequence[str] | None = None, folder: Path = DOCS) -> int:
    """Write or check the pages, and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pitboss_dev.docs.pages", description="Generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is out of date")
    asked = parser.parse_args(arguments)
    made = pages()
    if not asked.check:
        for name in write(folder, made):
            print(f"wrote docs/{name}")
        return 0
    found = stale(folder, made)
    for name, changes in sorted(found.items()):
        print(f"docs/{name} is out of date; run: make docs\n{changes}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
