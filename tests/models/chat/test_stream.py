"""Streams in every form that servers send: the same reply as in one piece, or a defined failure."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.models.chat import reply, stream
from pitboss.models.failures import Failure

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: Any = None, finish: Any = None, **top: Any) -> dict[str, Any]:
    return {"id": "s1", "model": "m1", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **top}


def text_of(*chunks: Any, ends: bool = True, end: str = "\n\n") -> str:
    events = [f"data: {one if isinstance(one, str) else json.dumps(one)}{end}" for one in chunks]
    return "".join([*events, f"data: [DONE]{end}"] if ends else events)


def read_reply(*chunks: Any, ends: bool = True) -> ModelReply:
    result = stream.read(text_of(*chunks, ends=ends))
    assert isinstance(result, ModelReply), result
    return result


def read_failure(*chunks: Any, ends: bool = True) -> Failure:
    result = stream.read(text_of(*chunks, ends=ends))
    assert isinstance(result, Failure), result
    return result


def tool_call_chunk(index: int | None, arguments: str | None = None, **more: Any) -> dict[str, Any]:
    function = {name: more.pop(name) for name in ("name",) if name in more}
    wish = more | {"function": function | ({} if arguments is None else {"arguments": arguments})}
    return chunk({"tool_calls": [wish if index is None else {"index": index, **wish}]})


END = chunk({}, "stop")


def test_pieces_of_text_are_joined_and_usage_is_taken_from_its_own_chunk() -> None:
    result = read_reply(
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "Pa"}),
        chunk({"content": "ris"}),
        END,
        {"id": "s1", "choices": [], "usage": USAGE},
    )
    assert (result.text, result.finish_reason, result.usage) == ("Paris", "stop", Usage(10, 5))
    assert (result.provider_id, result.model) == ("s1", "m1")
    assert result.cost_usd is None


@pytest.mark.parametrize(
    "text",
    [
        text_of(chunk({"content": "x"}), END, end="\r\n\r\n"),
        text_of(chunk({"content": "x"}), END).replace("data: ", "data:"),
        text_of(chunk({"content": "x"}), END).rstrip("\n"),
        ": KEEP ALIVE\n\n: again\n" + text_of(chunk({"content": "x"}), END),
        "\ufeff" + text_of(chunk({"content": "x"}), END),
        "id: 1\nretry: 5\nevent: message\n" + text_of(chunk({"content": "x"}), END),
        text_of(chunk({"content": "x"}), END, ends=False),
        text_of(chunk({"content": "x"})),
        text_of(chunk({"content": "x"}), END) + "data: this comes after the end\n\n",
        text_of(chunk({"content": "x"}), END).replace('"choices"', '\ndata: "choices"'),
        text_of(chunk({"content": "x"}), END).replace("\n", "\r"),
    ],
)
def test_the_form_of_the_events_does_not_matter(text: str) -> None:
    for form in (text, text.encode()):
        result = stream.read(form)
        assert isinstance(result, ModelReply), result
        assert result.text == "x"


def test_a_call_in_pieces_is_put_together() -> None:
    result = read_reply(
        tool_call_chunk(0, "", id="call_1", type="function", name="look"),
        tool_call_chunk(0, '{"ci'),
        tool_call_chunk(0, 'ty":1}'),
        tool_call_chunk(1, "{}", id="call_2", name="decide"),
        chunk({}, "tool_calls"),
    )
    assert result.calls == (ToolCall("call_1", "look", '{"city":1}'), ToolCall("call_2", "decide", "{}"))
    assert result.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([tool_call_chunk(0, "{", id="a", name="f"), tool_call_chunk(1, "[", id="b", name="g"), tool_call_chunk(0, "}"), tool_call_chunk(1, "]")], ["f{}", "g[]"]),
        ([tool_call_chunk(None, "{", id="a", name="f"), tool_call_chunk(None, "}")], ["f{}"]),
        ([tool_call_chunk(None, "{}", id="a", name="f"), tool_call_chunk(None, "{}", id="b", name="g")], ["f{}", "g{}"]),
        ([tool_call_chunk(None, "{}", name="f"), tool_call_chunk(None, "{}", name="g")], ["f{}", "g{}"]),
        ([tool_call_chunk(0, "{", id="a", name="f"), tool_call_chunk(0, "}", id="a", name="f")], ["f{}"]),
        ([tool_call_chunk(0, "{}", id="a", name="f"), tool_call_chunk(0, "{}", id="b", name="g")], ["f{}", "g{}"]),
        ([tool_call_chunk(0, "{", id="a", name="f"), tool_call_chunk(0, "}", id="other")], ["f{}"]),
        ([tool_call_chunk(0, None, id="a", name="f"), tool_call_chunk(0, None)], ["f"]),
        ([tool_call_chunk(0, None, id="a", name="get_"), tool_call_chunk(0, None, name="it"), tool_call_chunk(0, "{}")], ["get_it{}"]),
        ([chunk({"function_call": {"name": "f", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}})], ["f{}"]),
    ],
)  # fmt: skip
def test_pieces_find_their_call(pieces: list[Any], expected: list[str]) -> None:
    result = read_reply(*pieces, chunk({}, "tool_calls"))
    assert [call.name + call.arguments for call in result.calls] == expected
    assert len({call.id for call in result.calls}) == len(expected)


def test_a_streamed_reply_is_the_plain_one() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    message = {"role": "assistant", "content": "so", "tool_calls": [call], "reasoning_content": "hm"}
    choice = {"message": message, "finish_reason": "tool_calls"}
    plain = reply.read({"id": "s1", "model": "m1", "choices": [choice], "usage": USAGE})
    assert plain == read_reply(
        chunk({"role": "assistant", "reasoning_content": "h"}),
        chunk({"reasoning_content": "m"}),
        chunk({"content": "so"}),
        tool_call_chunk(0, '{"x"', id="a", name="f"),
        tool_call_chunk(0, ":1}"),
        chunk({}, "tool_calls", usage=USAGE),
    )


@given(st.text(max_size=30), st.data())
def test_it_does_not_matter_where_a_text_is_cut(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    result = read_reply(chunk({"content": text[:place]}), chunk({"content": text[place:]}), END)
    assert result.text == read_reply(chunk({"content": text}), END).text


def test_usage_is_found_in_groqs_own_place() -> None:
    assert read_reply(chunk({"content": "x"}), chunk({}, "stop", x_groq={"usage": USAGE})).usage == Usage(10, 5)


def test_the_first_reason_to_finish_counts_and_usage_may_come_later() -> None:
    result = read_reply(
        chunk({"content": "x"}), END, chunk({"content": ""}, "length"), chunk({}, None, usage={**USAGE, "cost": 1})
    )
    assert (result.finish_reason, result.usage, result.cost_usd) == ("stop", Usage(10, 5), 1)


def test_thoughts_among_the_parts_are_not_text_and_are_kept_for_the_provider() -> None:
    def thought(text: str) -> dict[str, Any]:
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}

    result = read_reply(
        chunk(thought("O")), chunk(thought("kay")), chunk({"content": [{"type": "thinking", "thinking": []}]}),
        chunk({"content": "4"}), chunk({"content": "2"}), END,
    )  # fmt: skip
    assert result.text == "42"
    assert json.loads(result.state)["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Okay"}]},
        {"type": "text", "text": "42"},
    ]


def test_other_choices_than_the_first_are_not_mixed_in() -> None:
    second_choice = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    result = read_reply(chunk({"content": "x"}), second_choice, END)
    assert (result.text, result.finish_reason) == ("x", "stop")


def test_a_rejected_call_inside_a_good_stream_is_a_reply_with_a_problem() -> None:
    error = {
        "error": {
            "message": "did not match schema",
            "code": "tool_use_failed",
            "failed_generation": '{"name": "f", "arguments": {}}',
            "status_code": 400,
        }
    }
    result = stream.read(
        text_of(chunk({"role": "assistant"}), ends=False) + f"event: error\ndata: {json.dumps(error)}\n\n"
    )
    assert isinstance(result, ModelReply)
    assert (result.calls, result.problem) == ((ToolCall("c0", "f", "{}"),), "did not match schema")


def test_an_error_after_the_end_of_the_reply_leaves_the_reply() -> None:
    error = {"code": 400, "message": "Token limit reached"}
    result = read_reply(
        chunk({"content": ""}, "length"), chunk({"content": ""}, "length"), chunk({}, None, usage=USAGE, error=error)
    )
    assert (result.finish_reason, result.text, result.usage) == ("length", "", Usage(10, 5))


@pytest.mark.parametrize(
    ("error", "reaction"),
    [({"code": 502, "message": "gone"}, "retry"), ("gone", "retry"), ({"code": 401, "message": "x"}, "user")],
)
def test_an_error_in_mid_stream_is_a_failure(error: Any, reaction: str) -> None:
    assert read_failure(chunk({"content": "so f"}), chunk({}, "error", error=error)).reaction == reaction
    assert read_failure(chunk({"content": "so f"}), {"x_groq": {"error": error}}).reaction == reaction


@pytest.mark.parametrize(
    "text",
    [
        "",
        ": only a comment\n\n",
        text_of(),
        text_of(chunk({"content": "half an"}), ends=False),
        text_of(chunk({"content": "x"}), ends=False) + 'data: {"id": "s1", "choi',
        text_of(chunk({"content": "x"}), "not json", END),
        text_of(chunk({"content": "x"}), "[1]", END),
    ],
)
def test_a_stream_that_breaks_is_tried_again(text: str) -> None:
    result = stream.read(text)
    assert isinstance(result, Failure)
    assert (result.reaction, result.code) == ("retry", "malformed")


def test_cutting_a_stream_anywhere_before_its_end_never_gives_a_whole_reply() -> None:
    text = text_of(
        chunk({"content": "one"}),
        tool_call_chunk(0, '{"a":', id="a", name="f"),
        tool_call_chunk(0, "1}"),
        chunk({}, "tool_calls"),
    )
    last = text.index('"tool_calls"}]')
    assert isinstance(stream.read(text), ModelReply)
    for place in range(last):
        assert isinstance(stream.read(text[:place]), Failure)


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "choices",
                            "delta",
                            "message",
                            "content",
                            "type",
                            "text",
                            "thinking",
                            "tool_calls",
                            "function",
                            "name",
                            "arguments",
                            "id",
                            "index",
                            "error",
                            "usage",
                            "x_groq",
                            "finish_reason",
                            "reasoning_details",
                            "extra_content",
                            "function_call",
                        ]
                    ),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=12,
        ),
        max_size=4,
    )
)
def test_any_events_give_a_reply_or_a_failure(values: list[Any]) -> None:
    chunks = [{"choices": [{"delta": value}]} for value in values]
    for text in (text_of(*values), text_of(*chunks, END), text_of(*values, *chunks, ends=False)):
        assert isinstance(stream.read(text), ModelReply | Failure)


# Shapes from the wild -----------------------------------------------------------------------------------------------


def read_calls(*chunks: Any) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in read_reply(*chunks, END).calls]


def test_calls_that_are_all_numbered_alike_are_distinguished() -> None:
    assert read_calls(tool_call_chunk(0, "{}", name="x"), tool_call_chunk(0, "{}", name="y")) == [
        ("x", "{}"),
        ("y", "{}"),
    ]
    assert read_calls(tool_call_chunk(0, '{"a":1}', name="x"), tool_call_chunk(0, '{"a":2}', name="x")) == [
        ("x", '{"a":1}'),
        ("x", '{"a":2}'),
    ]
    assert read_calls(tool_call_chunk(0, "", id="a", name="x"), tool_call_chunk(0, "", id="b", name="y")) == [
        ("x", ""),
        ("y", ""),
    ]


def test_pieces_of_one_call_stay_together_whatever_is_repeated_or_changes() -> None:
    complete_calls = [("x", '{"a":1}')]
    assert (
        read_calls(tool_call_chunk(0, '{"a"', id="a", name="x"), tool_call_chunk(0, ":1}", id="b", name="x"))
        == complete_calls
    )
    assert (
        read_calls(
            tool_call_chunk(0, '{"a"', name="x"), tool_call_chunk(0, ":1}", name="x"), tool_call_chunk(0, "", name="x")
        )
        == complete_calls
    )
    assert (
        read_calls(tool_call_chunk(0, '{"a":1}', id="a", name="x"), tool_call_chunk(0, "", id="a", name="x"))
        == complete_calls
    )
    assert read_calls(tool_call_chunk(0, id="a", name="lo"), tool_call_chunk(0, "{}", name="ok")) == [("look", "{}")]


def test_numbers_that_come_as_text_are_numbers() -> None:
    pieces = [chunk({"tool_calls": [{"index": "0", "id": "a", "function": {"name": "x", "arguments": '{"a"'}}]})]
    pieces += [chunk({"tool_calls": [{"index": "1", "id": "b", "function": {"name": "y", "arguments": '{"b"'}}]})]
    pieces += [chunk({"tool_calls": [{"index": one, "function": {"arguments": ":1}"}}]}) for one in ("0", "1")]
    assert read_calls(*pieces) == [("x", '{"a":1}'), ("y", '{"b":1}')]
    assert read_reply({"choices": [{"index": "0", "delta": {"content": "hi"}}]}, END).text == "hi"


def test_a_stream_in_the_form_of_plain_completions_is_text() -> None:
    assert read_reply({"choices": [{"text": "h"}]}, {"choices": [{"text": "i", "finish_reason": "stop"}]}).text == "hi"


def test_an_event_without_data_keeps_a_connection_alive_and_says_nothing() -> None:
    result = stream.read("data: \n\n" + text_of(chunk({"content": "hi"}), END))
    assert isinstance(result, ModelReply)
    assert result.text == "hi"


def test_a_plain_reply_that_is_called_a_stream_is_read_as_what_it_is() -> None:
    result = stream.read(json.dumps({"choices": [{"message": {"content": "hi"}}]}))
    assert isinstance(result, ModelReply)
    assert result.text == "hi"
    slow = stream.read('{"error": {"code": 429, "message": "slow"}}')
    assert isinstance(slow, Failure)
    assert slow.code == "busy"


def test_an_index_of_thousands_of_digits_is_no_index() -> None:
    long = "9" * 5_000
    assert read_reply({"choices": [{"index": long, "delta": {"content": "x"}}]}).text == "x"
    calls = [{"index": long, "function": {"name": "look"}}]
    assert [call.name for call in read_reply(chunk({"tool_calls": calls})).calls] == ["look"]
