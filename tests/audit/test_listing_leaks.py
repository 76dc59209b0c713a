"""Look-ahead in who is listed: a universe chosen by what comes later is found, an honest one is not blamed."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from grounds import FEW, audited, leaking, with_tool

from pitboss.core.asof import Market, View
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.market import Listing
from pitboss.tools.define import ToolContext
from pitboss.venues.perp.audit.evidence import Evidence
from pitboss.venues.perp.audit.lookahead import AuditSetup
from pitboss.venues.perp.audit.replayed_states import replay_ticks
from pitboss.venues.perp.audit.truncation import NEVER, with_changed_future, without_future


def changed(ground: AuditSetup, listings: Mapping[str, Listing], market_type: type[Market] = Market) -> AuditSetup:
    """The same ground with listings, and copies made as this kind of market."""
    whole = ground.evidence.market
    market = market_type(whole.bars, whole.points, whole.news, whole.events, listings)
    ports = replace(ground.course.ports, view=market.view)
    script = replace(ground.course, market=market, ports=ports)
    trail = asyncio.run(replay_ticks(script))  # what is carried from tick to tick must come from the same listings
    return replace(
        ground,
        course=script,
        replayed=trail,
        evidence=Evidence(market, trail.records, ground.evidence.recordings),
        market_type=market_type,
    )


def leaky(view: type[View]) -> type[Market]:
    class Leaky(Market):
        def view(self, at: Instant) -> Any:
            return view(self, at)

    return Leaky


@pytest.fixture
def listings(ground: AuditSetup) -> dict[str, Listing]:
    """One symbol that comes in the middle of the ticks, one that goes there, announced a day before."""
    moments = ground.replayed.ticks
    middle = moments[len(moments) // 2].at
    return {
        "ETH": Listing("ETH", middle),
        "SOL": Listing("SOL", None, middle + 6 * HOUR_MS, middle - 18 * HOUR_MS),
    }


class Survivors(View):
    """A universe of those that will be there in the end."""

    def listed(self, symbol: str) -> bool:
        listing = self._market.listings.get(symbol)
        return listing is None or listing.delisted_at is None


class SoonListed(View):
    """A symbol counts as listed an hour before it is."""

    def listed(self, symbol: str) -> bool:
        return View(self._market, self.at + HOUR_MS).listed(symbol)


class Forewarned(View):
    """The end of a listing before it was announced."""

    def ends_at(self, symbol: str) -> Instant | None:
        listing = self._market.listings.get(symbol)
        return None if listing is None else listing.delisted_at


@pytest.mark.parametrize("view", [Survivors, SoonListed, Forewarned])
def test_a_universe_chosen_by_who_is_listed_later_is_found(
    ground: AuditSetup, listings: dict[str, Listing], view: type[View]
) -> None:
    result = audited(changed(ground, listings, leaky(view)), FEW)
    assert {"user message", "section market"} <= leaking(result)


def test_an_honest_view_of_listings_shows_no_difference(ground: AuditSetup, listings: dict[str, Listing]) -> None:
    assert leaking(audited(changed(ground, listings), 60)) == set()


def test_a_tool_that_counts_the_listings_to_come_is_found(ground: AuditSetup, listings: dict[str, Listing]) -> None:
    async def coming(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        market = context.observation.view._market
        return " ".join(f"{one.symbol} {one.listed_at} {one.delisted_at}" for one in market.listings.values())

    async def present(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        return " ".join(context.observation.view.unlisted(("BTC", "ETH", "SOL")))

    with_listings = changed(ground, listings)
    assert leaking(audited(with_tool(with_listings, coming), FEW)) == {"tool leaky"}
    assert leaking(audited(with_tool(with_listings, present), FEW)) == set()


def test_copies_agree_with_the_whole_on_everything_that_is_known(
    ground: AuditSetup, listings: dict[str, Listing]
) -> None:
    from numpy.random import PCG64, Generator

    whole = changed(ground, listings).evidence
    for moment in ground.replayed.ticks[:: max(1, len(ground.replayed.ticks) // 40)]:
        at = moment.at
        for copy in (without_future(whole, at), with_changed_future(whole, at, ("BTC",), "5m", Generator(PCG64(at)))):
            mine, theirs = whole.market.view(at), copy.market.view(at)
            for symbol in ("BTC", "ETH", "SOL"):
                assert mine.listed(symbol) == theirs.listed(symbol)
                assert mine.was_delisted(symbol) == theirs.was_delisted(symbol)
                assert mine.ends_at(symbol) == theirs.ends_at(symbol)
        known = without_future(whole, at).market.listings["ETH"].listed_at
        assert known == (listings["ETH"].listed_at if at >= (listings["ETH"].listed_at or 0) else NEVER)
