"""All recorded exchanges of Anthropic and Google, read by the code that reads live ones."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from models.native.vendor_server import read_native
from pitboss.core.ports import ModelReply
from pitboss.models.failures import Failure

SESSIONS = Path(__file__).parents[4] / "shared/data/wire/llm/sessions.jsonl.gz"
pytestmark = pytest.mark.skipif(not SESSIONS.exists(), reason="the recorded sessions are not on this machine")

Outcome = ModelReply | Failure


def exchanges() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    with gzip.open(SESSIONS, "rt", encoding="utf-8") as lines:
        for line in lines:
            for exchange in json.loads(line)["interactions"]:
                path = urlsplit(exchange["uri"]).path
                kind = "anthropic" if path.endswith("/v1/messages") else ""
                kind = "google" if path.endswith((":generateContent", ":streamGenerateContent")) else kind
                if kind:
                    streamed = str(exchange["response_headers"].get("content-type", "")).find("event-stream") >= 0
                    yield kind, streamed, exchange


@cache
def outcomes() -> list[tuple[str, bool, dict[str, Any], Outcome]]:
    rows: list[tuple[str, bool, dict[str, Any], Outcome]] = []
    for kind, streamed, exchange in exchanges():
        headers = {
            name: value[0] if isinstance(value, list) else value for name, value in exchange["response_headers"].items()
        }
        outcome = read_native(kind, exchange["response_body"], exchange["status"], headers)
        rows.append((kind, streamed, exchange, outcome))
    return rows


def test_every_exchange_gives_a_reply_and_every_error_a_failure() -> None:
    assert Counter(kind for kind, *_ in outcomes()) == {"anthropic": 144, "google": 116}
    for _, _, exchange, outcome in outcomes():
        assert isinstance(outcome, ModelReply) == (exchange["status"] == 200)
    failures = Counter(
        (kind, outcome.reaction, outcome.code) for kind, _, _, outcome in outcomes() if isinstance(outcome, Failure)
    )
    assert failures == {
        ("anthropic", "user", "unknown_model"): 1,
        ("anthropic", "user", "bad_setting"): 1,
        ("google", "user", "unknown_model"): 1,
    }


def test_the_recorded_calls_are_the_calls() -> None:
    counts: Counter[tuple[str, bool, str]] = Counter()
    for kind, streamed, _, outcome in outcomes():
        if isinstance(outcome, ModelReply) and outcome.calls:
            counts[kind, streamed, "replies"] += 1
            counts[kind, streamed, "calls"] += len(outcome.calls)
            assert outcome.finish_reason == "tool_calls"
            assert all(isinstance(json.loads(call.arguments), dict) for call in outcome.calls)
            assert len({call.id for call in outcome.calls}) == len(outcome.calls)
    assert counts == {
        ("anthropic", False, "replies"): 47,
        ("anthropic", False, "calls"): 53,
        ("anthropic", True, "replies"): 1,
        ("anthropic", True, "calls"): 1,
        ("google", False, "replies"): 35,
        ("google", False, "calls"): 37,
        ("google", True, "replies"): 1,
        ("google", True, "calls"): 1,
    }


def test_names_arguments_and_text_are_those_of_the_body() -> None:
    for kind, streamed, exchange, outcome in outcomes():
        if streamed or not isinstance(outcome, ModelReply):
            continue
        body = exchange["response_body"]
        if kind == "anthropic":
            calls = [(part["name"], part["input"]) for part in body["content"] if part["type"] == "tool_use"]
            text = "".join(part["text"] for part in body["content"] if part["type"] == "text")
        else:
            parts = [part for c in body.get("candidates", []) for part in c["content"].get("parts", [])]
            calls = [
                (part["functionCall"]["name"], part["functionCall"].get("args", {}))
                for part in parts
                if "functionCall" in part
            ]
            text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        assert [(call.name, json.loads(call.arguments)) for call in outcome.calls] == calls
        assert outcome.text == text


def test_tokens_are_those_of_the_body_counted_our_way() -> None:
    for kind, streamed, exchange, outcome in outcomes():
        if streamed or not isinstance(outcome, ModelReply):
            continue
        usage = outcome.usage
        if kind == "anthropic":
            said = exchange["response_body"]["usage"]
            cached, cache_writes = (
                said.get("cache_read_input_tokens") or 0,
                said.get("cache_creation_input_tokens") or 0,
            )
            want = (said["input_tokens"] + cached + cache_writes, said["output_tokens"], cached, cache_writes)
            assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens) == want
        else:
            said = exchange["response_body"].get("usageMetadata", {})
            thoughts = said.get("thoughtsTokenCount", 0)
            given = said.get("promptTokenCount", 0) + said.get("toolUsePromptTokenCount", 0)
            want = (
                given,
                said.get("candidatesTokenCount", 0) + thoughts,
                said.get("cachedContentTokenCount", 0),
                thoughts,
            )
            assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == want


def test_the_replies_that_are_no_answer_are_exactly_three() -> None:
    usages = Counter(
        (kind, outcome.finish_reason, bool(outcome.text))
        for kind, _, _, outcome in outcomes()
        if isinstance(outcome, ModelReply) and outcome.problem
    )
    assert usages == {("google", "error", False): 1, ("google", "length", True): 1, ("google", "length", False): 1}
