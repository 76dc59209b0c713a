"""What a server says about a tool: every word of it is pinned, little of it is shown, and its name is ours."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.tools.mcp.definition import MAX_BYTES, clean_text, digest_of, read_definition, tool_spec
from pitboss.tools.mcp.tool_names import name_of, names_of
from tools.mcp.mcp_connections import LOOK, approved_definition

FULL: dict[str, Any] = {
    "name": "look",
    "title": "Look",
    "description": "Looks at a coin.",
    "inputSchema": {
        "type": "object",
        "properties": {"coin": {"type": "string", "description": "Which", "enum": ["btc", "eth"], "default": "btc"}},
        "required": ["coin"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": True},
    "_meta": {"since": 1},
}
LEAF = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a value, by its path."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((*path, key), *places(value[key], (*path, key)))]


def mutated_definitions(draw: st.DrawFn) -> dict[str, Any]:
    """The full definition with something in it changed, taken out or put in."""
    new = copy.deepcopy(FULL)
    *way, last = draw(st.sampled_from(places(FULL)))
    held: Any = new
    for key in way:
        held = held[key]
    kind = draw(st.sampled_from(["replace", "remove", "add", "letter"]))
    if kind == "remove":
        del held[last]
    elif kind == "add":
        target = held if isinstance(held, dict) else new
        target[draw(st.text(min_size=1, max_size=8))] = draw(LEAF)
    elif kind == "letter" and isinstance(held[last], str):
        held[last] = held[last] + draw(st.sampled_from([" ", "\u200b", "\u0430", "!", "\n"]))
    else:
        held[last] = draw(LEAF)
    return new


def check_mutation(new: dict[str, Any]) -> None:
    same = repr(_ordered(new)) == repr(_ordered(FULL))
    assert (digest_of("srv", "1", new) == digest_of("srv", "1", FULL)) == same


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, _ordered(item)) for key, item in value.items())
    return [_ordered(item) for item in value] if isinstance(value, list) else value


@given(st.composite(mutated_definitions)())
@settings(max_examples=25, deadline=None)
def test_no_change_of_a_definition_keeps_its_digest(new: dict[str, Any]) -> None:
    check_mutation(new)


@pytest.mark.proof
@given(st.composite(mutated_definitions)())
@settings(max_examples=5_000, deadline=None)
def test_no_change_of_thousands_keeps_its_digest(new: dict[str, Any]) -> None:
    check_mutation(new)


def test_the_digest_covers_who_says_it_and_not_the_order_in_which() -> None:
    assert digest_of("srv", "1", FULL) != digest_of("srv", "2", FULL)
    assert digest_of("srv", "1", FULL) != digest_of("other", "1", FULL)
    assert digest_of("srv", "1", dict(reversed(FULL.items()))) == digest_of("srv", "1", FULL)
    assert len(digest_of("srv", "1", FULL)) == 64


def test_the_digest_of_a_definition_stays_the_same_between_versions_of_this_program() -> None:
    assert approved_definition().digest == "93a804c95ce891383c483ef3a93e8969da08f7bdb9013fa0afdf902945817c0c"


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {},
        {"name": "x"},
        {"name": 7, "inputSchema": {}},
        {"name": "x", "inputSchema": []},
        {"name": "x", "inputSchema": {"default": float("nan")}},
        {"name": "x", "inputSchema": {"default": float("inf")}},
        {"name": "x", "inputSchema": {"default": 10**30}},
        {"name": "x", "inputSchema": {"default": "\ud800"}},
        {"name": "x", "inputSchema": {}, "description": "x" * MAX_BYTES},
    ],
)
def test_what_cannot_be_pinned_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError, match=r"^a "):
        read_definition("srv", "1", raw)


def test_a_change_below_any_depth_is_seen_or_the_definition_is_refused() -> None:
    def nested(depth: int, leaf: str) -> dict[str, Any]:
        schema: Any = {"const": leaf}
        for _ in range(depth):
            schema = {"not": schema}
        return {"name": "x", "inputSchema": schema}

    for depth in range(120):
        try:
            digests = {read_definition("srv", "1", nested(depth, leaf)).digest for leaf in "ab"}
        except ValueError:
            assert depth > 50
        else:
            assert len(digests) == 2


def test_a_model_sees_the_approved_words_cleaned_and_cut() -> None:
    raw = {
        **LOOK,
        "description": "Looks.\x1b[2J\u202e\u200b\U000e0041" + "y" * 2_000,
        "inputSchema": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "a\x00b" + "z" * 2_000}},
        },
    }
    seen = tool_spec(approved_definition(raw), "mcp_srv__look")
    assert seen.description.startswith("Looks. [2J   ")
    assert len(seen.description) == 1_000
    words = seen.schema["properties"]["word"]["description"]
    assert words.startswith("a b")
    assert len(words) == 1_000


@given(st.text(max_size=2_000), st.integers(10, 100))
@settings(max_examples=25)
def test_shown_text_is_never_longer_than_its_limit_and_has_no_unseen_signs(text: str, limit: int) -> None:
    seen = clean_text(text, limit)
    assert len(seen) <= limit
    assert not {sign for sign in seen if ord(sign) < 32 and sign != "\n"}
    assert not set(seen) & set("\u200b\u202e\u2066\ufeff\u00ad")


@pytest.mark.parametrize("tool", ["look", "get-sum", "A_9", "x" * 55])
def test_a_plain_name_is_kept_behind_the_servers_id(tool: str) -> None:
    assert name_of("srv", tool) == f"mcp_srv__{tool}"


@pytest.mark.parametrize("tool", ["", "a b", "a.b", "lооk", "a\n", "x" * 56, "a/b", "../x", "\x00"])
def test_a_name_that_is_not_plain_is_refused_in_one_printable_line(tool: str) -> None:
    with pytest.raises(ValueError, match="cannot be offered") as refusal:
        name_of("srv", tool)
    assert str(refusal.value).isprintable()


def test_an_id_that_could_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be the id"):
        name_of("a__b", "c")


@given(st.lists(st.text(alphabet="ab_-", min_size=1, max_size=4), max_size=8))
@settings(max_examples=25)
def test_names_never_clash(tools: list[str]) -> None:
    names, refused = names_of("srv", tools, {"a", "mcp_srv__b"})
    assert len(set(names.values())) == len(names)
    assert not set(names) & {"a", "b"}
    assert set(names) | {tool for tool in tools if tools.count(tool) > 1 or tool in ("a", "b")} == set(tools)
    assert all("refused" in line for line in refused)
