"""How errors of a provider are classified and reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import TransientError, UserError
from pitboss.models.error_bodies import MAX_MESSAGE_CHARS, error_message
from pitboss.models.failures import Failure, classify, malformed
from pitboss.models.json_body import parse_body
from pitboss.models.retry_after import LONGEST_WAIT_S, duration_s, retry_after_s

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "details"]), inner)
    ),
    max_leaves=12,
)


def openai(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "reaction", "code"),
    [
        (401, openai("Incorrect API key provided: sk-abc"), "user", "bad_key"),
        (400, openai("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"), "user", "bad_key"),
        (403, openai("Country not supported"), "user", "forbidden"),
        (404, openai("The model `x` does not exist", code="model_not_found"), "user", "unknown_model"),
        (400, openai("no", code="model_not_found"), "user", "unknown_model"),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}, "user", "unknown_model"),
        (404, openai("models/x is not found for API version v1", code=404), "user", "unknown_model"),
        (400, openai("Model Not Exist"), "user", "unknown_model"),
        (404, openai('model "x" not found, try pulling it first'), "user", "unknown_model"),
        (404, "404 page not found", "user", "bad_address"),
        (402, openai("Insufficient Balance"), "user", "no_money"),
        (429, openai("You exceeded your current quota", code="insufficient_quota"), "user", "no_money"),
        (400, openai("Your credit balance is too low to access the API"), "user", "no_money"),
        (429, openai("Rate limit reached for requests"), "retry", "busy"),
        (529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "retry", "busy"),
        (503, "<html><h1>Service Unavailable</h1></html>", "retry", "busy"),
        (500, None, "retry", "server"),
        (502, "Bad Gateway", "retry", "server"),
        (408, {}, "retry", "server"),
        (501, {}, "give_up", "bad_request"),
        (413, {"error": {"type": "request_too_large", "message": "too much"}}, "give_up", "too_long"),
        (400, openai("This model's maximum context length is 8192 tokens", code="context_length_exceeded"), "give_up", "too_long"),
        (400, openai("Unsupported value: 'temperature'", param="temperature"), "user", "bad_setting"),
        (400, openai("This model does not support effort level 'xhigh'."), "user", "bad_setting"),
        (422, {"detail": [{"msg": "field required"}]}, "give_up", "bad_request"),
        (400, openai("messages must not be empty"), "give_up", "bad_request"),
        (302, "", "user", "redirect"),
        (418, "", "give_up", "bad_request"),
    ],
)  # fmt: skip
def test_each_kind_of_error_has_its_own_reaction(status: int, body: object, reaction: str, code: str) -> None:
    failure = classify(status, body, name="groq/x")
    assert (failure.reaction, failure.code) == (reaction, code)
    assert failure.message.startswith("groq/x: ")
    assert "\n" not in failure.message
    assert failure.hint if reaction == "user" else not failure.hint


def test_an_error_inside_a_good_status_is_judged_by_its_own_code() -> None:
    assert classify(200, openai("upstream died", code=502)).reaction == "retry"
    assert classify(200, openai("no money", code=402)).code == "no_money"
    assert classify(200, openai("what is this")).reaction == "retry"
    assert classify(200, openai("slow down", code="429")).code == "busy"


def test_the_words_about_a_refused_key_are_not_repeated() -> None:
    failure = classify(401, openai("Incorrect API key provided: sk-very-secret"))
    assert "sk-very-secret" not in failure.message + failure.hint


def test_a_failure_ends_in_the_exception_of_its_reaction() -> None:
    error = classify(401, {}).error()
    assert isinstance(error, UserError)
    assert error.hint
    assert isinstance(classify(500, {}).error(), TransientError)
    assert isinstance(classify(413, {}).error(), TransientError)
    assert malformed("x", "why").reaction == "retry"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, None, 7.0),
        ({"retry-after": "0.25"}, None, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
        ({"Retry-After": "Sun, 15 Nov 2026 07:00:30 GMT", "Date": "Sun, 15 Nov 2026 07:00:00 GMT"}, None, 30.0),
        ({"Retry-After": "Sun, 15 Nov 2026 06:00:00 GMT", "Date": "Sun, 15 Nov 2026 07:00:00 GMT"}, None, 0.0),
        ({"Retry-After": "Sun, 15 Nov 2026 07:00:30 GMT"}, None, None),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "-3"}, None, 0.0),
        ({"Retry-After": "inf"}, None, None),
        ({"Retry-After": "1e12"}, None, LONGEST_WAIT_S),
        ({}, {"error": {"details": [{"@type": "x"}, {"retryDelay": "17s"}]}}, 17.0),
        ({}, openai("Rate limit reached. Please try again in 2m59.56s. Visit us"), 179.56),
        ({}, openai("Please try again in 20ms."), 0.02),
        ({}, openai("Please retry after 3s"), 3.0),
        ({}, openai("try again some time"), None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_the_wait_is_read_from_headers_then_from_the_body(
    headers: dict[str, str], body: object, seconds: float
) -> None:
    assert retry_after_s(body, headers) == (None if seconds is None else pytest.approx(seconds))


def test_only_an_error_status_carries_a_wait() -> None:
    assert classify(429, {}, {"retry-after": "5"}).wait_s == 5
    assert classify(200, openai("odd"), {"retry-after": "5"}).wait_s is None


def test_durations_are_added_up() -> None:
    assert duration_s("1h2m3s4ms") == pytest.approx(3723.004)
    assert duration_s("never") is None


def test_what_was_said_is_one_short_line_whatever_the_envelope() -> None:
    assert error_message({"message": "a\n b"}) == "a b"
    assert error_message({"error": "gone"}) == "gone"
    assert error_message({"detail": "no"}) == "no"
    assert error_message([{"error": {"message": "in a list"}}]) == "in a list"
    assert error_message("<p>busy</p> <b>now</b>") == "busy now"
    assert error_message(b"bytes") == ""
    assert len(error_message("x" * 10_000)) == MAX_MESSAGE_CHARS


@given(st.integers(0, 999), JSON)
def test_any_error_is_classified(status: int, body: object) -> None:
    assert isinstance(classify(status, body), Failure)


@pytest.mark.parametrize(
    "words",
    [
        "request (431 tokens) exceeds the available context size (256 tokens), try increasing it",
        "Please reduce the length of the messages or completion.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_a_question_too_long_is_known_in_every_servers_words(words: str) -> None:
    failure = classify(400, openai(words))
    assert (failure.reaction, failure.code) == ("give_up", "too_long")


def test_a_quota_that_comes_back_within_the_minute_is_waited_for_although_google_speaks_of_billing() -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "35s"}
    failure = classify(429, openai(words, status="RESOURCE_EXHAUSTED", details=[info]))
    assert (failure.reaction, failure.code, failure.wait_s) == ("retry", "busy", 35.0)
    assert classify(429, openai(words)).code == "no_money"
    assert classify(429, openai(f"{words} try again in 5s", code="insufficient_quota")).code == "no_money"


def test_complaints_about_single_fields_are_reported_in_words() -> None:
    body = {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted", "type": "value_error.extra"}, 5]}
    assert error_message(body) == "body.seed extra fields not permitted"
    assert classify(422, body).code == "bad_setting"


@pytest.mark.parametrize("form", ['{"error":{"message":%s}}', '{"detail":[{"loc":[%s]}]}', '{"detail":[{"msg":%s}]}'])
def test_a_message_that_is_nested_very_deep_is_still_an_error(form: str) -> None:
    body = parse_body(form % ("[" * 1_000 + "]" * 1_000))
    assert isinstance(body, dict)
    assert classify(400, body).code == "bad_request"
