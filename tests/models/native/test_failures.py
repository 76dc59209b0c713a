"""Failures of the native adapters: which are retried, their messages, and time limits."""

from typing import Any

import pytest

from models.native.vendor_server import ASK, KEY, Kind, VendorReply, claude, gemini, model_of, talk_to_vendor
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import ModelReply
from pitboss.models.call import CallContext

GOOD: dict[str, VendorReply] = {
    "anthropic": VendorReply(claude({"type": "text", "text": "hold"})),
    "google": VendorReply(gemini({"text": "hold"})),
}
BOTH = pytest.mark.parametrize("kind", ["anthropic", "google"])


def error_answer(
    kind: str, message: str, error_type: str = "api_error", status: int = 500, **headers: str
) -> VendorReply:
    """An error in the vendor's own form."""
    anthropic = {"type": "error", "error": {"type": error_type, "message": message}}
    google = {"error": {"code": status, "message": message, "status": error_type.upper()}}
    return VendorReply(anthropic if kind == "anthropic" else google, status, dict(headers))


def complete_with_pauses(kind: Kind, script: list[VendorReply], **settings: Any) -> tuple[Any, int, list[float]]:
    """One question; the reply or the error, how often it was asked, and the pauses."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def talk(native: Any, _: Any) -> Any:
        try:
            return await native.complete(ASK)
        except (UserError, TransientError) as error:
            return error

    outcome, vendor = talk_to_vendor(kind, script, talk, sleep=sleep, **settings)
    return outcome, len(vendor.posted), pauses


@BOTH
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_or_failing_server_is_asked_again(kind: Kind, status: int) -> None:
    reply, requests, pauses = complete_with_pauses(
        kind, [error_answer(kind, "busy", status=status), GOOD[kind]], random=lambda: 0.5
    )
    assert isinstance(reply, ModelReply)
    assert (requests, pauses) == (2, [0.25])


@BOTH
def test_what_the_provider_asks_to_wait_is_waited(kind: Kind) -> None:
    busy = error_answer(kind, "slow down", "rate_limit_error", 429, **{"retry-after": "7"})
    reply, _, pauses = complete_with_pauses(kind, [busy, GOOD[kind]])
    assert isinstance(reply, ModelReply)
    assert pauses == [7.0]


def test_google_says_in_the_body_how_long_to_wait() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    body = {"error": {"code": 429, "message": "quota per minute", "status": "RESOURCE_EXHAUSTED", "details": [detail]}}
    reply, _, pauses = complete_with_pauses("google", [VendorReply(body, 429), GOOD["google"]])
    assert isinstance(reply, ModelReply)
    assert pauses == [17.0]


@BOTH
def test_pauses_grow_with_full_jitter_and_tries_end(kind: Kind) -> None:
    error, requests, pauses = complete_with_pauses(kind, [error_answer(kind, "down")], random=lambda: 1.0, attempts=4)
    assert isinstance(error, TransientError)
    assert (requests, pauses) == (4, [0.5, 1.0, 2.0])


@BOTH
def test_a_wait_past_the_deadline_ends_the_tries_at_once(kind: Kind) -> None:
    busy = error_answer(kind, "slow down", status=429, **{"retry-after": "60"})
    error, requests, pauses = complete_with_pauses(kind, [busy], deadline_s=30.0)
    assert isinstance(error, TransientError)
    assert (requests, pauses) == (1, [])


@BOTH
def test_a_server_that_hangs_is_given_up_in_time(kind: Kind) -> None:
    error, requests, _ = complete_with_pauses(kind, [VendorReply({}, hang=True)], timeout_s=1.0, attempts=2)
    assert isinstance(error, TransientError)
    assert requests == 2


@BOTH
def test_a_refused_connection_is_retried(kind: Kind) -> None:
    async def talk(native: Any, _: Any) -> Any:
        with pytest.raises(TransientError, match="cannot reach"):
            await native.complete(ASK)

    talk_to_vendor(kind, [GOOD[kind]], talk, attempts=2, base_url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("anthropic", error_answer("anthropic", f"invalid x-api-key {KEY}", "authentication_error", 401)),
        (
            "google",
            error_answer("google", f"API key not valid. Please pass a valid API key. {KEY}", "invalid_argument", 400),
        ),
        ("google", error_answer("google", f"no {KEY}", "permission_denied", 403)),
    ],
)
def test_a_bad_key_is_the_persons_to_put_right_and_is_not_shown(kind: Kind, answer: VendorReply) -> None:
    error, requests, _ = complete_with_pauses(kind, [answer])
    assert isinstance(error, UserError)
    assert requests == 1
    assert "key" in f"{error.message} {error.hint}"
    assert KEY not in f"{error.message} {error.hint} {error!r}"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("anthropic", error_answer("anthropic", "model: claude-haikku", "not_found_error", 404)),
        ("google", error_answer("google", "models/gemini-9 is not found for API version v1beta", "not_found", 404)),
    ],
)
def test_an_unknown_model_is_the_persons_to_put_right(kind: Kind, answer: VendorReply) -> None:
    error, requests, _ = complete_with_pauses(kind, [answer])
    assert isinstance(error, UserError)
    assert requests == 1
    assert "no such model" in error.message


def test_no_money_is_the_persons_to_put_right() -> None:
    poor = error_answer(
        "anthropic", "Your credit balance is too low to access the Anthropic API.", "invalid_request_error", 400
    )
    error, requests, _ = complete_with_pauses("anthropic", [poor])
    assert isinstance(error, UserError)
    assert requests == 1


@BOTH
def test_a_redirect_is_never_followed(kind: Kind) -> None:
    async def talk(native: Any, vendor: Any) -> Any:
        vendor.script[0].headers["location"] = f"{vendor.address}/elsewhere"
        with pytest.raises((UserError, TransientError)):
            await native.complete(ASK)

    _, vendor = talk_to_vendor(kind, [VendorReply({}, 307)], talk, attempts=1)
    assert [request.path for request in vendor.posted if "elsewhere" in request.path] == []


@BOTH
def test_half_a_body_is_worth_another_try(kind: Kind) -> None:
    reply, requests, _ = complete_with_pauses(kind, [VendorReply('{"id": "m", "cont'), GOOD[kind]])
    assert isinstance(reply, ModelReply)
    assert requests == 2


@BOTH
def test_an_adapter_serves_one_event_loop_after_another(kind: Kind) -> None:
    first, _, _ = complete_with_pauses(kind, [GOOD[kind]])
    second, _, _ = complete_with_pauses(kind, [GOOD[kind]])
    assert first.text == second.text == "hold"


@BOTH
def test_the_result_holds_headers_and_status_of_every_response(kind: Kind) -> None:
    async def talk(native: Any, _: Any) -> Any:
        return [await native.inner.call(ASK, CallContext()) for _ in range(2)]

    busy = error_answer(kind, "busy", status=429, **{"retry-after": "1"})
    results, _ = talk_to_vendor(kind, [busy, GOOD[kind]], talk)
    assert [(result.headers.get("retry-after"), result.status) for result in results] == [("1", 429), (None, 200)]


@BOTH
def test_no_key_is_said_before_anything_is_asked(kind: Kind) -> None:
    with pytest.raises(UserError, match="needs a key"):
        model_of(kind, "m", key=None)
