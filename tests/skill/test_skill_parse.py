"""Text → plain values: exact numbers, YAML 1.2, and no harm from untrusted text."""

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.skill.parse import parse, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-3", -3),
        ("2.50", Decimal("2.50")),
        ("1e3", Decimal("1000")),
        (".5", Decimal("0.5")),
        ("0x1F", 31),
        ("0o17", 15),
        ("010", 10),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("~", None),
        ("null", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("2025-06-01", "2025-06-01"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("[BTC, 1.5]", ["BTC", Decimal("1.5")]),
        ("{a: {b: [1]}}", {"a": {"b": [1]}}),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_yaml_values_follow_the_core_schema_of_yaml_1_2(text: str, value: Any):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".nan", ".inf", "-.INF", "9" * 500])
def test_numbers_that_are_none_stay_recognisable_for_the_schema_to_refuse(text: str):
    assert parse_value(text).is_nan()


def test_json_numbers_are_exact():
    assert parse('{"a": 0.1, "b": 1e2, "c": 3}', ".json").value == {"a": Decimal("0.1"), "b": Decimal(100), "c": 3}


def test_lines_of_keys_and_items_are_known():
    lines = parse("a: 1\nb:\n  - x\n  - c:\n      d: 2\n").lines
    assert lines[("b",)] == 2
    assert lines[("b", 1)] == 4
    assert lines[("b", 1, "c", "d")] == 5


def test_aliases_stand_for_what_they_name():
    assert parse("a: &x [1, 2]\nb: *x\n").value == {"a": [1, 2], "b": [1, 2]}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("a: [1\nb: 2\n", ".yaml", "line 2: not valid YAML"),
        ("a: 1\nb: c: d\n", ".yaml", "line 2: not valid YAML"),
        ("\ta: 1", ".yaml", "line 1: not valid YAML"),
        ("a: \x01", ".yaml", "not valid YAML"),
        ('a: "\\UFFFFFFFF"', ".yaml", "not valid YAML"),
        ('a: "\\U00110000"', ".yaml", "not valid YAML"),
        ("%YAML 1.9\n---\na: 1\n", ".yaml", "not valid YAML"),
        ("a: 1\nb: 2\na: 3\n", ".yaml", "line 3: the key 'a' is given twice"),
        ("a: 1\n---\nb: 2\n", ".yaml", "line 2: a second document starts here"),
        ("a: !!python/object:os.system x\n", ".yaml", "line 1: the tag"),
        ("a: !x 1", ".yaml", "line 1: the tag '!x' is not allowed"),
        ("a: *nope", ".yaml", r"line 1: the alias \*nope refers to nothing"),
        ("a: &x [*x]", ".yaml", r"line 1: the alias \*x refers to nothing"),
        ("? [1]\n: 2\n", ".yaml", "line 1: a key must be plain text"),
        (BOMB, ".yaml", "more than 20000 values"),
        ("[" * 100_000, ".yaml", "nested more than 20 levels"),
        ("- " * 100, ".yaml", "nested more than 20 levels"),
        ("", ".yaml", "empty"),
        ("# only a comment\n", ".yaml", "empty"),
        ("", ".json", "empty"),
        ("x" * 1_000_001, ".yaml", "larger than 1 MB"),
        ('{"a": 1,\n "b": }', ".json", "line 2: not valid JSON"),
        ('{"a": 1, "a": 2}', ".json", "the key 'a' is given twice"),
        ("[" * 100_000, ".json", "nested more than 20 levels"),
        ('{"a":' * 30 + "1" + "}" * 30, ".json", "nested more than 20 levels"),
    ],
)
def test_bad_text_is_refused_with_its_place_and_a_hint(text: str, suffix: str, message: str):
    with pytest.raises(UserError, match=message) as caught:
        parse(text, suffix)
    assert caught.value.hint
    assert "\n" not in caught.value.message


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#\n ,?%@`1.~\t<") | st.characters(), max_size=60))
def test_any_text_either_parses_or_is_a_user_error(text: str):
    for suffix in (".yaml", ".json"):
        with suppress(UserError):
            parse(text, suffix)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcXY_", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1), PLAIN, min_size=1, max_size=3))
def test_json_reads_the_same_as_json_and_as_yaml(plain: dict[str, Any]):
    text = json.dumps(plain)
    assert parse(text, ".json").value == parse(text, ".yaml").value == plain
