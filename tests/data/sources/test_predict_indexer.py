"""The indexer read: rows become the venue's nouns, nothing that cannot be passes."""

import asyncio
import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexer_server import (
    HOUR,
    MANAGER,
    NOW,
    PREDICT,
    USD,
    IndexerServer,
    indexer_status,
    mint_row,
    oracle_id,
    oracle_row,
    position_row,
    price_row,
    protocol_state,
    redeem_row,
    server_with_oracles,
    surface_row,
    vault_summary,
)
from source_servers import FakeTime, closing, serving_app

from pitboss.cli.main import main
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import iso
from pitboss.data.fetch import MalformedReply
from pitboss.venues.predict.data import wire
from pitboss.venues.predict.data.indexer import Indexer, Unknown, checked_id
from pitboss.venues.predict.state import MarketTerms, binary
from pitboss.venues.predict.state import status as status_of
from pitboss.venues.predict.sui.chain import full_id
from pitboss.venues.predict.svi import Fair, Svi, price

ONE = oracle_id(1)


def ask(server: IndexerServer, question: Callable[[Indexer], Any], now: int = NOW, **more: Any) -> Any:
    fetcher = FakeTime(now).fetcher(**more)
    with serving_app(server.app()) as url:
        return asyncio.run(closing(fetcher, question(Indexer(fetcher, url, PREDICT))))


# Nouns ----------------------------------------------------------------------------------------------------------------


