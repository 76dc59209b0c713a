"""Changing one field of a skill's text: the document has exactly that change, and the rest of the text stays."""

import difflib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.runs.venues import venues
from pitboss.skill.edit import changed, edit
from pitboss.skill.parse import parse, parse_value
from pitboss.skill.yaml_write import yaml_text

EXAMPLES = {name: text for venue in venues() for name, text in venue.examples().items()}
ODD = """\
# head
pitboss: 1
name: 'quoted name'   # why
strategy: {mode: rules, entry: "a: b"}
empty:
schedule:   # section
    every: 1h
    wake_when:
    - new_news
    - move_atr: 2      # twice

    # about the next
    note: >-
        folded
        text

anchored: &a [x, y]
same: *a
last:
  deep:
    deeper: 1
# tail
"""
TEXTS = [*EXAMPLES.values(), ODD]
PATHS = [
    ("name",), ("model",), ("description",), ("brand_new",), ("strategy", "thesis"), ("strategy", "text"), ("strategy",),
    ("risk", "max_leverage"), ("risk", "gas"), ("tools", "built_in"), ("tools", "mcp_servers"), ("context", "memory", "trades"),
    ("schedule", "every"), ("schedule", "wake_when"), ("schedule", "note"), ("empty",), ("empty", "inner"),
    ("last", "deep", "deeper"), ("last", "deep", "other"), ("anchored",), ("strategy", "entry"),
]  # fmt: skip

texts = st.text(max_size=60) | st.sampled_from(
    [
        "null",
        "true",
        "1.5",
        "a: b",
        "# no",
        "- x",
        "",
        " lead",
        "tab\t",
        "x\n",
        "one\ntwo",
        "one\n\n two\n",
        "\nx",
        "é…\u2028",
        "[a]",
        "'",
        '"',
        "y\r\nz",
        "0x1",
        "---",
        "key:",
    ]
)
scalars = (
    texts
    | st.integers(-(10**12), 10**12)
    | st.booleans()
    | st.decimals(-(10**6), 10**6, places=3).map(lambda value: value.normalize() + 0)
)
values = (
    st.none() | scalars | st.lists(scalars, max_size=5) | st.lists(st.fixed_dictionaries({"id": texts}), max_size=3)
)


@settings(max_examples=120, deadline=None)
@given(text=st.sampled_from(TEXTS), path=st.sampled_from(PATHS), value=values)
def test_an_edited_text_holds_the_document_with_that_change_and_no_other(
    text: str, path: tuple[str, ...], value: Any
) -> None:
    wanted = changed(parse(text).value, path, value)
    try:
        result = edit(text, path, value)
    except UserError:
        # Characters that no YAML text may hold are refused by the parser of the whole text already.
        assert any("\ud800" <= char <= "\udfff" for char in str(value))
        return
    assert parse(result).value == wanted


@pytest.mark.parametrize("name", EXAMPLES)
def test_comments_and_all_other_lines_stay_when_a_field_changes(name: str) -> None:
    text = EXAMPLES[name]
    result = edit(text, ("max_steps",), 2)
    kept = [line for line in difflib.ndiff(text.splitlines(), result.splitlines()) if line[0] in "-+"]
    assert len(kept) <= 2
    assert result.count("#") == text.count("#")


def test_a_comment_stays_in_its_column_and_a_removed_section_leaves_no_empty_key() -> None:
    text = "risk:            # caps\n  max_leverage: 3  # times\nname: x\n"
    assert edit(text, ("risk", "max_leverage"), 10) == "risk:            # caps\n  max_leverage: 10 # times\nname: x\n"
    assert edit(text, ("risk", "max_leverage"), None) == "name: x\n"


def test_a_new_key_stands_where_the_schema_has_it() -> None:
    order = {(): ["pitboss", "name", "model", "risk"]}
    text = "pitboss: 1\nname: x\nrisk:\n  max_leverage: 3\n"
    result = edit(text, ("model",), "standin/analyst", keys=lambda path: order.get(path, []))
    assert result == "pitboss: 1\nname: x\nmodel: standin/analyst\nrisk:\n  max_leverage: 3\n"


