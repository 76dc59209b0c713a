"""Prices of Hermes: the recorded reply, the price at a second, and every kind of wrong reply."""

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_files import SHARED
from indexer_server import IndexerServer
from pyth_server import BTC, PythServer, hermes
from source_servers import FakeTime, closing, serving_app

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import parse_instant
from pitboss.data.fetch import MalformedReply
from pitboss.data.hermes import FEEDS, MOST_PRICE, Hermes, OraclePrice, feed_of, parse_price
from pitboss.venues.predict.readers import open_fetcher

NOW = parse_instant("2026-02-21T14:30:00Z")
SECOND = NOW // 1000


def ask(pyth: PythServer, question: Callable[[Hermes], Any], **more: Any) -> OraclePrice:
    fetcher = FakeTime(NOW).fetcher(**more)
    with serving_app(pyth.app()) as url:
        return asyncio.run(closing(fetcher, question(Hermes(fetcher, url))))


def latest_price(pyth: PythServer, **more: Any) -> OraclePrice:
    return ask(pyth, lambda service: service.latest("BTC"), **more)


def test_the_newest_price_is_scaled_by_its_exponent() -> None:
    pyth = PythServer(fixed_reply=hermes(second=SECOND))
    result = latest_price(pyth)
    assert result == OraclePrice(BTC, Decimal("68522.3"), Decimal("25.28354539"), NOW)
    assert result.units == 68_522_300_000_000
    assert pyth.queries == [{"path": "/v2/updates/price/latest", "ids[]": BTC, "parsed": "true"}]


def test_recorded_updates_read_as_their_expected_values() -> None:
    path = SHARED / "wire" / "pyth" / "hermes_updates.json"
    if not path.exists():
        pytest.skip("the recorded updates are not here")
    recorded = json.loads(path.read_text())
    output, feeds = recorded["expected"], recorded["feed_ids"]
    for symbol in ("BTC", "ETH"):
        feed_id = feeds[f"{symbol}/USD"]
        assert feed_of(symbol) == feed_id
        value = hermes(
            str(output[f"HERMES_{symbol}_PRICE"]),
            str(output[f"HERMES_{symbol}_CONF"]),
            output[f"HERMES_{symbol}_EXPO"],
            output[f"HERMES_{symbol}_PUBLISH_TIME"],
        )
        value["parsed"][0]["id"] = feed_id
        result = parse_price(value, feed_id, NOW)
        assert result.price == Decimal(output[f"HERMES_{symbol}_PRICE"]) / 10**8
        assert result.confidence == Decimal(output[f"HERMES_{symbol}_CONF"]) / 10**8
        assert result.published_at == output[f"HERMES_{symbol}_PUBLISH_TIME"] * 1000


def test_a_price_at_an_instant_is_the_first_of_the_next_whole_second() -> None:
    pyth = PythServer(fixed_reply=hermes(second=SECOND - 50))
    result = ask(pyth, lambda service: service.at("BTC", NOW - 60_000 - 1))
    assert result.published_at == NOW - 50_000
    assert pyth.queries[0]["path"] == f"/v2/updates/price/{SECOND - 60}"


def test_a_price_from_before_the_instant_is_no_answer() -> None:
    with pytest.raises(TransientError, match="an earlier one received"):
        ask(PythServer(fixed_reply=hermes(second=SECOND - 61)), lambda service: service.at("BTC", NOW - 60_000))


def test_a_second_that_the_service_does_not_keep_is_reported_with_its_time() -> None:
    fetcher = FakeTime(NOW).fetcher()
    with (
        serving_app(IndexerServer().app()) as url,
        pytest.raises(UserError, match="no price of BTC at 2026-02-21T14:29:00Z"),
    ):
        asyncio.run(closing(fetcher, Hermes(fetcher, url).at("BTC", NOW - 60_000)))


def test_another_address_comes_from_the_setting(tmp_path: Path) -> None:
    async def priced(settings: Settings) -> OraclePrice:
        async with open_fetcher() as fetcher:
            return await Hermes(fetcher, settings.hermes_url).latest("BTC")

    with serving_app(PythServer(fixed_reply=hermes(second=SECOND)).app()) as url:
        result = asyncio.run(priced(Settings(home=tmp_path, hermes_url=url)))
    assert result.price == Decimal("68522.3")


