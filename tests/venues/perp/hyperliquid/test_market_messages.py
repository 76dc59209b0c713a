"""Messages of the exchange: the recorded ones are read, and everything else is refused."""

from decimal import Decimal
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.asset import Asset
from pitboss.core.errors import TransientError
from pitboss.venues.perp.hyperliquid.market_messages import (
    CandleUpdate,
    MalformedMessage,
    read_active_context,
    read_best_prices,
    read_candle,
    read_context,
    read_contexts,
)
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests

WIRE = Path(__file__).parents[5] / "shared/data/wire/hyperliquid"
needs_recordings = pytest.mark.skipif(not WIRE.exists(), reason="../shared/data/wire/hyperliquid is not here")
CANDLE = {
    "t": 1684699200000, "T": 1684702799999, "s": "kPEPE", "i": "1h",
    "o": "0.001601", "c": "0.001604", "h": "0.001616", "l": "0.001601", "v": "5206", "n": 709,
}  # fmt: skip


def recorded_replies(kind):
    rows = orjson.loads((WIRE / "sdk_info_shared.json").read_bytes())
    return [(row["request"], row["response"]) for row in rows if row["request"]["type"] == kind]


class FixedReplyTransport:
    def __init__(self, reply):
        self.reply = reply

    async def post(self, body):
        return self.reply


def run_request(reply, name, *arguments):
    """Run a request whose reply is there at once."""
    with pytest.raises(StopIteration) as end:
        getattr(MarketRequests(FixedReplyTransport(reply)), name)(*arguments).send(None)
    return end.value.value


@needs_recordings
def test_recorded_candles_are_read():
    for request, reply in recorded_replies("candleSnapshot"):
        wanted = request["req"]
        rows = run_request(reply, "candles", wanted["coin"], wanted["interval"], wanted["startTime"], wanted["endTime"])
        assert len(rows) == len(reply) > 10
        assert rows[0].open_at <= wanted["startTime"] < rows[0].closes_at
        assert all(row.low <= row.close <= row.high for row in rows)


@needs_recordings
def test_recorded_funding_is_read():
    for request, reply in recorded_replies("fundingHistory"):
        rows = run_request(reply, "funding", request["coin"], request["startTime"])
        assert len(rows) == len(reply) > 10
        assert sum(at % 3_600_000 == 0 for at, _ in rows) > len(rows) * 0.9
    recent = orjson.loads((WIRE / "nautilus_hyperliquid.json").read_bytes())["http_funding_history.json"]
    assert run_request(recent, "funding", "BTC", 0)[1][1] == -0.0000081


@needs_recordings
def test_recorded_contexts_and_assets_are_read():
    wire = orjson.loads((WIRE / "nautilus_hyperliquid.json").read_bytes())
    (_, contexts), *_ = wire["ws_all_dexs_asset_ctxs.json"]["data"]["ctxs"]
    context = read_context("BTC", contexts[0])
    assert (context.mark, context.oracle, context.mid) == (Decimal("77562.0"), Decimal("77605.0"), Decimal("77558.5"))
    meta = wire["http_meta_perp_sample.json"]
    assets, read = run_request([meta, contexts[: len(meta["universe"])]], "universe")
    assert set(assets) == set(read) == {"BTC", "ETH", "ATOM"}
    assert isinstance(assets["BTC"], Asset)


def test_a_candle_is_read_with_its_numbers():
    candle = read_candle(CANDLE)
    assert candle == CandleUpdate("kPEPE", "1h", 1684699200000, 0.001601, 0.001616, 0.001601, 0.001604, 5206.0, 709)
    assert candle.bar().closed_at == candle.closes_at == 1684702800000


@pytest.mark.parametrize(
    "change",
    [
        {"t": 1684699200001}, {"T": 1684702800000}, {"i": "7m"}, {"i": None}, {"s": ""}, {"n": -1}, {"n": True}, {"n": "7"},
        {"o": 1.5}, {"o": "1e3"}, {"o": "NaN"}, {"o": "Infinity"}, {"o": ""}, {"o": None}, {"c": " 1"}, {"h": "١"}, {"v": "0x1"},
        {"t": None}, {"t": "1684699200000"}, {"t": 0, "T": 3599999}, {"l": "1" * 40},
    ],
)  # fmt: skip
def test_a_candle_with_a_wrong_field_is_refused(change):
    with pytest.raises(MalformedMessage):
        read_candle({**CANDLE, **change})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*CANDLE, "coin", "ctx", "bbo", "time", "markPx", "oraclePx", "universe"]) | st.text(max_size=4), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_any_json_is_read_or_refused_and_never_an_accident(value):
    for read in (read_candle, read_active_context, read_best_prices, read_contexts):
        try:
            read(value)
        except MalformedMessage:
            continue
    for name, arguments in (
        ("candles", ("BTC", "1m", 0, 1)), ("funding", ("BTC", 0)), ("universe", ()), ("exchange_time", ()),
    ):  # fmt: skip
        try:
            run_request(value, name, *arguments)
        except TransientError:
            continue


@pytest.mark.parametrize(
    "rows",
    [
        [{**CANDLE, "s": "BTC"}],
        [{**CANDLE, "i": "4h", "t": 1684699200000 // 14_400_000 * 14_400_000, "T": 1684699200000 // 14_400_000 * 14_400_000 + 14_399_999}],
        [CANDLE, {**CANDLE, "c": "0.0017"}],
        {"rows": []}, None, [None],
    ],
)  # fmt: skip
def test_a_reply_about_something_else_or_with_contradictions_is_refused(rows):
    with pytest.raises(TransientError):
        run_request(rows, "candles", "kPEPE", "1h", 0, 1)


def test_rows_that_are_repeated_count_once():
    assert len(run_request([CANDLE, dict(CANDLE)], "candles", "kPEPE", "1h", 0, 1)) == 1