def test_a_market_comes_with_price_surface_and_bounds_in_the_venues_units() -> None:
    bounds = {"min_ask_price": 20_000_000, "max_ask_price": 980_000_000}
    result = ask(server_with_oracles(oracle_row(1), o1={"ask_bounds": bounds}), lambda indexer: indexer.oracle(ONE))
    assert (result.id, result.underlying, result.expiry_at) == (ONE, "BTC", NOW + HOUR)
    assert (result.spot, result.forward, result.priced_at) == (68_000 * USD + 1, 68_010 * USD + 1, NOW - 1_000)
    assert result.svi == Svi(0.000171736, 0.007449196, -0.243059022, 0.001133202, 0.015731214)
    assert result.ask_bounds == (20_000_000, 980_000_000)
    assert status_of(result, NOW) == "active"
    assert result.grid.holds(63_601 * USD)
    assert not result.grid.holds(63_600 * USD + USD // 2)
    assert isinstance(price("v1", result.forward / USD, 68_000.0, result.svi), Fair)


def test_a_market_without_price_and_surface_yet_has_none() -> None:
    server = server_with_oracles(oracle_row(1), o1={"latest_price": None, "latest_svi": None})
    result = ask(server, lambda indexer: indexer.oracle(ONE))
    assert (result.spot, result.priced_at, result.svi, result.ask_bounds) == (0, None, None, None)


def test_what_the_indexer_still_calls_active_is_not_after_its_expiry() -> None:
    server = server_with_oracles(
        oracle_row(1, NOW - 1),
        oracle_row(2, NOW),
        oracle_row(3),
        oracle_row(4, status="created"),
        oracle_row(5, NOW - HOUR, "settled"),
    )
    result = ask(server, lambda indexer: indexer.markets())
    assert [oracle.id for oracle in result] == [oracle_id(3)]
    assert [path for path in server.paths if "/state" in path] == [f"/oracles/{oracle_id(3)}/state"]


def test_of_oracles_that_have_expired_nothing_but_the_expiry_is_read() -> None:
    expired = oracle_row(1, NOW) | {"underlying_asset": None, "min_strike": -1, "status": "removed"}
    server = IndexerServer(
        {f"/predicts/{PREDICT}/oracles": [oracle_row(3), expired, oracle_row(2, NOW - HOUR, "settled")]}
    )
    assert [oracle.id for oracle in ask(server, lambda indexer: indexer.oracles())] == [oracle_id(3)]


def test_a_list_of_oracles_of_several_years_is_read() -> None:
    expired = oracle_row(1, NOW - HOUR, "settled")
    rows = [expired | {"oracle_id": oracle_id(number)} for number in range(10, 40_000)]
    server = IndexerServer({f"/predicts/{PREDICT}/oracles": [oracle_row(3), *rows]})
    assert [oracle.id for oracle in ask(server, lambda indexer: indexer.oracles())] == [oracle_id(3)]


def test_of_twins_the_one_that_is_still_priced_is_kept() -> None:
    server = server_with_oracles(
        oracle_row(1),
        oracle_row(2),
        oracle_row(3, NOW + 2 * HOUR),
        o1={"latest_price": price_row(1, 1, NOW - 40_000)},
        o2={"latest_price": price_row(2, 2, NOW - 500)},
    )
    result = ask(server, lambda indexer: indexer.markets("BTC"))
    assert [oracle.id for oracle in result] == [oracle_id(2), oracle_id(3)]


def test_a_market_that_vanished_between_two_questions_is_left_out() -> None:
    server = server_with_oracles(oracle_row(1), oracle_row(2, NOW + 2 * HOUR))
    del server.replies[f"/oracles/{ONE}/state"]
    assert [oracle.id for oracle in ask(server, lambda indexer: indexer.markets())] == [oracle_id(2)]


def test_markets_of_another_underlying_are_not_asked_about() -> None:
    server = server_with_oracles(oracle_row(1), oracle_row(2, underlying_asset="ETH"))
    assert [oracle.id for oracle in ask(server, lambda indexer: indexer.markets("ETH"))] == [oracle_id(2)]


def test_settings_that_were_never_changed_are_the_protocols_defaults() -> None:
    server = IndexerServer({f"/predicts/{PREDICT}/state": protocol_state()})
    result = ask(server, lambda indexer: indexer.protocol())
    assert result.terms == MarketTerms()
    assert result.quote_assets == ("0xe9::dusdc::DUSDC",)


def test_settings_that_were_changed_are_those_of_the_operator() -> None:
    pricing = {"base_spread": 30_000_000, "min_spread": 1_000_000, "utilization_multiplier": 3_000_000_000}
    pricing |= {"min_ask_price": 50_000_000, "max_ask_price": 950_000_000}
    output = protocol_state(pricing=pricing, risk={"max_total_exposure_pct": 500_000_000}, trading_paused=True)
    result = ask(IndexerServer({f"/predicts/{PREDICT}/state": output}), lambda indexer: indexer.protocol()).terms
    assert (result.base_spread, result.min_spread, result.utilisation_multiplier) == (30_000_000, 1_000_000, 3 * USD)
    assert (result.min_ask, result.max_ask, result.max_exposure) == (50_000_000, 950_000_000, 500_000_000)
    assert result.paused


def test_the_vault_is_the_venues() -> None:
    result = ask(
        IndexerServer({f"/predicts/{PREDICT}/vault/summary": vault_summary()}), lambda indexer: indexer.vault()
    )
    assert (result.vault.balance, result.vault.total_mtm) == (1_015_751_903_194, 764_264_256)
    assert result.vault.total_max_payout == 2_130_579_304
    assert result.value == result.vault.balance - result.vault.total_mtm


def test_trades_are_contracts_newest_first() -> None:
    server = IndexerServer({f"/trades/{ONE}": [redeem_row(1), mint_row(2, at=NOW - 10), mint_row(2, at=NOW - 10)]})
    first, second = ask(server, lambda indexer: indexer.fills(ONE))
    assert (first.kind, first.contract, first.amount, first.price) == (
        "mint",
        binary(ONE, "YES", 68_000 * USD),
        1_100_000,
        550_000_000,
    )
    assert (second.kind, second.contract.side, second.amount, second.price) == ("redeem", "NO", 900_000, 450_000_000)


def test_positions_are_contracts_with_what_is_open() -> None:
    rows = [position_row(1, mark_price=None), position_row(1, is_up=False, status="lost")]
    result = ask(
        IndexerServer({f"/managers/{MANAGER}/positions/summary": rows}), lambda indexer: indexer.positions(MANAGER)
    )
    assert [line.contract.side for line in result] == ["NO", "YES"]
    assert (result[1].quantity, result[1].cost, result[1].realised, result[1].mark) == (2_000_000, 1_100_000, -25, None)


def test_redeems_are_those_of_one_manager_in_one_market_newest_first() -> None:
    rows = [redeem_row(1, checkpoint_timestamp_ms=NOW - 9_000), redeem_row(2, is_settled=True)]
    server = IndexerServer({"/positions/redeemed": rows})
    newest, oldest = ask(server, lambda indexer: indexer.redemptions(MANAGER, ONE))
    assert (newest.is_settled, newest.tx_digest, newest.amount) == (True, "tx2", 900_000)
    assert (oldest.is_settled, oldest.tx_digest) == (False, "tx1")
    assert f"manager_id={MANAGER}" in server.paths[0]
    assert f"oracle_id={ONE}" in server.paths[0]


@pytest.mark.parametrize(
    "wrong", [{"manager_id": oracle_id(7)}, {"oracle_id": oracle_id(7)}, {"is_settled": None}, {"quantity": -1}]
)
def test_redeems_of_others_or_without_their_kind_are_an_invalid_reply(wrong: dict[str, Any]) -> None:
    server = IndexerServer({"/positions/redeemed": [redeem_row(1, **wrong)]})
    with pytest.raises(TransientError):
        ask(server, lambda indexer: indexer.redemptions(MANAGER, ONE))


def test_the_indexer_says_how_far_it_is_behind() -> None:
    result = ask(
        IndexerServer({"/status": indexer_status(status="UNHEALTHY", max_checkpoint_lag=500)}),
        lambda indexer: indexer.health(),
    )
    assert (result.ok, result.lag_checkpoints, result.at) == (False, 500, NOW)


@pytest.mark.parametrize("limit", [0, -1, 10**9])
def test_a_limit_that_makes_no_sense_is_not_asked_with(limit: int) -> None:
    server = IndexerServer()
    with pytest.raises(UserError, match="out of range"):
        ask(server, lambda indexer: indexer.fills(ONE, limit))
    assert server.paths == []


# Faults ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["busy", "down", "cut", "garbled"])
def test_each_fault_is_tried_again(fault: str) -> None:
    server = server_with_oracles(oracle_row(1), oracle_row(2, NOW + 2 * HOUR))
    server.faults = lambda number: fault if number in (1, 3) else None
    assert len(ask(server, lambda indexer: indexer.markets())) == 2


def test_a_server_that_stays_down_is_one_line() -> None:
    with pytest.raises(TransientError, match="answers 50") as caught:
        ask(
            IndexerServer({"/status": indexer_status()}, faults=lambda number: "down"), lambda indexer: indexer.health()
        )
    assert "\n" not in str(caught.value)


def test_a_server_that_never_answers_is_given_up() -> None:
    with pytest.raises(TransientError, match="no complete reply"):
        ask(IndexerServer(hang=True), lambda indexer: indexer.health(), timeout_s=0.05, attempts=2)


def test_a_reply_without_end_is_not_read() -> None:
    with pytest.raises(UserError, match="sent more than"):
        ask(IndexerServer(content=b" " * (17 * 2**20)), lambda indexer: indexer.health())


@pytest.mark.parametrize("content", [b"<html>", b"", b"{", b"NaN"])
def test_what_is_not_json_is_reported(content: bytes) -> None:
    with pytest.raises(TransientError, match="not valid JSON"):
        ask(IndexerServer(content=content), lambda indexer: indexer.health())


def test_an_id_that_the_server_does_not_know_is_reported_with_what_to_check() -> None:
    with pytest.raises(Unknown, match="knows nothing at /oracles/0x00000000…/state") as caught:
        ask(IndexerServer(), lambda indexer: indexer.oracle("0x77"))
    assert "predict_server_url" in caught.value.hint


def test_more_rows_than_were_asked_for_are_not_taken() -> None:
    rows = [mint_row(number, at=NOW - number) for number in range(5)]
    with pytest.raises(TransientError, match="at most 3 rows"):
        ask(IndexerServer({f"/trades/{ONE}": rows}), lambda indexer: indexer.fills(ONE, 3))


@pytest.mark.parametrize("invalid", ["", "0x", "c8", "0xzz", f"0x{'1' * 65}", "0x1/../2", "0x1?x=1"])
def test_an_id_with_anything_else_in_it_never_reaches_an_address(invalid: str) -> None:
    with pytest.raises(UserError, match="is not an id"):
        checked_id(invalid, "predict_id")


def test_without_an_address_the_setting_is_named() -> None:
    with pytest.raises(UserError) as caught:
        Indexer(FakeTime(NOW).fetcher(), "", PREDICT)
    assert "PITBOSS_PREDICT_SERVER_URL" in caught.value.hint


def test_an_id_has_one_form() -> None:
    assert checked_id(" 0xAB ", "x") == full_id("0xab") == f"0x{'0' * 62}ab"


# Rows that cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (oracle_row(1, status="open"), "status is none of"),
        (oracle_row(1, status="settled", settlement_price=None), "settled without a price"),
        (oracle_row(1, settlement_price=5), "has one without being settled"),
        (oracle_row(1, expiry="1"), "expiry is not a whole number"),
        (oracle_row(1, expiry=True), "expiry is not a whole number"),
        (oracle_row(1, expiry=1.5), "expiry is not a whole number"),
        (oracle_row(1, expiry=0), "expiry is not a time"),
        (oracle_row(1, expiry=10**18), "expiry is not a time"),
        (oracle_row(1, tick_size=3), "grid of strikes"),
        (oracle_row(1, min_strike=-1), "below zero"),
        (oracle_row(1, min_strike=2**70), "not a whole number"),
        (oracle_row(1, oracle_id="0x1/../"), "not an id"),
        (oracle_row(1, underlying_asset="\x1b[31m"), "short plain text"),
        (oracle_row(1, underlying_asset="B" * 500), "short plain text"),
    ],
)
def test_an_oracle_that_cannot_be_is_broken(row: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        wire.oracle_of_row(row)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (price_row(1, spot=0), "spot is zero"),
        (price_row(1, forward=-1), "forward is below zero"),
        (price_row(1, spot=6.8e13), "spot is not a whole number"),
        (price_row(1, oracle=2), "another oracle"),
        (price_row(1, at=NOW + 61_000), "still to come"),
        (price_row(1, event_digest=None), "event_digest"),
    ],
)
def test_a_price_that_cannot_be_is_broken(row: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        wire.price_update(row, ONE, NOW)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (surface_row(1, rho=USD + 1), "rho outside"),
        (surface_row(1, a=-1), "a is below zero"),
        (surface_row(1, rho=-5), "rho is below zero"),
        (surface_row(1, rho_negative="true"), "neither true nor false"),
        (surface_row(1, m_negative=None), "neither true nor false"),
        (surface_row(1, sigma="1"), "sigma is not a whole number"),
    ],
)
def test_a_surface_that_cannot_be_is_broken(row: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        wire.surface_update(row, ONE, NOW)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: wire.protocol_state(protocol_state(predict_id=ONE), PREDICT, MarketTerms()), "got another"),
        (lambda: wire.protocol_state(protocol_state(pricing={}), PREDICT, MarketTerms()), "base_spread"),
        (lambda: wire.protocol_state(protocol_state(pricing=[]), PREDICT, MarketTerms()), "not an object"),
        (
            lambda: wire.protocol_state(
                protocol_state(risk={"max_total_exposure_pct": 2 * USD}), PREDICT, MarketTerms()
            ),
            "the whole",
        ),
        (
            lambda: wire.protocol_state(protocol_state(trading_paused="no"), PREDICT, MarketTerms()),
            "neither true nor false",
        ),
        (lambda: wire.protocol_state(protocol_state(quote_assets=["<b>"]), PREDICT, MarketTerms()), "short plain text"),
        (lambda: wire.vault_summary(vault_summary(vault_balance=None), PREDICT), "vault_balance"),
        (lambda: wire.vault_summary(vault_summary(predict_id=ONE), PREDICT), "got another"),
        (lambda: wire.fill(mint_row(1, type="burn"), ONE, NOW), "none of mint, redeem"),
        (lambda: wire.fill(mint_row(1, ask_price=2 * USD), ONE, NOW), "more than the whole"),
        (lambda: wire.fill(mint_row(1, cost="1"), ONE, NOW), "cost is not a whole number"),
        (lambda: wire.manager_position(position_row(status="won")), "none of awaiting"),
        (lambda: wire.manager_position(position_row(is_up=1)), "neither true nor false"),
        (lambda: wire.health(indexer_status(status="FINE")), "none of OK"),
        (lambda: wire.oracle_state({"oracle": oracle_row(2)}, ONE, NOW), "got another"),
        (
            lambda: wire.oracle_state({"oracle": oracle_row(1), "ask_bounds": {"min_ask_price": 9}}, ONE, NOW),
            "max_ask_price",
        ),
    ],
)
def test_other_replies_that_cannot_be_are_broken(read: Callable[[], Any], message: str) -> None:
    with pytest.raises(MalformedReply, match=message):
        read()


ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
)
READERS: list[tuple[dict[str, Any], Callable[[Any], Any]]] = [
    (oracle_row(1), wire.oracle_of_row),
    (price_row(1), lambda row: wire.price_update(row, ONE, NOW)),
    (surface_row(1), lambda row: wire.surface_update(row, ONE, NOW)),
    (mint_row(1), lambda row: wire.fill(row, ONE, NOW)),
    (position_row(), wire.manager_position),
    (protocol_state(), lambda row: wire.protocol_state(row, PREDICT, MarketTerms())),
    (vault_summary(), lambda row: wire.vault_summary(row, PREDICT)),
    (indexer_status(), wire.health),
    ({"oracle": oracle_row(1), "latest_price": price_row(1)}, lambda row: wire.oracle_state(row, ONE, NOW)),
]