def test_json_is_written_anew_with_exact_numbers() -> None:
    result = edit('{"name": "x", "risk": {"a": 0.1}}', ("risk", "b"), Decimal("0.30"), ".json")
    assert parse(result, ".json").value == {"name": "x", "risk": {"a": Decimal("0.1"), "b": Decimal("0.3")}}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize("other", ["1e999", "-1e400", "1e-400", r'["\ud800"]', '{"c": [1e999]}'])
def test_json_is_not_written_anew_where_another_value_would_change(suffix: str, other: str) -> None:
    text = f'{{"a": 1, "b": {other}}}'
    with pytest.raises(UserError, match="a cannot be changed in this text"):
        edit(text, ("a",), 2, suffix)
    assert parse(edit(text, ("b",), 2, suffix), suffix).value == {"a": 1, "b": 2}


def test_json_in_a_yaml_file_is_not_written_so_that_it_is_no_yaml() -> None:
    text = '{"a": 1, "b": "\\u007f"}'
    with pytest.raises(UserError, match="a cannot be changed in this text"):
        edit(text, ("a",), 2)
    assert parse(edit(text, ("a",), 2, ".json"), ".json").value == {"a": 2, "b": "\x7f"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a",), 2),
        (("a",), None),
        (("b", "c"), "y"),
        (("b", "t"), "n1\nn2\n"),
        (("b", "t"), None),
        (("b", "n"), {"q": 1}),
        (("b",), None),
        (("d", "y"), 4),
        (("e",), {"f": [1]}),
    ],
)
def test_lines_end_as_they_did(path: tuple[str, ...], value: Any) -> None:
    text = "a: 1   # one\nb:\n  c: x\n  t: |\n    l1\n    l2\nd: {y: &x 3, z: *x}\n"
    result = edit(text.replace("\n", "\r\n"), path, value)
    assert result == edit(text, path, value).replace("\n", "\r\n")
    assert edit(text.replace("\n", "\r\n"), ("a",), 1) == text.replace("\n", "\r\n")


def test_a_json_text_keeps_its_line_ends() -> None:
    assert edit('{\r\n"a": 1\r\n}', ("a",), 2, ".json") == '{\r\n  "a": 2\r\n}\r\n'


def test_a_number_and_the_flag_that_python_takes_as_equal_are_different_values() -> None:
    assert edit("a: 1 # why\nb: 0\n", ["a"], True) == "a: true # why\nb: 0\n"
    assert edit("a: {b: 1}\n", ["a", "b"], True) == "a: {b: true}\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [("1e20000", "1E+20000"), ("-2.5e-20000", "-2.5E-20000"), ("NaN", ".nan"), ("Infinity", ".nan"), ("1e30", "1" + "0" * 30)],
)  # fmt: skip
def test_a_number_that_no_field_takes_is_written_in_few_characters(value: str, written: str) -> None:
    """`1e999999999` has a billion digits; the check of the result refuses it."""
    number = parse_value({"NaN": ".nan", "Infinity": ".inf"}.get(value, value))
    assert edit("a: 1\nb: 2\n", ["a"], number) == f"a: {written}\nb: 2\n"
    assert edit(f"a: {{b: {written}, c: 1}}\n", ["a", "c"], 2) == f"a: {{b: {written}, c: 2}}\n"
    with pytest.raises(UserError):
        edit("a: &x {b: 1}\nc: *x\n", ["a", "b"], number)


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "", "a: !!python/object x\n", "a: 1\na: 2\n"])
def test_a_text_that_is_no_document_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UserError):
        edit(text, ("name",), "x")


@given(
    document=st.dictionaries(
        st.sampled_from(["a", "b", "c d", "yes", "1"]), values.filter(lambda value: value is not None)
    )
)
@settings(max_examples=60, deadline=None)
def test_a_document_written_as_yaml_reads_back(document: dict[str, Any]) -> None:
    if document and not any("\ud800" <= char <= "\udfff" for char in str(document)):
        assert parse(yaml_text(document)).value == document
