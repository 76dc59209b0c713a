"""Recorded exchanges with real providers: every chat completion is read, and to the same calls. Skipped without them."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply
from pitboss.models import recordings
from pitboss.models.failures import Failure
from pitboss.models.recordings import Exchange, Unsupported

SESSIONS = Path(__file__).parents[4] / "shared" / "data" / "wire" / "llm" / "sessions.jsonl.gz"
there = pytest.mark.skipif(not SESSIONS.exists(), reason="the recorded provider sessions are not on this machine")


@pytest.fixture(scope="module")
def exchanges() -> list[Exchange]:
    return list(recordings.read(SESSIONS))


@pytest.fixture(scope="module")
def chats(exchanges: list[Exchange]) -> list[tuple[Exchange, ModelReply | Failure]]:
    found: list[tuple[Exchange, ModelReply | Failure]] = []
    for one in exchanges:
        if recordings.kind(one) == "chat":
            outcome = recordings.parse(one)
            assert isinstance(outcome, ModelReply | Failure)
            found.append((one, outcome))
    return found


@there
def test_every_exchange_is_of_a_known_kind(exchanges: list[Exchange]) -> None:
    kinds = Counter(recordings.kind(one) for one in exchanges)
    assert kinds == {"chat": 245, "anthropic": 144, "google": 116, "responses": 156, "bedrock": 70, "unsupported": 60}


@there
def test_other_protocols_are_counted_as_not_supported(exchanges: list[Exchange]) -> None:
    unsupported = [one for one in exchanges if recordings.kind(one) == "unsupported"]
    assert all(isinstance(recordings.parse(one), Unsupported) for one in unsupported)


@there
def test_good_replies_are_read_to_the_recorded_number_of_calls(
    chats: list[tuple[Exchange, ModelReply | Failure]],
) -> None:
    totals: Counter[str] = Counter()
    for exchange, outcome in chats:
        if exchange.status == 200 and isinstance(outcome, ModelReply) and outcome.calls:
            form = "rejected" if outcome.problem else "stream" if exchange.streamed else "plain"
            totals[f"{form} replies"] += 1
            totals[f"{form} calls"] += len(outcome.calls)
            assert all(call.id and call.name for call in outcome.calls)
            assert all(isinstance(json.loads(call.arguments or "{}"), dict) for call in outcome.calls)
    assert totals == {
        "plain replies": 50, "plain calls": 56, "stream replies": 28, "stream calls": 37,
        "rejected replies": 1, "rejected calls": 1,
    }  # fmt: skip


@there
def test_plain_calls_have_the_recorded_names_and_arguments(
    chats: list[tuple[Exchange, ModelReply | Failure]],
) -> None:
    for exchange, outcome in chats:
        if exchange.status == 200 and not exchange.streamed:
            assert isinstance(outcome, ModelReply)
            wishes = exchange.body["choices"][0]["message"].get("tool_calls") or []
            expected = [(one["function"]["name"], one["function"].get("arguments", "")) for one in wishes]
            assert [(call.name, call.arguments) for call in outcome.calls] == expected


@there
def test_every_good_reply_says_something_or_why_not(chats: list[tuple[Exchange, ModelReply | Failure]]) -> None:
    for exchange, outcome in chats:
        if exchange.status == 200:
            assert isinstance(outcome, ModelReply), exchange.id
            assert outcome.text or outcome.calls or outcome.problem, exchange.id
            assert not outcome.text.lstrip().startswith("<think")
            assert outcome.usage.input_tokens or outcome.problem, exchange.id
            assert outcome.usage.reasoning_tokens <= outcome.usage.output_tokens
            assert outcome.usage.cached_tokens <= outcome.usage.input_tokens


@there
def test_endings_are_as_recorded(chats: list[tuple[Exchange, ModelReply | Failure]]) -> None:
    endings = Counter(
        (outcome.finish_reason, "stream" if one.streamed else "plain")
        for one, outcome in chats
        if isinstance(outcome, ModelReply) and one.status == 200
    )
    assert endings == {
        ("stop", "plain"): 136, ("tool_calls", "plain"): 50, ("length", "plain"): 3,
        ("stop", "stream"): 18, ("tool_calls", "stream"): 29, ("length", "stream"): 1,
    }  # fmt: skip


@there
def test_bad_statuses_are_unknown_models_bad_settings_or_rejected_calls(
    chats: list[tuple[Exchange, ModelReply | Failure]],
) -> None:
    outcomes = Counter(
        f"{outcome.reaction} {outcome.code}" if isinstance(outcome, Failure) else f"reply {outcome.finish_reason}"
        for one, outcome in chats
        if one.status != 200
    )
    assert outcomes == {"user unknown_model": 3, "user bad_setting": 3, "reply tool_calls": 1, "reply stop": 1}


@there
def test_charges_that_providers_report_are_kept(chats: list[tuple[Exchange, ModelReply | Failure]]) -> None:
    costs = [outcome.cost_usd for _, outcome in chats if isinstance(outcome, ModelReply)]
    known_costs = [cost for cost in costs if cost is not None]
    assert len(known_costs) == 34
    assert Decimal("0.0160614") in known_costs


@there
def test_cutting_any_recorded_stream_in_half_is_never_taken_for_a_whole_reply(
    chats: list[tuple[Exchange, ModelReply | Failure]],
) -> None:
    for exchange, _ in chats:
        if exchange.streamed:
            half = exchange.body[: exchange.body.index("data: ") + 60]
            truncated = recordings.parse(Exchange(exchange.id, exchange.uri, None, 200, exchange.headers, half))
            assert isinstance(truncated, Failure), exchange.id


def test_a_file_of_exchanges_is_read_in_order(tmp_path: Path) -> None:
    one = {
        "method": "POST", "uri": "https://x.test/v1/chat/completions?a=1", "request_body": {}, "status": 200,
        "response_headers": {"Content-Type": ["application/json"]},
        "response_body": {"choices": [{"message": {"content": "hi"}}]},
    }  # fmt: skip
    as_text = one | {"response_body": json.dumps(one["response_body"])}
    other = one | {"uri": "https://x.test/v1/embeddings"}
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({"cassette": "a.yaml", "interactions": [one, as_text, other]}).encode()))
    found = list(recordings.read(path))
    assert [one.id for one in found] == ["a.yaml#0", "a.yaml#1", "a.yaml#2"]
    assert [recordings.kind(one) for one in found] == ["chat", "chat", "unsupported"]
    first, second, third = (recordings.parse(one) for one in found)
    assert isinstance(first, ModelReply)
    assert first == second
    assert first.text == "hi"
    assert isinstance(third, Unsupported)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/paas/v4/chat/completions", "chat"),
        ("/v1/messages?beta=true", "anthropic"),
        ("/v1/messages/count_tokens", "unsupported"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "google"),
        ("/v1beta/models/m:countTokens", "unsupported"),
        ("/v2/chat", "unsupported"),
        ("/bedrock/model/x/invoke", "unsupported"),
        ("/v1/responses/compact", "unsupported"),
    ],
)
def test_the_kind_is_judged_by_the_path(path: str, kind: str) -> None:
    assert recordings.kind(Exchange("", f"https://any.test{path}", None, 200, {}, None)) == kind


def test_a_recorders_other_habits_are_known(tmp_path: Path) -> None:
    """Blank lines, a status with words, a body inside a field, numbers and letters that strict readers refuse."""
    one = {
        "uri": "https://x.test/v1/chat/completions/", "status": {"code": 200, "message": "OK"},
        "response_headers": None, "response_body": {"string": '{"choices": [{"message": {"content": "hi"}}]}'},
    }  # fmt: skip
    odd = json.dumps({"interactions": [one]}).replace("https", "\\ud83dhttps")
    path = tmp_path / "s.jsonl"
    path.write_text(f"{json.dumps({'interactions': [one]})}\n\n{odd}\n")
    first, second = recordings.read(path)
    assert (first.status, recordings.kind(first), recordings.kind(second)) == (200, "chat", "chat")
    found = recordings.parse(first)
    assert isinstance(found, ModelReply)
    assert found.text == "hi"


@pytest.mark.parametrize("content", [b"\x1f\x8bbroken", b"{}", b"[1]", b"not json", b'{"interactions": [1]}', b"5"])
def test_a_file_that_holds_no_recordings_is_the_persons_to_put_right(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match="cannot be read as recorded sessions"):
        list(recordings.read(path))


def test_a_broken_archive_is_the_persons_to_put_right(tmp_path: Path) -> None:
    archive = gzip.compress(json.dumps({"interactions": []}).encode() * 500)
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(archive[:20] + b"\xff" * 20 + archive[40:])
    with pytest.raises(UserError, match="cannot be read as recorded sessions"):
        list(recordings.read(path))


@pytest.mark.parametrize(
    "content_type", ["text/event-stream", "Text/Event-Stream; charset=utf-8", "application/json", ""]
)
def test_a_stream_is_known_by_its_look(content_type: str) -> None:
    text = 'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    for body in (text, text.encode(), "\ufeff" + text):
        exchange = Exchange("", "https://x.test/chat/completions", None, 200, {"content-type": content_type}, body)
        found = recordings.parse(exchange)
        assert isinstance(found, ModelReply), found
        assert found.text == "hi"