def test_busy_failing_and_cut_replies_are_tried_again() -> None:
    faults = {1: "busy", 2: "down", 3: "cut", 4: "garbled"}
    pyth = PythServer(fixed_reply=hermes(second=SECOND), faults=faults.get)
    assert latest_price(pyth).published_at == NOW
    assert len(pyth.queries) == 5


def test_a_server_that_never_answers_is_given_up() -> None:
    with pytest.raises(TransientError, match="no complete reply"):
        latest_price(PythServer(hang=True), timeout_s=0.05, attempts=2)


@pytest.mark.parametrize("content", [b"<html></html>", b"", b"[", b"NaN"])
def test_what_is_not_json_is_reported(content: bytes) -> None:
    with pytest.raises(TransientError, match="not valid JSON"):
        latest_price(PythServer(content=content))


def test_a_reply_without_end_is_not_read() -> None:
    with pytest.raises(UserError, match="sent more than"):
        latest_price(PythServer(content=b" " * (2 * 2**20)))


def hermes_reply_with(**fields: Any) -> dict[str, Any]:
    value = hermes(second=SECOND)
    value["parsed"][0]["price"] |= fields
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "no parsed prices"),
        ({"parsed": {}}, "no parsed prices"),
        ({"parsed": []}, "not have exactly one price"),
        ({"parsed": hermes()["parsed"] * 2}, "not have exactly one price"),
        ({"parsed": [{"id": "ff" * 32, "price": {}}]}, "not have exactly one price"),
        ({"parsed": [{"id": BTC, "price": 5}]}, "not have exactly one price"),
        (hermes_reply_with(expo="-8"), "exponent"),
        (hermes_reply_with(expo=-400), "exponent"),
        (hermes_reply_with(expo=True), "exponent"),
        (hermes_reply_with(price=6852230000000), "written as text"),
        (hermes_reply_with(price="NaN"), "written as text"),
        (hermes_reply_with(price="1e9"), "written as text"),
        (hermes_reply_with(price="9" * 400), "written as text"),
        (hermes_reply_with(price="9" * 20, expo=18), "out of range"),
        (hermes_reply_with(price="0"), "out of range"),
        (hermes_reply_with(price="-5"), "out of range"),
        (hermes_reply_with(conf="-1"), "out of range"),
        (hermes_reply_with(publish_time="1771684200"), "no time"),
        (hermes_reply_with(publish_time=True), "no time"),
        (hermes_reply_with(publish_time=0), "no time"),
        (hermes_reply_with(publish_time=SECOND + 60), "in the future"),
        (hermes_reply_with(publish_time=NOW), "in the future"),
        (hermes_reply_with(publish_time=10**300), "in the future"),
    ],
)
def test_a_price_that_cannot_be_is_broken(value: Any, message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        parse_price(value, BTC, NOW)


def test_a_symbol_without_a_feed_is_reported_with_those_that_have_one() -> None:
    assert feed_of("btc") == FEEDS["BTC"]
    assert feed_of(f"0x{BTC.upper()}") == BTC
    for invalid in ("DOGE", "../x", "", "e62d"):
        with pytest.raises(UserError) as caught:
            feed_of(invalid)
        assert "BTC" in caught.value.hint


@given(st.integers(1, 10**19), st.integers(0, 10**19), st.integers(-18, 18), st.integers(1, SECOND))
def test_a_price_is_exact_or_refused(price: int, conf: int, expo: int, second: int) -> None:
    value = hermes(str(price), str(conf), expo, second)
    try:
        result = parse_price(value, BTC, NOW)
    except MalformedReply:
        assert max(price, conf) * Decimal(10) ** expo >= MOST_PRICE
        return
    assert result.price == price * Decimal(10) ** expo
    assert result.confidence == conf * Decimal(10) ** expo
    assert result.published_at == second * 1000


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
FIELDS = {
    "price": st.just("5") | ANYTHING,
    "conf": st.just("1") | ANYTHING,
    "expo": st.just(-8) | ANYTHING,
    "publish_time": st.just(SECOND) | ANYTHING,
}
LISTED = st.fixed_dictionaries({"id": st.just(BTC) | ANYTHING, "price": st.fixed_dictionaries(FIELDS) | ANYTHING})


@given(st.fixed_dictionaries({"parsed": st.lists(LISTED | ANYTHING, max_size=2) | ANYTHING}) | ANYTHING)
def test_any_reply_is_a_price_or_broken(value: Any) -> None:
    try:
        result = parse_price(value, BTC, NOW)
    except MalformedReply:
        return
    assert result.price > 0
    assert 0 < result.published_at <= NOW + 10_000
