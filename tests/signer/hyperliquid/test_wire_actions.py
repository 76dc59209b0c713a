"""Actions, their hash and their signature are byte for byte what the exchange's own library makes."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgpack
import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from pitboss.signer.hyperliquid.action_hash import (
    ActionSignature,
    action_hash,
    agent_digest,
    domain_separator,
    sign_action,
    sign_digest,
    typed_digest,
)
from pitboss.signer.hyperliquid.actions import (
    Action,
    LimitWire,
    OrderWire,
    TriggerWire,
    cancel_action,
    cancel_by_cloid_action,
    noop_action,
    order_action,
    schedule_cancel_action,
    update_leverage_action,
    wire_decimal,
)
from signer.hyperliquid.agent_signer import recover_address

WIRE = Path(__file__).parents[3].parent / "shared" / "data" / "wire" / "hyperliquid"
KEY = bytes.fromhex("0123456789" * 6 + "0123")
no_data = pytest.mark.skipif(not WIRE.exists(), reason="../shared/data/wire/hyperliquid is not here")
VAULT = "0x1719884eb866cb12b2287399b15f7db5e7d775ea"


def test_the_connection_id_of_a_production_order_is_reproduced() -> None:
    order = OrderWire(4, True, Decimal("1670.1"), Decimal("0.0147"), False, LimitWire("Ioc"))
    connection_id = action_hash(order_action([order]), 1677777606040)
    assert connection_id.hex() == "0fcbeda5ae3c4950a548021552a4fea2226858c4453571bf3f24ba017eac2908"


def test_the_published_signatures_of_an_order_with_and_without_cloid_are_reproduced() -> None:
    plain = OrderWire(1, True, Decimal(100), Decimal(100), False, LimitWire("Gtc"))
    named = OrderWire(1, True, Decimal(100), Decimal(100), False, LimitWire("Gtc"), "0x" + "0" * 31 + "1")
    assert sign_action(order_action([plain]), 0, "mainnet", KEY) == ActionSignature(
        "0xd65369825a9df5d80099e513cce430311d7d26ddf477f5b3a33d2806b100d78e",
        "0x2b54116ff64054968aa237c20ca9ff68000f977c93289157748a3162b6ea940e",
        28,
    )
    assert sign_action(order_action([named]), 0, "mainnet", KEY) == ActionSignature(
        "0x41ae18e8239a56cacbc5dad94d45d0b747e5da11ad564077fcac71277a946e3",
        "0x3c61f667e747404fe7eea8f90ab0e76cc12ce60270438b2058324681a00116da",
        27,
    )


def vectors() -> dict[str, Any]:
    return {case["name"]: case for case in json.loads((WIRE / "signing_vectors.json").read_text())}


def recorded_action(case: dict[str, Any]) -> Action:
    """The action of a vector: a plain one, or an order that this package writes."""
    inputs = case["inputs"]
    if "order_request" not in inputs:
        action = inputs["action"]
        return {**action, "num": hashed_integer(action["num"]["args"][0])} if "num" in action else action
    request = inputs["order_request"]
    asset = inputs["order_action"]["args"][0][0]["args"][1]
    kind = request["order_type"]
    if "limit" in kind:
        terms: LimitWire | TriggerWire = LimitWire(kind["limit"]["tif"])
    else:
        trigger = kind["trigger"]
        terms = TriggerWire(trigger["isMarket"], Decimal(trigger["triggerPx"]), trigger["tpsl"])
    cloid = request["cloid"]["args"][0] if request["cloid"] else ""
    price, size = (Decimal(str(request[name])) for name in ("limit_px", "sz"))
    return order_action([OrderWire(asset, request["is_buy"], price, size, request["reduce_only"], terms, cloid)])


def hashed_integer(number: float) -> int:
    return int(Decimal(wire_decimal(Decimal(str(number)))) * 10**8)


def check_signatures(expected: list[dict[str, Any]], **signatures: ActionSignature) -> int:
    """Compare the parts of signatures that a vector names; return how many."""
    for line in expected:
        name, part = line["what"].rstrip("]'").split("['")
        assert signatures[name].wire()[part] == line["value"], line
    return len(expected)


@no_data
def test_every_vector_of_signed_actions_is_reproduced() -> None:
    checked = 0
    for name, case in vectors().items():
        if "signature_mainnet" not in case["inputs"] or name == "test_schedule_cancel_action":
            continue
        action, vault = recorded_action(case), case["inputs"]["signature_mainnet"]["args"][2]
        checked += check_signatures(
            case["expected"],
            signature_mainnet=sign_action(action, 0, "mainnet", KEY, vault),
            signature_testnet=sign_action(action, 0, "testnet", KEY, vault),
        )
    expected = vectors()["test_schedule_cancel_action"]["expected"]
    for action, lines in (
        (schedule_cancel_action(None), expected[:6]),
        (schedule_cancel_action(123456789), expected[6:]),
    ):
        checked += check_signatures(
            lines,
            signature_mainnet=sign_action(action, 0, "mainnet", KEY),
            signature_testnet=sign_action(action, 0, "testnet", KEY),
        )
    assert checked == 54


@no_data
def test_the_vector_of_a_production_hash_is_reproduced() -> None:
    case = vectors()["test_phantom_agent_creation_matches_production"]
    connection_id = action_hash(recorded_action(case), case["inputs"]["timestamp"])
    assert "0x" + connection_id.hex() == case["expected"][0]["value"]


@no_data
def test_the_vectors_of_numbers_are_reproduced() -> None:
    lines = vectors()["test_float_to_int_for_hashing"]["expected"]
    for line in lines:
        call = line.get("what") or line["on"]
        number = Decimal(call.partition("(")[2].rstrip(")"))
        if "raises" in line:
            with pytest.raises(ValueError):
                wire_decimal(number)
        else:
            assert int(Decimal(wire_decimal(number)) * 10**8) == line["value"]
    assert len(lines) == 4


@no_data
@pytest.mark.parametrize(
    ("name", "primary"),
    [("test_sign_usd_transfer_action", "UsdSend"), ("test_sign_withdraw_from_bridge_action", "Withdraw")],
)
def test_the_vectors_of_actions_that_only_a_master_key_signs_are_reproduced(name: str, primary: str) -> None:
    # The package has no code for them, so the message is put together here.
    case = vectors()[name]
    message = case["inputs"]["message"]
    kind = f"HyperliquidTransaction:{primary}(string hyperliquidChain,string destination,string amount,uint64 time)"
    texts = [keccak(text.encode()) for text in ("Testnet", message["destination"], message["amount"])]
    struct = keccak(b"".join([keccak(kind.encode()), *texts, message["time"].to_bytes(32, "big")]))
    signature = sign_digest(typed_digest(domain_separator("HyperliquidSignTransaction", 0x66EEE), struct), KEY)
    assert check_signatures(case["expected"], signature=signature) == 3


@given(
    st.binary(min_size=32, max_size=32).filter(lambda key: 0 < int.from_bytes(key, "big") < 2**255),
    st.integers(0, 2**63),
    st.sampled_from(["mainnet", "testnet"]),
    st.none() | st.just(VAULT),
    st.none() | st.integers(0, 2**63),
)
def test_a_signature_equals_that_of_a_general_encoder_and_names_its_signer(
    key: bytes, nonce: int, network: Any, vault: str | None, expires_after: int | None
) -> None:
    action = cancel_action([(3, 77)])
    connection_id = action_hash(action, nonce, vault, expires_after)
    domain = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address")]
    agent = [("source", "string"), ("connectionId", "bytes32")]
    fields = {"EIP712Domain": domain, "Agent": agent}
    message = encode_typed_data(
        full_message={
            "domain": {"chainId": 1337, "name": "Exchange", "verifyingContract": "0x" + "00" * 20, "version": "1"},
            "types": {kind: [{"name": name, "type": type_} for name, type_ in rows] for kind, rows in fields.items()},
            "primaryType": "Agent",
            "message": {"source": "a" if network == "mainnet" else "b", "connectionId": connection_id},
        }
    )
    signed = Account.sign_message(message, key)
    signature = sign_action(action, nonce, network, key, vault, expires_after)
    assert signature == ActionSignature(hex(signed.r), hex(signed.s), signed.v)
    digest = agent_digest(connection_id, network)
    assert recover_address(digest, signature) == str(Account.from_key(key).address).lower()


def test_keys_stand_in_the_order_that_is_hashed() -> None:
    stop = OrderWire(
        2, False, Decimal("90.0"), Decimal("1.50"), True, TriggerWire(True, Decimal(95), "sl"), "0x" + "a" * 32
    )
    action = order_action([stop], "positionTpsl")
    assert list(action) == ["type", "orders", "grouping"]
    assert list(action["orders"][0]) == ["a", "b", "p", "s", "r", "t", "c"]
    assert list(action["orders"][0]["t"]["trigger"]) == ["isMarket", "triggerPx", "tpsl"]
    assert action["orders"][0]["p"] == "90"
    assert action["orders"][0]["s"] == "1.5"
    assert msgpack.packb(action)[:6] == b"\x83\xa4type"
    assert list(cancel_by_cloid_action([(1, "0x" + "b" * 32)])["cancels"][0]) == ["asset", "cloid"]
    assert list(cancel_action([(1, 2)])["cancels"][0]) == ["a", "o"]
    assert list(update_leverage_action(1, True, 5)) == ["type", "asset", "isCross", "leverage"]
    assert noop_action() == {"type": "noop"}
    assert stop.notional == 135


def test_a_cloid_of_another_form_is_an_error() -> None:
    for cloid in ("0x1", "a" * 34, "0x" + "A" * 32, "0x" + "a" * 33):
        with pytest.raises(ValueError, match="cloid"):
            OrderWire(1, True, Decimal(1), Decimal(1), False, LimitWire("Gtc"), cloid).wire()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("100", "100"), ("1E+2", "100"), ("0.00001231", "0.00001231"), ("1.10000000", "1.1"), ("-0", "0"), ("-0.000", "0"),
        ("0.000000010000000000001", "0.00000001"), ("-1.5", "-1.5"), ("123123123123", "123123123123"), ("0.0000000000009", "0"),
    ],
)  # fmt: skip
def test_a_number_is_written_without_trailing_zeros_or_exponent(value: str, written: str) -> None:
    assert wire_decimal(Decimal(value)) == written


@pytest.mark.parametrize("value", ["0.000012312312", "1.000000001", "NaN", "Infinity", "-Infinity", "0.000000000001"])
def test_a_number_that_8_decimals_would_change_is_an_error(value: str) -> None:
    with pytest.raises(ValueError):
        wire_decimal(Decimal(value))


@given(st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=8))
def test_a_number_of_8_decimals_comes_back_from_its_text(value: Decimal) -> None:
    written = wire_decimal(value)
    assert Decimal(written) == value
    assert written == wire_decimal(Decimal(written))


def recorded_orders() -> Iterator[tuple[str, str, str]]:
    """Coin, price and size of every order and every fill of an order; conversions of dust have averages for prices."""

    def walk(value: Any) -> Iterator[tuple[str, str, str]]:
        if isinstance(value, dict):
            if "coin" in value and "oid" in value and value.get("dir") != "Spot Dust Conversion":
                for name in ("limitPx", "px", "triggerPx"):
                    if Decimal(value.get(name) or 0):
                        yield value["coin"], value[name], value.get("origSz") or value["sz"]
            for part in value.values():
                yield from walk(part)
        elif isinstance(value, list):
            for part in value:
                yield from walk(part)

    for name in ("sdk_info_shared.json", "nautilus_hyperliquid.json"):
        yield from walk(json.loads((WIRE / name).read_text()))


@no_data
def test_every_recorded_order_has_one_wire_text_and_the_precision_of_its_market() -> None:
    checked = 0
    for coin, price, size in recorded_orders():
        for number in (price, size):
            assert Decimal(wire_decimal(Decimal(number))) == Decimal(number)
            assert wire_decimal(Decimal(number)) == (number.rstrip("0").rstrip(".") if "." in number else number)
        digits = Decimal(price).normalize()
        is_whole = digits == digits.to_integral_value()
        assert is_whole or len(digits.as_tuple().digits) <= 5, (coin, price)
        places = -int(Decimal(size).normalize().as_tuple().exponent)
        assert is_whole or -int(digits.as_tuple().exponent) + max(places, 0) <= (8 if "/" in coin or "@" in coin else 6)
        checked += 1
    assert checked > 200