@given(st.sampled_from(READERS), st.data())
def test_a_row_with_anything_in_any_field_is_a_noun_or_broken(
    reader: tuple[dict[str, Any], Callable[[Any], Any]], data: st.DataObject
) -> None:
    row, read = reader
    read(row)
    spoiled = dict(row)
    for name in data.draw(st.lists(st.sampled_from(sorted(row)), min_size=1, max_size=3)):
        spoiled[name] = data.draw(ANYTHING)
    try:
        value = read(spoiled)
    except MalformedReply:
        return
    assert isinstance(value, type(read(row)))


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, USD),
    st.booleans(),
    st.integers(0, 10**9),
    st.booleans(),
    st.integers(0, 10**9),
)
def test_magnitudes_and_flags_become_signed_numbers(
    a: int, b: int, rho: int, rho_negative: bool, m: int, m_negative: bool, sigma: int
) -> None:
    row = surface_row(1, a=a, b=b, rho=rho, rho_negative=rho_negative, m=m, m_negative=m_negative, sigma=sigma)
    surface = wire.surface_update(row, ONE, NOW).svi
    assert (surface.a, surface.b, surface.sigma) == (a / USD, b / USD, sigma / USD)
    assert surface.rho == (-rho if rho_negative else rho) / USD
    assert surface.m == (-m if m_negative else m) / USD


