"""A series of candles: whatever the order of messages, replies and reconnects, its bars are those of the exchange."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.venues.perp.hyperliquid.candle_series import MISSING_PATIENCE_MS, CandleSeries
from pitboss.venues.perp.hyperliquid.funding_series import FundingSeries
from pitboss.venues.perp.hyperliquid.market_messages import CandleUpdate

START = 29_453_760 * MINUTE_MS
HOUR = 3_600_000


class TrueCandles:
    """The exchange's candles over time: `at` gives those that exist at an instant, with their values then."""

    def __init__(self, seed, minutes):
        random, price = Random(seed), 100.0
        self.states = []  # (time, candle) in order
        for minute in range(minutes):
            open_at = START + minute * MINUTE_MS
            if random.random() < 0.1:
                continue  # a minute without a trade has no candle
            candle = None
            for trades, second in enumerate(sorted(random.sample(range(60), random.randint(1, 8))), 1):
                price = round(price * random.uniform(0.99, 1.01), 4)
                if candle is None:
                    candle = CandleUpdate("BTC", "1m", open_at, price, price, price, price, 1.0, trades)
                else:
                    candle = replace(
                        candle, high=max(candle.high, price), low=min(candle.low, price), close=price,
                        volume=candle.volume + 1, trades=trades,
                    )  # fmt: skip
                self.states.append((open_at + second * SECOND_MS, candle))

    def at(self, instant):
        rows = {candle.open_at: candle for at, candle in self.states if at <= instant}
        return list(rows.values())

    def final(self):
        return {candle.open_at: candle for _, candle in self.states}


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_bars_are_those_of_the_exchange_in_order_and_never_early(seed):
    random, minutes = Random(seed), 12
    truth = TrueCandles(seed, minutes)
    series = CandleSeries("BTC", "1m", START)
    bars, sent, is_connected = [], [], False

    def keep(new, now):
        assert all(bar.closed_at <= now for bar in new)
        bars.extend(new)

    for second in range(minutes * 60 + 200):
        now = START + second * SECOND_MS
        if random.random() < 0.02:
            is_connected = not is_connected
            series.on_disconnect()
        for at, candle in truth.states:
            if at == now and is_connected:
                keep(series.add_update(candle, now), now)
                sent.append(candle)
        if sent and random.random() < 0.2:  # doubled, late and out of order
            keep(series.add_update(random.choice(sent[-12:]), now), now)
        if now >= series.complete_before + (3_000 if series.is_trusted else 1_500) and random.random() < 0.5:
            keep(series.add_snapshot(truth.at(now), now, is_connected), now)
    expected = [candle.bar() for _, candle in sorted(truth.final().items())]
    assert bars == expected
    assert series.contradictions == 0


def test_a_snapshot_twice_releases_each_bar_once():
    truth = TrueCandles(1, 5)
    series = CandleSeries("BTC", "1m", START)
    now = START + 6 * MINUTE_MS
    first = series.add_snapshot(truth.at(now), now, is_subscribed=True)
    assert len(first) == len(truth.final())
    assert series.add_snapshot(truth.at(now), now, is_subscribed=True) == []


def test_an_open_candle_of_a_snapshot_is_not_a_bar():
    candle = CandleUpdate("BTC", "1m", START, 1.0, 1.0, 1.0, 1.0, 1.0, 1)
    series = CandleSeries("BTC", "1m", START)
    assert series.add_snapshot([candle], START + 59_999, is_subscribed=False) == []
    assert series.add_snapshot([candle], START + 60_500, is_subscribed=False) == []  # not settled yet
    assert series.add_snapshot([candle], START + 61_500, is_subscribed=False) == [candle.bar()]


def test_a_closed_bar_that_the_exchange_changes_is_kept_and_told():
    candle = CandleUpdate("BTC", "1m", START, 1.0, 1.0, 1.0, 1.0, 1.0, 1)
    series = CandleSeries("BTC", "1m", START)
    series.add_snapshot([candle], START + 2 * MINUTE_MS, is_subscribed=True)
    for _ in range(3):
        changed = replace(candle, close=1.1, high=1.1, trades=2)
        assert series.add_snapshot([changed], START + 2 * MINUTE_MS, is_subscribed=True) == []
    assert series.contradictions == 1
    assert series.contradicted_at == START + 2 * MINUTE_MS


def test_a_series_that_has_stopped_falls_behind_by_seconds_only():
    series = CandleSeries("BTC", "1m", START)
    now = START + 62 * SECOND_MS
    while series.next_open == START:
        series.add_snapshot([], now, is_subscribed=False)
        now += 20 * SECOND_MS
    assert now - START >= MISSING_PATIENCE_MS
    for _ in range(5):
        now += MINUTE_MS
        series.add_snapshot([], now, is_subscribed=False)
        assert now - series.next_open <= MINUTE_MS + 10 * SECOND_MS
    assert series.is_lacking


def test_the_funding_of_an_hour_is_given_up_only_after_several_replies_without_it():
    funding = FundingSeries("BTC", HOUR)
    assert funding.complete_before(MINUTE_MS) == HOUR + MINUTE_MS
    assert not funding.is_due(HOUR + 2_000)
    assert funding.is_due(HOUR + 3_000)
    funding.add_reply([], HOUR + 1_000)  # too early to say anything
    funding.add_reply([], HOUR + 10_000)
    funding.add_reply([], HOUR + 200_000)
    assert funding.next_hour == HOUR
    funding.add_reply([], HOUR + 210_000)
    assert funding.next_hour == 2 * HOUR
    assert funding.missing == HOUR
    assert funding.add_reply([(2 * HOUR, 0.1)], 2 * HOUR + 5_000) == [(2 * HOUR, 0.1)]
    assert funding.missing is None
