"""The status endpoint and the board behind it: bounded, JSON only, the original's fields, and no secret in any of it."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.live_run_setup import LiveRunSetup
from pitboss.bootstrap.redact import Redactor
from pitboss.core.errors import UserError
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, seal
from pitboss.live.board import MAX_TEXT_CHARS, MOST_ENTRIES, Board, display_text
from pitboss.live.status import FEED, MOST_BYTES, content, is_loopback, serving
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.spot import Spot
from pitboss.venues.predict.deployment import LiveOptions, deployment
from pitboss.venues.predict.live_feed import LiveFeed
from pitboss.venues.predict.live_source import PredictSource
from pitboss.venues.predict.status import StatusSource
from pitboss.venues.predict.venue import VENUE
from venues.predict.predict_ticks import SOON, always_decides
from venues.predict.scene import NOW

MINT = {"action": "mint", "market_id": SOON, "side": "YES", "strike": 63_200, "spend": 2, "reasoning": "up"}
SCRIPT = "<script>alert(1)</script>\x00\x1b[31m\u2028 line\r\nbreak"


def answer(
    method: str,
    path: str,
    document: Mapping[str, Any] | None = None,
    redact: Callable[[str], str] = str,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    async def ask() -> tuple[int, dict[str, str], bytes]:
        result = {"ticks": 1, FEED: []} if document is None else document
        async with (
            serving(lambda: result, lambda: {"ok": True}, "127.0.0.1", 0, redact) as address,
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, address + path, allow_redirects=False) as reply,
        ):
            return reply.status, dict(reply.headers), await reply.read()

    return asyncio.run(ask())


# The endpoint ---------------------------------------------------------------------------------------------------------


def test_both_addresses_answer_in_json_with_nothing_that_lets_another_origin_read_it() -> None:
    for path, result in (("/status", {"ticks": 1, FEED: []}), ("/health", {"ok": True})):
        status, headers, body = answer("GET", path, Origin="https://elsewhere.example")
        assert (status, json.loads(body)) == (200, result)
        assert headers["Content-Type"] == "application/json"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert not [name for name in headers if name.lower().startswith("access-control")]


def test_any_loopback_address_that_it_listens_on_may_be_asked_for() -> None:
    async def ask() -> int:
        async with (
            serving(dict, lambda: {"ok": True}, "127.0.0.2", 0) as address,
            aiohttp.ClientSession() as session,
            session.get(address + "/health") as reply,
        ):
            return reply.status

    assert asyncio.run(ask()) == 200


def test_head_is_get_without_a_body_and_a_query_changes_nothing() -> None:
    status, headers, body = answer("HEAD", "/status")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 10
    assert answer("GET", "/health?x=<b>")[0] == 200


@pytest.mark.parametrize("path", ["/", "/status/", "/../etc/passwd", "/api", "/status.html", "//status"])
def test_other_addresses_are_404_in_json(path: str) -> None:
    status, headers, body = answer("GET", path)
    assert (status, headers["Content-Type"]) == (404, "application/json")
    assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_405_and_say_what_is_allowed(method: str) -> None:
    status, headers, _ = answer(method, "/status")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8083", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"])
def test_a_page_that_gives_its_own_name_our_address_gets_nothing(name: str) -> None:
    status, _, body = answer("GET", "/status", Host=name)
    assert status == 403
    assert b"ticks" not in body


def test_loopback_by_its_own_names_is_answered() -> None:
    for name in ("localhost", "localhost:8083", "127.0.0.1:1", "[::1]:8083", "LOCALHOST"):
        assert answer("GET", "/status", Host=name)[0] == 200


def test_a_port_that_is_taken_is_one_line_with_a_hint() -> None:
    async def listen(port: int) -> None:
        async with serving(dict, dict, "127.0.0.1", port):
            raise AssertionError("it must not listen")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match="cannot listen") as caught:
            asyncio.run(listen(taken.getsockname()[1]))
    assert "--port" in caught.value.hint


def test_what_is_loopback_is_known_by_address_not_by_likeness() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "127.0.0.1.nip.io", "example.com", "")))


def test_a_document_that_is_too_long_loses_its_oldest_entries_first() -> None:
    feed = [{"seq": number, "reasoning": "x" * 20_000} for number in range(60, 0, -1)]
    data = content({"ticks": 60, FEED: feed}, str)
    assert len(data) <= MOST_BYTES
    kept = json.loads(data)[FEED]
    assert kept == feed[: len(kept)]
    assert 5 < len(kept) < 60
    assert json.loads(content({"ticks": "y" * MOST_BYTES, FEED: []}, str)) == {"error": "the document is too long"}


def test_a_secret_that_got_into_a_text_is_taken_out_before_it_is_sent() -> None:
    secret = "gsk_Canary0123456789abcdefXYZ"
    redactor = Redactor()
    redactor.add(secret)
    result = {FEED: [{"reasoning": f"my key is {secret}"}], "warnings": [f"a {secret}!"]}
    status, _, body = answer("GET", "/status", result, redactor.redact)
    assert status == 200
    assert secret.encode() not in body
    assert b"my key is" in body


# The board ------------------------------------------------------------------------------------------------------------


def hostile_record(seq: int, prev: str, text: str) -> Any:
    covered = {
        "text": text,
        "proposals": [{"action": "mint", "reasoning": text, "deep": [[["x" * 50_000]]]}, text, 5],
        "verdicts": [
            {
                "outcome": "refused",
                "code": "B1_SHAPE",
                "detail": text,
                "order_id": None,
                "duplicate": False,
                "margins": [],
            }
        ],
        "receipts": [
            {
                "kind": "rejected",
                "at": NOW,
                "symbol": "BTC",
                "order_id": "",
                "facts": {"reason": text, "kind": "forged"},
            }
        ]
        * 40,
        "equity": [],
        "before": {},
        "after": {"equity": "100"},
        "flags": ["no_decision"],
        "finish_reason": "stop",
    }
    return seal(seq, "tick", NOW + seq, prev, covered, ZERO_COST_EXTRA)


def texts(value: Any) -> list[str]:
    """Every text in a document."""
    if isinstance(value, dict):
        return [word for pair in value.items() for word in texts(list(pair))]
    if isinstance(value, list):
        return [word for item in value for word in texts(item)]
    return [value] if isinstance(value, str) else []


def test_words_of_models_stay_data_on_one_line_and_are_cut() -> None:
    board, prev = Board(), GENESIS
    for seq in range(60):
        record = hostile_record(seq, prev, SCRIPT * 100)
        prev = record.digest
        board.add(record)
    assert len(board.feed) == MOST_ENTRIES
    data = content({FEED: board.newest()}, str)
    assert len(data) <= MOST_BYTES
    (entry, *_) = json.loads(data)[FEED]
    assert entry["seq"] == 59
    assert len(entry["reasoning"]) == MAX_TEXT_CHARS
    assert entry["reasoning"].startswith("<script>alert(1)</script> [31m line break")
    assert set(entry["intents"][0]) == {"cut"}
    assert entry["intents"][2] == 5
    assert len(entry["events"]) == 20
    assert entry["events"][0]["kind"] == "rejected"
    assert [word for word in texts(entry) if not word.isprintable()] == []


@given(st.text(max_size=2_000))
def test_a_text_that_is_shown_is_printable_and_bounded(words: str) -> None:
    shown = display_text(words)
    assert len(shown) <= MAX_TEXT_CHARS
    assert shown.isprintable()


def test_ticks_are_acted_skipped_or_failed_and_each_is_counted_once() -> None:
    setup = LiveRunSetup(always_decides(MINT))
    asyncio.run(setup.runner(1).run())
    held = LiveRunSetup(always_decides())
    asyncio.run(held.runner(2).run())
    for board, counts in ((setup.board, (1, 1, 0, 0)), (held.board, (2, 0, 2, 0))):
        assert (board.ticks, board.acted, board.skips, board.errors) == counts
    assert held.board.cost_usd == Decimal(0)


# The document ----------------------------------------------------------------------------------------------------------


def test_the_document_has_the_originals_fields_and_ours_next_to_them(tmp_path: Path) -> None:
    (name, text), *_ = VENUE.examples().items()
    (tmp_path / name).write_text(text)
    given_ = {"AGENT_NAME": "my agent", "AGENT_TRADE_DUSDC": "1.5", "AGENT_STRATEGY": "no-only"}
    asked = deployment(tmp_path / name, LiveOptions(), given_.get)
    setup = LiveRunSetup(always_decides(MINT))
    asyncio.run(setup.runner(1).run())
    spot = Spot("BTC", None, None, lambda: NOW)  # type: ignore[arg-type]
    feed = LiveFeed(PredictSource(spot, PredictCaps(), (), lambda: NOW), spot, None)  # type: ignore[arg-type]
    document = StatusSource(asked, asked.model, "abc", setup.board, feed, NOW).document(NOW, NOW + 60_000)
    original = [
        "name",
        "strategy",
        "config",
        "model",
        "mandate",
        "lastTick",
        "ticks",
        "mints",
        "skips",
        "errors",
        "actionFeed",
    ]
    assert list(document)[: len(original)] == original
    result = {field: document[field] for field in original if field not in ("config", "actionFeed")}
    assert result == {
        "name": "my agent",
        "strategy": "no-only",
        "model": None,
        "mandate": "momentum",
        "lastTick": "2026-05-27T12:00:00Z",
        "ticks": 1,
        "mints": 1,
        "skips": 0,
        "errors": 0,
    }
    assert document["config"]["tradeDusdc"] == "1.5"
    assert document["config"]["tickMs"] == 60_000
    assert (document["mode"], document["runId"], document["nextTick"]) == ("paper", "abc", "2026-05-27T12:01:00Z")
    assert document["feed"]["ok"] is False
    happened, ticked = document["actionFeed"]
    assert (happened["kind"], happened["events"][-1]["kind"]) == ("happened", "filled")
    assert (ticked["tick"], ticked["verdicts"][0]["outcome"], ticked["intents"][0]["strike"]) == (1, "allowed", 63_200)
    json.dumps(document)