# The command ----------------------------------------------------------------------------------------------------------


def run_command(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


def test_live_markets_are_those_of_the_server_in_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pitboss.bootstrap.machine import SystemClock

    real = SystemClock().now()
    expiry = real + HOUR
    row = oracle_row(1, expiry)
    server = server_with_oracles(
        row, o1={"latest_price": price_row(1, 1, real - 500), "latest_svi": surface_row(1, 1, real - 900)}
    )
    with serving_app(server.app()) as url:
        monkeypatch.setenv("PITBOSS_PREDICT_SERVER_URL", url)
        monkeypatch.setenv("PITBOSS_PREDICT_ID", PREDICT)
        code, out, err = run_command("predict", "markets", "--live", "--json", "--home", str(tmp_path))
        plain = run_command("predict", "markets", "--live", "--home", str(tmp_path))
    assert (code, err) == (0, "")
    (market,) = json.loads(out)["markets"]
    assert (market["market_id"], market["expiry"], market["spot"]) == (ONE, iso(expiry), "68000.000000001")
    assert 0 < market["price_age_s"] < 60
    assert ONE in plain[1]


def test_live_markets_without_an_id_are_those_of_the_only_object_that_the_indexer_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_with_oracles(oracle_row(1, NOW + 100 * 365 * 24 * HOUR // 2))
    server.replies["/oracles"] = server.replies[f"/predicts/{PREDICT}/oracles"]
    with serving_app(server.app()) as url:
        monkeypatch.setenv("PITBOSS_PREDICT_SERVER_URL", url)
        code, out, err = run_command("predict", "markets", "--live", "--json", "--home", str(tmp_path))
    assert (code, err) == (0, "")
    assert [market["market_id"] for market in json.loads(out)["markets"]] == [ONE]


def test_live_markets_without_settings_are_refused_with_their_names(tmp_path: Path) -> None:
    code, out, err = run_command("predict", "markets", "--live", "--home", str(tmp_path))
    assert (code, out) == (2, "")
    assert "PITBOSS_PREDICT_SERVER_URL" in err
