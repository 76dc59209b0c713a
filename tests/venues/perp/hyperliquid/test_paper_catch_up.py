"""A paper account that was down for longer than the bars that a feed loads at its opening: it recovers exactly, or says what is missing."""

from dataclasses import replace
from decimal import Decimal, localcontext

import pytest

from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.core.money import CONTEXT
from pitboss.venues.perp.paper_source import PaperSource
from pitboss.venues.perp.state import Position, TradingTerms, open_world
from venues.perp.hyperliquid.feed_scene import START, FeedScene

SYMBOLS = ("BTC", "ETH")
UNTIL = START // MINUTE_MS * MINUTE_MS


def catch_up_update(history_bars: int, down_ms: int, page: int = 5_000, fails: int = 0):
    """The update of an account with two positions whose process was down so long, and the bars that the feed had at its opening."""
    scene = FeedScene(symbols=SYMBOLS, history_bars=history_bars, history_ms=2 * HOUR_MS)
    refusals = iter([True] * fails)

    def limited(body, reply):
        if body["type"] != "candleSnapshot" or body["req"]["endTime"] > UNTIL - 5 * MINUTE_MS:
            return reply
        if next(refusals, False):
            raise TransientError("no reply")
        return reply[-page:]

    async def work(scene):
        scene.info.change = limited
        source = PaperSource(scene.feed, TradingTerms(scene.feed.assets, Decimal(1), Decimal(4)), SYMBOLS)
        since = UNTIL - down_ms
        reference = scene.truth("BTC"), scene.truth("ETH")
        prices = [Decimal(next(iter(rows.values()))["c"]) for rows in reference]
        stops = prices[0] * Decimal("0.998"), None
        held = {
            symbol: Position(symbol, side * 1000 / price, side * Decimal(1000), since, stop)
            for symbol, price, side, stop in zip(SYMBOLS, prices, (1, -1), stops, strict=True)
        }
        world = replace(
            open_world(Decimal(10_000), since // (24 * HOUR_MS)),
            positions=held,
            leverage=dict.fromkeys(SYMBOLS, 2),
            marks=dict(zip(SYMBOLS, prices, strict=True)),
            marked_at=dict.fromkeys(SYMBOLS, since),
        )
        with localcontext(CONTEXT):
            for _ in range(fails):
                with pytest.raises(TransientError):
                    await source.update(world, UNTIL)
            update = await source.update(world, UNTIL)
            again = await source.update(update.world, UNTIL)
        assert (again.world, again.receipts) == (update.world, ())
        assert scene.differences() == []
        return update

    return scene.run(work)


def test_bars_that_the_feed_did_not_load_are_requested_page_by_page_and_give_the_same_account():
    whole = catch_up_update(110, 90 * MINUTE_MS)
    assert {"filled", "funded"} <= {receipt.kind for receipt in whole.receipts}
    for page, fails in ((5_000, 0), (17, 0), (17, 2)):
        assert catch_up_update(20, 90 * MINUTE_MS, page, fails) == whole


def test_bars_that_the_exchange_no_longer_has_are_told_and_the_account_goes_on_with_the_first_there_is():
    update = catch_up_update(20, 5 * HOUR_MS)
    (gap,) = [receipt for receipt in update.receipts if receipt.kind == "data_gap"]
    assert gap is update.receipts[0]
    assert gap.facts == {"since_at": UNTIL - 5 * HOUR_MS}
    assert UNTIL - 2 * HOUR_MS - MINUTE_MS <= gap.at <= UNTIL - 2 * HOUR_MS + MINUTE_MS
    assert all(receipt.at >= gap.at for receipt in update.receipts)
    assert set(update.world.marked_at.values()) == {UNTIL}
    assert update.world.last_equity > 0
