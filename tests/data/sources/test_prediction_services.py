"""The stand-in of indexer and price feed: read by the strict readers, alike in shape and surface to what was recorded."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import indexer_server
import pytest
from import_files import SHARED
from source_servers import FakeTime, closing, serving_app

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.data.hermes import FEEDS, Hermes
from pitboss.testing.prediction_services import BTC, PREDICT, SURFACE, PredictionServices, ask_price, surface
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.data.market_watch import MarketSnapshot, MarketWatch
from pitboss.venues.predict.data.wire import POSITION_STATUSES
from pitboss.venues.predict.ladder import ladder
from pitboss.venues.predict.observed_world import observe_markets
from pitboss.venues.predict.state import Oracle, binary, open_world
from pitboss.venues.predict.trade import preview

NOW = parse_instant("2026-05-27T12:03:07Z")
RECORDED = SHARED / "predict" / "svi_reference_v2.json"


def ask(services: PredictionServices, question: Callable[[Any, str], Awaitable[Any]]) -> Any:
    fetcher = FakeTime(services.now()).fetcher()
    with serving_app(services.app()) as url:
        return asyncio.run(closing(fetcher, question(fetcher, url)))


def started_watch(services: PredictionServices, *tiers: str) -> MarketWatch:
    async def question(fetcher: Any, url: str) -> MarketWatch:
        watch = MarketWatch(Indexer(fetcher, url, PREDICT), "BTC", tiers or ("15m", "1h", "1d", "1w"), services.now)
        await watch.start()
        return watch

    return ask(services, question)


def snapshot(watch: MarketWatch) -> MarketSnapshot:
    assert watch.newest is not None
    return watch.newest


def test_every_reply_has_the_fields_that_the_indexer_documents() -> None:
    services = PredictionServices(lambda: NOW)
    row = next(row for row in services.oracles() if row["status"] == "active")
    name = row["oracle_id"]
    documented = {
        f"/predicts/{PREDICT}/oracles": [indexer_server.oracle_row(1)],
        "/oracles": [indexer_server.oracle_row(1)],
        f"/oracles/{name}/prices": [indexer_server.price_row(1)],
        f"/oracles/{name}/prices/latest": indexer_server.price_row(1),
        f"/oracles/{name}/svi": [indexer_server.surface_row(1)],
        f"/oracles/{name}/svi/latest": indexer_server.surface_row(1),
        f"/trades/{name}": [indexer_server.mint_row(1)],
        f"/predicts/{PREDICT}/state": indexer_server.protocol_state(),
        f"/predicts/{PREDICT}/vault/summary": indexer_server.vault_summary(),
        "/status": indexer_server.indexer_status(),
    }
    for path, expected in documented.items():
        reply = services.reply(path, {})
        if isinstance(expected, list):
            assert reply, path
            reply, expected = reply[0], expected[0]
        assert set(reply) == set(expected), path
        assert {type(value) for value in reply.values()} <= {str, int, float, bool, type(None), list}, path
    assert set(services.reply(f"/oracles/{name}/state", {})) == {"oracle", "latest_price", "latest_svi", "ask_bounds"}
    assert services.reply("/oracles/0x99/state", {}) is None


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded surfaces are not here")
def test_its_surface_is_a_recorded_one_and_its_price_reply_is_of_the_recorded_form() -> None:
    scenario = json.loads(RECORDED.read_text())["scenarios"][0]
    rho, m = (
        -scenario[f"svi_{name}_magnitude"] if scenario[f"svi_{name}_is_negative"] else scenario[f"svi_{name}_magnitude"]
        for name in ("rho", "m")
    )
    assert (scenario["svi_a"], scenario["svi_b"], rho, m, scenario["svi_sigma"]) == SURFACE == surface(10 * HOUR_MS)
    updates = json.loads(Path(SHARED / "wire" / "pyth" / "hermes_updates.json").read_text())
    (parsed,) = (PredictionServices(lambda: NOW).hermes("latest") or {})["parsed"]
    assert parsed["id"] == BTC == FEEDS["BTC"] == updates["feed_ids"]["BTC/USD"].removeprefix("0x")
    assert parsed["price"]["expo"] == updates["expected"]["HERMES_BTC_EXPO"]


def test_all_tiers_are_listed_quoted_and_priced_by_the_protocols_formula() -> None:
    services = PredictionServices(lambda: NOW, pricing=None)
    watch = started_watch(services)
    newest = snapshot(watch)
    assert watch.trouble() == ""
    left = sorted(oracle.expiry_at - NOW for oracle in newest.oracles)
    assert len(left) >= 12
    assert left[0] < 15 * MINUTE_MS
    assert left[-1] > 21 * DAY_MS
    world = observe_markets(open_world(0, 0), newest.oracles, newest.terms, newest.vault, newest.at).world
    for oracle in newest.oracles:
        strike = round(oracle.spot / 10**9 / 50) * 50
        quote = preview(world, binary(oracle.id, "YES", strike * 10**9), NOW)
        units = surface(oracle.expiry_at - (oracle.surfaced_at or 0))
        assert quote.ask / 10**9 == pytest.approx(ask_price(oracle.forward / 10**9, strike, units, True), abs=2e-6)  # type: ignore[union-attr]
        assert ladder(world, oracle.id, NOW)
    assert [fill.kind for fill in watch.tape(newest.oracles[0].id, NOW)][:2] == ["mint", "mint"]


def test_only_markets_of_the_selected_tiers_are_followed_and_those_of_no_tier() -> None:
    services = PredictionServices(lambda: NOW)
    hourly = {oracle.expiry_at for oracle in snapshot(started_watch(services, "1h")).oracles}
    assert {expiry % HOUR_MS for expiry in hourly} == {0}
    assert max(hourly) - NOW < 6 * HOUR_MS
    odd = PredictionServices(lambda: NOW, tiers=("15m",))
    odd.expiries = lambda: [NOW + 7 * MINUTE_MS]  # type: ignore[method-assign]
    assert len(snapshot(started_watch(odd, "1w")).oracles) == 1


def test_a_dead_twin_is_listed_and_an_expired_market_settles() -> None:
    moment = [NOW]
    services = PredictionServices(lambda: moment[0], twins=True)
    rows = services.oracles()
    assert len({row["expiry"] for row in rows}) == len(rows) - 1
    expiry = min(row["expiry"] for row in rows if row["expiry"] > NOW)
    name = services.oracle_id(expiry)
    moment[0] = expiry + 500
    assert services.reply(f"/oracles/{name}/state", {})["oracle"]["settlement_price"] is None
    moment[0] = expiry + 1_000
    oracle: Oracle = ask(services, lambda fetcher, url: Indexer(fetcher, url, PREDICT).oracle(name))
    assert oracle.settlement == round(services.price(expiry // 1_000) * 10**9)


def test_the_price_feed_is_read_and_positions_of_a_manager_too() -> None:
    manager = f"0x{'ab' * 32}"
    services = PredictionServices(lambda: NOW, positions={manager: [indexer_server.position_row()]})
    price = ask(services, lambda fetcher, url: Hermes(fetcher, url).latest("BTC"))
    assert float(price.price) == services.price(NOW // 1_000 - 1)
    (position,) = ask(services, lambda fetcher, url: Indexer(fetcher, url, PREDICT).positions(manager))
    assert position.status in POSITION_STATUSES


def test_the_list_of_markets_is_read_once_a_minute_and_the_settings_every_ten_seconds() -> None:
    now = [NOW]
    services = PredictionServices(now=lambda: now[0], tiers=("1w",))

    async def look() -> None:
        fetcher = FakeTime(NOW).fetcher()
        watch = MarketWatch(Indexer(fetcher, url, PREDICT), "BTC", ("1w",), services.now)
        await watch.start()
        for _ in range(11):
            now[0] += 10_000
            await watch.look()
        await fetcher.close()

    with serving_app(services.app()) as url:
        asyncio.run(look())
    assert len([path for path in services.requests if path.endswith(f"{PREDICT}/oracles")]) == 2
    assert len([path for path in services.requests if path.endswith("/vault/summary")]) == 12


def test_a_run_starts_while_every_market_of_its_underlying_has_expired() -> None:
    services = PredictionServices(now=lambda: NOW, tiers=("1w",))
    services.expiries = lambda: [NOW - 3_600_000]  # type: ignore[method-assign]
    watch = started_watch(services)
    assert watch.newest is None or watch.newest.oracles == ()
    assert "no open market of BTC" in watch.trouble()
