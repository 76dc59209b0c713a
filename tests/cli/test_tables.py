"""Tables in a window: at every width they fit, words stay whole, and columns are left out instead of being cut."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from run_command import pitboss_ok
from table_widths import check_fits, table_lines

WORDS = st.text("abcdefgh漢", min_size=1, max_size=14)
CELLS = st.lists(WORDS, max_size=6).map(" ".join)
Table = tuple[list[str], list[list[str]], list[int], list[int]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(1, 6))
    headings = draw(st.lists(CELLS, min_size=count, max_size=count))
    rows = draw(st.lists(st.lists(CELLS, min_size=count, max_size=count), max_size=3))
    folds = draw(st.lists(st.integers(0, count - 1), unique=True))
    drop = draw(st.lists(st.integers(1, count - 1), unique=True)) if count > 1 else []
    return headings, rows, folds, drop


@settings(max_examples=40)
@given(tables(), st.integers(40, 120))
def test_a_table_fits_and_breaks_no_word(table: Table, width: int) -> None:
    headings, rows, folds, drop = table
    check_fits(width, headings, rows, folds=folds, drop=drop)


def test_a_wider_window_shows_more_columns_and_a_narrow_one_names_what_is_missing() -> None:
    headings = ["run", "status", "model", "range", "created"]
    rows = [["a" * 12, "complete", "groq/llama-3.3-70b-versatile", "2025-02-10 to 2025-03-10", "2025-11-18 01:02"]]
    narrow, wide = (table_lines(width, headings, rows, folds=[2], drop=[4, 3]) for width in (80, 120))
    assert narrow[0].split() == ["run", "status", "model", "range"]
    assert narrow[-1] == "not shown in this width: created"
    assert wide[0].split() == headings
    assert len(wide) == 2
    assert table_lines(60, headings, rows, folds=[2], drop=[4, 3])[0].split() == ["run", "status", "model"]


def test_a_word_that_fits_nowhere_is_broken_and_nothing_is_lost() -> None:
    path = "/a/very/long/path" * 10
    lines = table_lines(80, ["file", "size"], [[path, "12"]], folds=[0])
    assert "".join(line[:74].strip() for line in lines[1:]).replace("12", "") == path


COMMANDS = (
    "data list",
    "models list",
    "models cutoffs",
    "tools list",
    "venues list",
    "settings",
    "mcp list",
    "runs list",
    "runs show last",
)


def test_the_tables_of_commands_fit_into_80_and_120_columns(
    home: Path, finished_run: Callable[[str], dict[str, Any]], table_headings: list[Sequence[str]]
) -> None:
    finished_run("policy/sma_cross")
    for number, command in enumerate(COMMANDS):
        pitboss_ok(*command.split(), "--home", home)
        assert len(table_headings) > number, command
