"""Bytes and names of transactions: the same for the same input, read back to what was meant."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.venues.predict.sui.chain import CLOCK, Coin, Shared, TransactionBasis, base58, full_id, is_digest
from pitboss.venues.predict.sui.transaction import ContractCall, Fee, build, build_fence, digest_of, library, objects_of
from venues.predict.sui.fake_chain import ORACLE, PLACE, decode
from venues.predict.sui.writer_machine import ADDRESS

U64 = st.integers(0, 2**64 - 1)
IDS = st.binary(min_size=32, max_size=32).map(lambda raw: "0x" + raw.hex())
DIGEST = base58(bytes(range(32)))
COIN = Coin("0x" + "9" * 64, 10, DIGEST, 10**9)
FEE = Fee(ADDRESS, COIN, 50_000_000, 1000, 7)


def transaction_basis(*oracles: str) -> TransactionBasis:
    ids = {*objects_of(PLACE), *oracles}
    return TransactionBasis("x", 7, 1000, {name: Shared(name, 5) for name in ids}, (COIN,))


@given(
    oracle=IDS,
    expiry=U64,
    strike=U64,
    up=st.booleans(),
    quantity=U64,
    keep=U64,
    action=st.sampled_from(["mint", "redeem"]),
)
@settings(max_examples=15)
def test_what_is_built_reads_back_as_what_was_meant(
    oracle: str, expiry: int, strike: int, up: bool, quantity: int, keep: int, action: str
):
    tx = build(PLACE, transaction_basis(oracle), ContractCall(action, oracle, expiry, strike, up, quantity, keep), FEE)
    found = decode(tx)

    pure = [value for kind, value in found.inputs if kind == "pure"]
    numbers = [int.from_bytes(value, "little") for value in pure if len(value) == 8]
    assert numbers == ([keep] if keep else []) + [expiry, strike, quantity]
    assert [value for value in pure if len(value) in (1, 32)] == [bytes.fromhex(oracle[2:]), bytes([up])]
    objects = {value[0] for kind, value in found.inputs if kind == "object"}
    assert objects == {PLACE.predict, PLACE.manager, oracle, CLOCK}
    assert (found.sender, found.coin, found.version, found.last_epoch) == (ADDRESS, COIN.id, 10, 7)
    assert tx == build(
        PLACE, transaction_basis(oracle), ContractCall(action, oracle, expiry, strike, up, quantity, keep), FEE
    )


def test_a_digest_is_the_name_that_pysui_gives_the_same_bytes():
    tx = build(PLACE, transaction_basis(ORACLE), ContractCall("mint", ORACLE, 5, 6, True, 7), FEE)

    assert is_digest(digest_of(tx))
    assert bytes(library().bcs.Digest.from_str(digest_of(tx)).Digest) == _hashed(tx)
    assert digest_of(tx) != digest_of(
        build(PLACE, transaction_basis(ORACLE), ContractCall("mint", ORACLE, 5, 6, True, 8), FEE)
    )


def _hashed(tx: bytes) -> bytes:
    import hashlib

    return hashlib.new("blake2b", b"TransactionData::" + tx, digest_size=32).digest()


def test_a_transaction_of_an_epoch_before_is_another_one():
    call = ContractCall("mint", ORACLE, 5, 6, True, 7)
    later = Fee(ADDRESS, COIN, 50_000_000, 1000, 8)

    assert digest_of(build(PLACE, transaction_basis(ORACLE), call, FEE)) != digest_of(
        build(PLACE, transaction_basis(ORACLE), call, later)
    )


def test_a_fence_touches_nothing_but_its_coin():
    found = decode(build_fence(PLACE, transaction_basis(), FEE))

    assert found.commands == (("", "TransferObjects", ()),)
    assert [kind for kind, _ in found.inputs] == ["pure"]
    assert full_id("0x" + found.inputs[0][1].hex()) == ADDRESS


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_that_the_chain_cannot_hold_is_refused(number: int):
    with pytest.raises(UserError, match="does not fit"):
        build(PLACE, transaction_basis(ORACLE), ContractCall("mint", ORACLE, 5, 6, True, number), FEE)


@given(st.binary(min_size=32, max_size=32))
def test_every_digest_is_one_and_half_of_it_is_none(raw: bytes):
    text = base58(raw)

    assert is_digest(text)
    assert bytes(library().bcs.Digest.from_str(text).Digest) == raw
    assert not is_digest(text[: len(text) // 2])
    assert not is_digest("1" + text)
    assert not is_digest(base64.b64encode(raw).decode())
