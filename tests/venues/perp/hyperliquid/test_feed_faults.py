"""The live feed under the faults of streams, networks and prices: one test for each, on the fake exchange in virtual time."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.venues.perp.hyperliquid.exchange_stream import MOST_MALFORMED
from venues.perp.hyperliquid.feed_scene import START, FeedScene

MINUTES = [START + minute * MINUTE_MS for minute in range(60)]


async def wait_for_minute(scene, minute):
    """Wait for a complete minute; return how late it was."""
    async with asyncio.timeout(600):
        await scene.feed.wait_until(MINUTES[minute])
    return scene.clock.now() - MINUTES[minute]


# Streams ----------------------------------------------------------------------------------------------------------------


def test_a_half_open_connection_is_replaced_within_fifteen_seconds_and_no_bar_is_lost():
    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[1] + 30 * SECOND_MS)
        scene.sockets[0].session.is_half_open = True
        broken_at = scene.clock.now()
        await scene.connections(2)
        assert scene.clock.now() - broken_at <= 17 * SECOND_MS  # fifteen, and the pause of the backoff
        assert scene.sockets[0].closed
        assert await wait_for_minute(scene, 4) <= 5 * SECOND_MS
        assert scene.differences() == []

    FeedScene().run(work)


def test_after_a_reconnect_no_bar_counts_before_a_reply_has_filled_the_gap():
    async def work(scene):
        await wait_for_minute(scene, 1)
        series = scene.feed.state.series["BTC", "1m"]
        assert series.is_trusted
        await scene.until(MINUTES[1] + 50 * SECOND_MS)
        scene.sockets[0].session.close(is_abrupt=True)
        await asyncio.sleep(0.01)
        assert not series.is_trusted
        await scene.connections(2)
        before = scene.requests("candleSnapshot")
        await scene.until(MINUTES[2] + 1 * SECOND_MS)  # the stream has sent candles of the next minute by now
        assert scene.feed.complete_until() == MINUTES[1]
        assert await wait_for_minute(scene, 2) <= 4 * SECOND_MS
        assert scene.requests("candleSnapshot") > before
        assert series.is_trusted
        assert scene.differences() == []

    FeedScene().run(work)


def test_a_close_in_silence_and_drops_cost_no_bar():
    rules = (FaultRule("ws_silent_close", times=3, after=40), FaultRule("ws_drop", 0.02))

    async def work(scene):
        for minute in range(1, 11):
            assert await wait_for_minute(scene, minute) <= 6 * SECOND_MS
        assert scene.plan.counts["ws_drop"] >= 2
        assert scene.plan.counts["ws_silent_close"] == 3
        assert scene.differences() == []

    FeedScene(*rules).run(work)


def test_a_stream_that_answers_pings_and_nothing_else_is_replaced():
    async def work(scene):
        await wait_for_minute(scene, 1)
        scene.sockets[0].session.subscriptions.clear()
        await scene.until(scene.clock.now() + 60 * SECOND_MS)
        assert len(scene.sockets) == 2
        assert await wait_for_minute(scene, 3) <= 5 * SECOND_MS

    FeedScene().run(work)


def test_a_subscription_that_is_not_confirmed_ends_the_connection_and_requests_take_over():
    async def work(scene):
        for minute in range(1, 5):
            assert await wait_for_minute(scene, minute) <= 6 * SECOND_MS
        assert scene.feed.stream.connections >= 4
        assert "not confirmed" in scene.feed.trouble()
        assert scene.differences() == []

    scene = FeedScene()
    scene.hub._subscribe = lambda session, method, wanted: None
    scene.run(work)


def test_without_a_stream_requests_keep_the_feed_complete():
    async def work(scene):
        for minute in range(1, 8):
            assert await wait_for_minute(scene, minute) <= 5 * SECOND_MS
            assert scene.mark_age_ms("BTC") <= 5 * SECOND_MS
        assert not scene.sockets
        assert "the stream is not connected: refused; prices are requested instead" in scene.feed.trouble()
        assert scene.feed.opening_problem("BTC") == ""
        assert scene.differences() == []

    scene = FeedScene()
    scene.refuses = True
    scene.run(work)
    assert scene.feed.stream.attempts <= 60  # in seven minutes
    assert scene.requests("candleSnapshot") <= 16


def test_a_duplicate_snapshot_and_messages_about_other_coins_change_nothing():
    async def work(scene):
        await wait_for_minute(scene, 1)
        rows = list(scene.truth("BTC").values())
        for row in rows[-4:] * 3:
            scene.push("candle", row)
        scene.push("candle", {**rows[-1], "s": "SOL"})
        scene.push(
            "candle",
            {**rows[-1], "i": "3m", "t": START // 180_000 * 180_000, "T": START // 180_000 * 180_000 + 179_999},
        )
        scene.push(
            "activeAssetCtx",
            {"coin": "SOL", "ctx": {"markPx": "1", "oraclePx": "1", "midPx": "1", "openInterest": "1"}},
        )
        scene.push("bbo", {"coin": "SOL", "time": scene.clock.now(), "bbo": [None, None]})
        await asyncio.sleep(1)
        assert scene.feed.foreign_messages == 4
        assert set(scene.feed.market().bars) == {("BTC", "1m"), ("BTC", "5m")}
        assert await wait_for_minute(scene, 3) <= 4 * SECOND_MS
        assert scene.differences() == []
        assert len(scene.sockets) == 1
        assert scene.feed.trouble() == ""

    FeedScene().run(work)


def test_candles_out_of_order_are_ignored():
    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[1] + 40 * SECOND_MS)
        early = dict(scene.truth("BTC")[MINUTES[1]])
        await scene.until(MINUTES[2] - 500)
        scene.push("candle", {**early, "n": max(0, early["n"] - 1), "c": "1"})
        await wait_for_minute(scene, 3)
        assert scene.differences() == []

    FeedScene().run(work)


def test_a_contradictory_candle_is_told_and_the_record_of_the_exchange_decides():
    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[2] - 500)
        row = scene.truth("BTC")[MINUTES[1]]
        scene.push("candle", {**row, "o": str(Decimal(row["o"]) + 1), "h": row["o"], "n": row["n"] + 1})
        await wait_for_minute(scene, 2)
        assert "different values for a 1m bar" in scene.feed.trouble()
        assert scene.feed.state.series["BTC", "1m"].contradictions >= 1
        assert scene.differences() == []

    FeedScene().run(work)


def test_a_message_that_the_stream_loses_silently_is_found_by_the_comparison_with_the_record():
    async def work(scene):
        await wait_for_minute(scene, 1)
        row = scene.truth("BTC")[MINUTES[1]]
        await scene.until(MINUTES[2] - 100)
        series = scene.feed.state.series["BTC", "1m"]
        final = series._open_candle
        series._open_candle = replace(final, close=float(row["o"]), trades=final.trades - 1)
        await wait_for_minute(scene, 2)
        assert len(scene.differences()) == 1
        await scene.until(MINUTES[16])
        assert series.contradictions == 1
        assert "different values for a 1m bar" in scene.feed.trouble()

    FeedScene(intervals=()).run(work)


def test_an_open_candle_is_never_a_bar():
    async def work(scene):
        for _ in range(240):
            await asyncio.sleep(0.5)
            for bars in scene.feed.market().bars.values():
                assert bars.open_at[-1] + bars.interval_ms <= scene.exchange.now

    FeedScene().run(work)


def test_a_candle_of_the_future_is_refused():
    async def work(scene):
        await wait_for_minute(scene, 1)
        row = scene.truth("BTC")[MINUTES[1]]
        scene.push("candle", {**row, "t": MINUTES[30], "T": MINUTES[31] - 1})
        await asyncio.sleep(0.1)
        assert scene.feed.stream.malformed == 1
        assert await wait_for_minute(scene, 2) <= 4 * SECOND_MS
        assert scene.differences() == []

    FeedScene().run(work)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", '{"channel":1}', '{"channel":"candle"}', '{"channel":"candle","data":{"t":1}}',
        '{"channel":"error","data":"no"}', '{"channel":"bbo","data":{"coin":"BTC","time":1,"bbo":[null,null]}}',
        '{"channel":"activeAssetCtx","data":{"coin":"BTC","ctx":{"markPx":"NaN"}}}',
        '{"channel":"candle","data":{"t":1e999}}', "\ud83d\udca5" * 10, '{"channel":"subscriptionResponse","data":[]}',
    ],
)  # fmt: skip
def test_messages_that_cannot_be_read_are_counted_and_many_of_them_end_the_connection(text):
    async def work(scene):
        await scene.until(START + 5 * SECOND_MS)
        scene.sockets[0].queue.put_nowait(text)
        await asyncio.sleep(0.1)
        assert scene.feed.stream.malformed == 1
        assert len(scene.sockets) == 1
        for _ in range(MOST_MALFORMED):
            scene.sockets[0].queue.put_nowait(text)
        await asyncio.sleep(5)
        assert len(scene.sockets) == 2
        assert not scene.feed.has_failed()
        assert set(scene.feed.marks()) == {"BTC"}

    FeedScene().run(work)


# Networks ---------------------------------------------------------------------------------------------------------------


def test_an_outage_of_37_minutes_is_no_busy_loop_and_is_filled_whole_before_bars_count():
    async def work(scene):
        await wait_for_minute(scene, 2)
        scene.fault("outage")
        sent, attempts = len(scene.info.sent), scene.feed.stream.attempts
        await scene.until(MINUTES[2] + 36 * MINUTE_MS)
        assert scene.feed.complete_until() <= MINUTES[3]
        assert "requests fail" in scene.feed.trouble()
        assert scene.mark_age_ms("BTC") > 35 * MINUTE_MS
        assert len(scene.info.sent) - sent <= 36 * 8
        assert scene.feed.stream.attempts - attempts <= 36 * 8
        await wait_for_minute(scene, 40)
        assert scene.clock.now() <= MINUTES[40] + 60 * SECOND_MS
        assert scene.differences() == []
        await scene.until(MINUTES[42])
        assert await wait_for_minute(scene, 43) <= 5 * SECOND_MS
        assert scene.feed.opening_problem("BTC") == ""

    FeedScene().run(work)


def test_flapping_every_second_is_no_busy_loop():
    async def work(scene):
        await wait_for_minute(scene, 1)
        scene.fault("flapping", duration_ms=10 * MINUTE_MS)
        sent, attempts = len(scene.info.sent), scene.feed.stream.attempts
        await scene.until(MINUTES[11])
        assert scene.feed.stream.attempts - attempts <= 10 * 8
        assert len(scene.info.sent) - sent <= 10 * 40
        await wait_for_minute(scene, 12)
        assert scene.differences() == []

    FeedScene().run(work)


@pytest.mark.parametrize("jitter", [0.0, 0.999999])
def test_the_pauses_are_bounded_for_every_random_number(jitter):
    async def work(scene):
        await scene.until(START + 10 * MINUTE_MS)
        return scene.feed.stream.attempts, len(scene.info.sent)

    scene = FeedScene()
    scene.refuses = True
    scene.random.random = lambda: jitter
    attempts, sent = scene.run(work)
    assert attempts <= 10 * 60 * 4
    assert attempts >= 10
    assert sent <= 10 * 40


@pytest.mark.parametrize(
    "kind", ["http_502_html", "http_500", "empty_body", "truncated_json", "captive_portal", "connection_reset", "never_received"]
)  # fmt: skip
def test_replies_that_break_delay_bars_and_never_make_up_any(kind):
    async def work(scene):
        for minute in range(1, 5):
            await wait_for_minute(scene, minute)
        assert scene.plan.counts[kind] >= 2
        assert scene.differences() == []
        assert not scene.feed.has_failed()

    FeedScene(FaultRule(kind, 0.5, at_ms=30_000)).run(work)


def test_an_empty_reply_by_error_is_not_a_missing_bar():
    lies = []

    def lie(body, reply):
        return [] if body["type"] == "candleSnapshot" and lies else reply

    async def work(scene):
        lies.append(True)
        await scene.until(MINUTES[1] + 40 * SECOND_MS)
        assert scene.feed.complete_until() == MINUTES[0]
        assert "a 1m bar is overdue" in scene.feed.trouble()
        lies.clear()
        await wait_for_minute(scene, 2)
        assert scene.differences() == []
        assert scene.feed.state.series["BTC", "1m"].missing == 0

    scene = FeedScene()
    scene.refuses = True
    scene.info.change = lie
    scene.run(work)


def test_a_symbol_without_bars_is_given_up_after_minutes_with_a_notice_and_delays_no_other():
    def without_eth(body, reply):
        if body["type"] == "candleSnapshot" and body["req"]["coin"] == "ETH":
            return [row for row in reply if row["t"] < MINUTES[1]]
        return reply

    async def work(scene):
        for minute in range(1, 5):
            await scene.feed.wait_until(MINUTES[minute], ("BTC",), ("5m",))
            assert scene.clock.now() - MINUTES[minute] <= 6 * SECOND_MS
        await wait_for_minute(scene, 4)
        assert scene.clock.now() - MINUTES[4] <= 3 * MINUTE_MS
        assert "ETH: the exchange has no 1m bars since" in scene.feed.trouble()
        assert "ETH" not in scene.feed.trouble(("BTC",))
        await wait_for_minute(scene, 8)
        assert scene.clock.now() - MINUTES[8] <= 45 * SECOND_MS

    scene = FeedScene(symbols=("BTC", "ETH"))
    scene.refuses = True
    scene.info.change = without_eth
    scene.run(work)


def test_a_task_that_ends_by_a_fault_of_the_program_is_told_to_those_who_wait():
    async def work(scene):
        waiting = asyncio.ensure_future(scene.feed.wait_until(MINUTES[5]))
        await asyncio.sleep(1)

        def broken(*_):
            raise ZeroDivisionError

        scene.feed.state.take_samples = broken
        with pytest.raises(TransientError, match="the feed has failed"):
            await waiting
        assert scene.feed.has_failed()
        assert "the feed has failed" in scene.feed.trouble()
        assert scene.feed.opening_problem("BTC") == "the feed has failed"

    FeedScene().run(work)


# Prices -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("price_10x", "more than 5 % from its oracle"),
        ("price_zero", "not above zero"),
        ("price_negative", "not above zero"),
        ("mark_far_from_oracle", "more than 5 % from its oracle"),
        ("crossed_book", "book is crossed"),
    ],
)
@pytest.mark.parametrize("has_stream", [True, False])
def test_a_wrong_price_is_no_mark_and_is_told_until_it_ends(kind, text, has_stream):
    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[1] + 20 * SECOND_MS)
        good = scene.feed.marks()["BTC"][0]
        scene.fault(kind, duration_ms=20 * SECOND_MS)
        await scene.until(MINUTES[1] + 28 * SECOND_MS)
        assert scene.feed.marks() == {}
        assert text in scene.feed.trouble()
        assert text in scene.feed.opening_problem("BTC")
        await scene.until(MINUTES[1] + 50 * SECOND_MS)
        assert abs(scene.feed.marks()["BTC"][0] / good - 1) < Decimal("0.05")
        assert scene.feed.opening_problem("BTC") == ""
        await wait_for_minute(scene, 3)
        assert scene.differences() == []

    scene = FeedScene()
    scene.refuses = not has_stream
    scene.run(work)


def test_frozen_prices_are_told_after_two_minutes():
    async def work(scene):
        await wait_for_minute(scene, 1)
        scene.fault("price_frozen", duration_ms=4 * MINUTE_MS)
        await scene.until(MINUTES[1] + 150 * SECOND_MS)
        assert scene.feed.marks() == {}
        assert "frozen" in scene.feed.opening_problem("BTC")
        await scene.until(MINUTES[1] + 4 * MINUTE_MS + 20 * SECOND_MS)
        assert set(scene.feed.marks()) == {"BTC"}

    FeedScene().run(work)


@pytest.mark.parametrize("has_stream", [True, False])
def test_an_implausible_bar_is_held_back_for_a_minute_then_added_and_flagged(has_stream):
    spoiled = {}

    def spoil(body, reply):
        if body["type"] != "candleSnapshot" or body["req"]["interval"] != "1m":
            return reply
        return [spoiled.get(row["t"], row) for row in reply]

    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[2] - 500)
        row = dict(scene.truth("BTC")[MINUTES[1]])
        spoiled[MINUTES[1]] = {**row, "h": str(Decimal(row["h"]) * 10), "n": row["n"] + 1}
        if scene.sockets:
            scene.push("candle", spoiled[MINUTES[1]])
        await scene.until(MINUTES[2] + 45 * SECOND_MS)
        assert scene.feed.complete_until() == MINUTES[1]
        assert "a bar moves by more than a factor of 1.5; it is held back" in scene.feed.trouble()
        await wait_for_minute(scene, 2)
        assert 60 * SECOND_MS <= scene.clock.now() - MINUTES[2] <= 100 * SECOND_MS
        bars = scene.bars("BTC")
        assert bars.high[bars.open_at.tolist().index(MINUTES[1])] == float(row["h"]) * 10
        assert scene.feed.marks() == {}
        assert "a bar moved implausibly far" in scene.feed.opening_problem("BTC")
        await scene.until(MINUTES[2] + 10 * MINUTE_MS + SECOND_MS)
        assert set(scene.feed.marks()) == {"BTC"}

    scene = FeedScene(intervals=())
    scene.refuses = not has_stream
    scene.info.change = spoil
    scene.run(work)


def test_a_bar_with_a_price_of_zero_is_never_added():
    def spoil(body, reply):
        if body["type"] != "candleSnapshot":
            return reply
        return [{**row, "l": "0.0"} if row["t"] == MINUTES[1] else row for row in reply]

    async def work(scene):
        await wait_for_minute(scene, 1)
        await scene.until(MINUTES[3])
        assert scene.feed.complete_until() == MINUTES[1]
        assert "not above zero" in scene.feed.trouble()
        await wait_for_minute(scene, 4)
        assert MINUTES[1] not in scene.bars("BTC").open_at.tolist()
        assert scene.feed.state.series["BTC", "1m"].missing == 1

    scene = FeedScene(intervals=())
    scene.refuses = True
    scene.info.change = spoil
    scene.run(work)


def test_a_new_level_that_lasts_a_minute_is_believed():
    async def work(scene):
        await wait_for_minute(scene, 1)
        scene.exchange.set_price("BTC", scene.exchange.state.markets["BTC"].mid * Decimal("1.4"))
        await scene.until(scene.clock.now() + 30 * SECOND_MS)
        assert scene.feed.marks() == {}
        await scene.until(scene.clock.now() + 60 * SECOND_MS)
        assert scene.feed.opening_problem("BTC") in ("", "its prices are frozen")
        await wait_for_minute(scene, 3)

    FeedScene().run(work)


def test_a_message_from_the_future_does_not_make_a_mark_look_fresh():
    async def work(scene):
        await wait_for_minute(scene, 1)
        context = {"markPx": "1", "oraclePx": "1", "midPx": "1", "openInterest": "1"}
        scene.push("bbo", {"coin": "BTC", "time": scene.clock.now() + MINUTE_MS, "bbo": [{"px": "1"}, {"px": "2"}]})
        scene.push("activeAssetCtx", {"coin": "BTC", "ctx": context})
        await asyncio.sleep(3)
        assert all(at <= scene.exchange.now for _, at in scene.feed.marks().values())
        assert scene.feed.stream.malformed == 1

    FeedScene().run(work)
