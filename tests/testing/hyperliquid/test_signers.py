"""Authorisation at the fake exchange: signatures, networks, agents, nonces, expiry, and request limits."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, Instant
from pitboss.testing.hyperliquid.exchange import make_ready_account
from pitboss.testing.hyperliquid.nonces import AFTER_MS, BEFORE_MS, MOST, NonceBook
from pitboss.testing.hyperliquid.signatures import address_of_secret, connection_id, sign, signer_of
from testing.hyperliquid.client import PlainClient, still_exchange, wire_order

NOOP = {"type": "noop"}
VECTORS = Path(__file__).parents[3].parent / "shared" / "data" / "wire" / "hyperliquid" / "signing_vectors.json"
KEY = "0x" + "0123456789" * 6 + "0123"
NONCES = st.one_of(st.integers(10**12, 10**12 + 300), st.integers(10**12 - 3 * DAY_MS, 10**12 + 3 * DAY_MS))


def refusal_text(reply: Any) -> str:
    assert reply["status"] == "err", reply
    return reply["response"]


# Signatures -----------------------------------------------------------------------------------------------------------


def gtc_order(cloid: str | None = None) -> dict[str, Any]:
    return {"type": "order", "orders": [wire_order(1, True, "100", "100", cloid=cloid)], "grouping": "na"}


def test_the_documented_vectors_are_reproduced_and_recovered() -> None:
    ioc = {"type": "order", "orders": [wire_order(4, True, "1670.1", "0.0147", "Ioc")], "grouping": "na"}
    hashed = connection_id(ioc, 1_677_777_606_040, None, None)
    assert hashed.hex() == "0fcbeda5ae3c4950a548021552a4fea2226858c4453571bf3f24ba017eac2908"
    plain = sign(KEY, gtc_order(), 0, is_mainnet=True)
    assert plain["signature"] == {
        "r": "0xd65369825a9df5d80099e513cce430311d7d26ddf477f5b3a33d2806b100d78e",
        "s": "0x2b54116ff64054968aa237c20ca9ff68000f977c93289157748a3162b6ea940e",
        "v": 28,
    }
    named = sign(KEY, gtc_order("0x" + "0" * 31 + "1"), 0, is_mainnet=True)
    assert int(named["signature"]["r"], 16) == 0x41AE18E8239A56CACBC5DAD94D45D0B747E5DA11AD564077FCAC71277A946E3
    assert named["signature"]["v"] == 27
    named["signature"]["r"] = hex(int(named["signature"]["r"], 16))  # the SDK leaves leading zeros out
    for body in (plain, named):
        assert signer_of(body, is_mainnet=True) == address_of_secret(KEY)
        assert signer_of(body, is_mainnet=False) != address_of_secret(KEY)


@pytest.mark.skipif(not VECTORS.exists(), reason="../shared/data/wire/hyperliquid is not here")
def test_recorded_vectors_of_orders_are_those_of_the_documentation() -> None:
    recorded = {one["name"]: one for one in json.loads(VECTORS.read_text())}
    expected = recorded["test_l1_action_signing_order_matches"]["expected"]
    values = {one["what"]: one["value"] for one in expected}
    for network, is_mainnet in (("mainnet", True), ("testnet", False)):
        signature = sign(KEY, gtc_order(), 0, is_mainnet=is_mainnet)["signature"]
        for part in "rs":
            assert int(signature[part], 16) == int(values[f"signature_{network}['{part}']"], 16)
        assert signature["v"] == values[f"signature_{network}['v']"]


def test_keys_in_another_order_and_trailing_zeros_are_signed_by_a_stranger() -> None:
    client = PlainClient()
    right = client.body({"type": "order", "orders": [wire_order("BTC", True, "67000", "0.01")], "grouping": "na"})
    order = right["action"]["orders"][0]
    spelled = {**right["action"], "orders": [{**order, "s": "0.010"}]}
    assert json.loads(client.gateway.handle("/exchange", right | {"action": spelled}).text)["status"] == "ok"
    changed = {**right["action"], "orders": [{**order, "s": "0.02"}]}
    text = refusal_text(json.loads(client.gateway.handle("/exchange", right | {"action": changed}).text))
    assert text.startswith("User or API Wallet 0x")
    assert text.endswith(" does not exist.")


@pytest.mark.parametrize("is_mainnet", [False, True])
def test_a_signature_for_the_other_network_is_that_of_a_stranger(is_mainnet: bool) -> None:
    client = PlainClient(still_exchange(is_mainnet=is_mainnet))
    assert client.act(NOOP)["status"] == "ok"
    other = sign(client.secret, NOOP, client.exchange.now + 5, None, not is_mainnet)
    reply = json.loads(client.gateway.handle("/exchange", other).text)
    assert refusal_text(reply).startswith("User or API Wallet")


def test_a_sample_of_signatures_can_be_verified_instead_of_all() -> None:
    client = PlainClient(still_exchange(verify_every=3))
    client.secret = make_ready_account(77).agent_private_key
    assert [client.act(NOOP)["status"] for _ in range(6)] == ["ok", "ok", "err"] * 2


# Agents ---------------------------------------------------------------------------------------------------------------


def test_an_agent_acts_for_its_account_until_it_is_revoked_replaced_or_expired() -> None:
    client = PlainClient()
    ready = client.exchange.ready
    assert client.info("extraAgents")[0]["address"] == ready.agent_address
    assert client.info("userRole", user=ready.agent_address) == {"role": "agent", "data": {"user": client.user}}
    assert client.info("userRole") == {"role": "user"}
    client.exchange.approve_agent(client.user, make_ready_account(5).agent_address, "pitboss")
    unknown = f"User or API Wallet {ready.agent_address} does not exist."
    assert refusal_text(client.act(NOOP)) == unknown
    assert client.info("userRole", user=ready.agent_address) == {"role": "missing"}
    client.exchange.approve_agent(client.user, ready.agent_address, "other", client.exchange.now + 1_000)
    assert client.act(NOOP)["status"] == "ok"
    client.wait(1)
    assert refusal_text(client.act(NOOP)) == unknown
    client.secret = ready.master_private_key
    assert client.act(NOOP)["status"] == "ok"


def test_the_address_of_an_agent_has_an_empty_account() -> None:
    client = PlainClient()
    client.order("BTC", True, "69000", "0.01", "Ioc")
    client.order("BTC", True, "67000", "0.01")
    agent = client.exchange.ready.agent_address
    assert client.info("clearinghouseState", user=agent)["assetPositions"] == []
    assert client.info("clearinghouseState", user=agent)["marginSummary"]["accountValue"] == "0.0"
    assert client.info("openOrders", user=agent) == []
    assert client.info("userFills", user=agent) == []


def test_an_action_of_a_pruned_agent_that_is_approved_again_can_be_replayed() -> None:
    client = PlainClient()
    body = client.body(NOOP, expires_in=None)
    assert client.exchange.exchange(body)["status"] == "ok"
    assert refusal_text(client.exchange.exchange(body)).startswith("Invalid nonce: duplicate nonce")
    client.exchange.revoke_agent(client.user, client.exchange.ready.agent_address)
    client.exchange.approve_agent(client.user, client.exchange.ready.agent_address, "again")
    assert client.exchange.exchange(body)["status"] == "ok"


# Nonces and expiry ----------------------------------------------------------------------------------------------------


def test_a_nonce_is_taken_once_and_within_its_window() -> None:
    client = PlainClient()
    now = client.exchange.now
    assert client.act(NOOP, nonce=now)["status"] == "ok"
    assert refusal_text(client.act(NOOP, nonce=now)) == f"Invalid nonce: duplicate nonce {now}"
    assert refusal_text(client.act(NOOP, nonce=now - BEFORE_MS)).startswith("Invalid nonce: nonce too low")
    assert refusal_text(client.act(NOOP, nonce=now + AFTER_MS)).startswith("Invalid nonce: nonce too high")
    assert client.act(NOOP, nonce=now - 5)["status"] == "ok"


@given(st.lists(NONCES, max_size=400))
def test_the_nonce_book_accepts_what_a_plain_list_of_the_highest_hundred_does(nonces: list[int]) -> None:
    book, kept, now = NonceBook(), [], 10**12
    for nonce in nonces:
        highest = sorted(kept)[-MOST:]
        accepts = now - BEFORE_MS < nonce < now + AFTER_MS and nonce not in highest
        accepts = accepts and (len(highest) < MOST or nonce > highest[0])
        assert (book.refusal("0x1", nonce, now) == "") == accepts
        kept = [*highest, nonce] if accepts else highest


def test_expiry_is_judged_when_the_action_is_carried_out() -> None:
    client = PlainClient()
    body = client.body(NOOP, expires_in=1_000)
    client.wait(1)
    assert client.exchange.exchange(body)["status"] == "ok"
    late = client.body(NOOP, expires_in=1_000)
    client.wait(1.001)
    used = client.exchange.account().requests_used
    assert refusal_text(client.exchange.exchange(late)) == "Action already expired"
    assert client.exchange.account().requests_used == used + 5


# Limits ---------------------------------------------------------------------------------------------------------------


def test_the_weight_of_a_minute_is_limited_and_recovers() -> None:
    client = PlainClient()
    body = {"type": "userRole", "user": client.user}
    statuses = [client.gateway.handle("/info", body).status for _ in range(22)]
    assert statuses == [200] * 20 + [429] * 2
    assert client.deliver(NOOP).status == 429
    client.wait(61)
    assert client.gateway.handle("/info", body).status == 200


def test_an_address_without_budget_gets_one_request_in_ten_seconds_and_cancels_more() -> None:
    client = PlainClient()
    account = client.exchange.account()
    oid = client.order("BTC", True, "67000", "0.01")["resting"]["oid"]
    account.requests_used = 10_000
    assert client.act(NOOP)["status"] == "ok"
    text = "Too many cumulative requests sent (10002 > 10000) for cumulative volume traded $0.0. "
    assert refusal_text(client.act(NOOP)).startswith(text)
    assert client.cancel(0, oid) == "success"
    client.wait(10)
    assert client.act(NOOP)["status"] == "ok"
    account.volume = Decimal(500)
    assert client.act(NOOP)["status"] == "ok"
    limit = client.info("userRateLimit")
    assert (limit["nRequestsUsed"], limit["nRequestsCap"]) == (account.requests_used, 10_500)


def test_time_of_the_exchange_is_told() -> None:
    client = PlainClient()
    client.wait(3)
    at: Instant = client.exchange.now
    assert client.info("exchangeStatus") == {"specialStatuses": None, "time": at}
