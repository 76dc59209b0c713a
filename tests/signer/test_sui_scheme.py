"""The signing process for Sui signs calls of listed functions within its caps, and no transfer of objects."""

import base64
import hashlib
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given as given_values
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import MEANINGS
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.sui_transaction import SuiScheme
from pitboss.signer.sui.keys import address_of, key_of_text
from pitboss.signer.sui.policy import SuiPolicy
from pitboss.signer.sui.transaction_reader import UnreadableTransaction, read_sui_transaction
from signer.sui_transactions import (
    GAS_COIN,
    KEY,
    MANAGER,
    PACKAGE,
    PREDICT,
    call,
    deposit,
    fence,
    given,
    merge,
    mint,
    owned,
    pure,
    result,
    shared,
    split,
    text,
    transaction,
    transfer,
    u64,
)

ADDRESS = address_of(KEY)
STRANGER = "0x" + "66" * 32
START = 20_000 * DAY_MS
POLICY = SuiPolicy.model_validate(
    {
        "version": 1,
        "scheme": "sui_transaction",
        "network": "testnet",
        "package": PACKAGE,
        "objects": [PREDICT, MANAGER],
        "caps": {
            "gas_budget_mist": 50_000_000,
            "gas_per_day_mist": 500_000_000,
            "transactions_per_day": 8,
            "coins_per_day": 30_000_000,
        },
        "targets": [
            {"function": "predict::mint", "amount_argument": 4, "amount_per_day": 10_000_000},
            {"function": "predict_manager::deposit"},
            {"function": "predict_manager::withdraw"},
            {"function": "predict::create_manager"},
            {"function": "market_key::new"},
        ],
    }
)


class RestartableSuiSigner:
    """A handler on a journal in a folder, that can be started again."""

    def __init__(self, folder: Path) -> None:
        self.at, self.folder = START, folder
        self.start()

    def start(self) -> None:
        self.journal = SigningJournal(self.folder / "journal.db")
        self.handler = RequestHandler(KEY, SuiScheme(POLICY), self.journal, lambda: self.at)

    def ask(self, request_id: str, tx: Any, network: Any = "testnet") -> dict[str, Any]:
        payload = {"network": network, "tx": text(tx) if isinstance(tx, bytes) else tx}
        request = {
            "version": 1,
            "op": "sign",
            "scheme": "sui_transaction",
            "request_id": request_id,
            "payload": payload,
        }
        return self.handler.handle(json.dumps(request).encode() + b"\n")

    def describe(self) -> dict[str, Any]:
        return self.handler.handle(b'{"version":1,"op":"describe"}')


@pytest.fixture
def signer(tmp_path: Path) -> RestartableSuiSigner:
    return RestartableSuiSigner(tmp_path)


def test_a_listed_call_is_signed_as_nodes_check_it(signer: RestartableSuiSigner) -> None:
    tx = mint(ADDRESS)
    signature = base64.b64decode(signer.ask("a", tx)["signature"])
    assert signature[:1] == b"\0"
    digest = hashlib.blake2b(b"\0\0\0" + tx, digest_size=32).digest()
    Ed25519PublicKey.from_public_bytes(signature[65:]).verify(signature[1:65], digest)
    assert "0x" + hashlib.blake2b(b"\0" + signature[65:], digest_size=32).hexdigest() == ADDRESS


def test_the_transactions_of_the_writer_are_signed(signer: RestartableSuiSigner) -> None:
    create = transaction(ADDRESS, [], [call("predict::create_manager", [])])
    for number, tx in enumerate((create, deposit(ADDRESS), mint(ADDRESS), fence(ADDRESS))):
        assert signer.ask(f"r{number}", tx)["ok"]
    assert signer.describe()["coins_left"] == 10_000_000


AMOUNT, MANAGER_INPUT = pure(u64(5)), shared(MANAGER, True)
HANDED_OVER = [
    ("S32_SENDER", mint(STRANGER)),
    ("S32_SENDER", mint(ADDRESS, gas_owner=STRANGER)),
    ("S09_GAS", mint(ADDRESS, budget=50_000_001)),
    ("S34_OBJECT", mint(ADDRESS, manager=STRANGER)),
    ("S34_OBJECT", deposit(ADDRESS, manager=STRANGER)),
    ("S33_COMMAND", fence(ADDRESS, STRANGER)),
    ("S04_CONTRACT", transaction(ADDRESS, [], [call("predict::create_manager", [], package=STRANGER)])),
    ("S04_CONTRACT", transaction(ADDRESS, [owned("c1"), pure(bytes(32))], [call("transfer::public_transfer", [given(0), given(1)], package="0x" + "00" * 31 + "02")])),
    ("S05_FUNCTION", transaction(ADDRESS, [MANAGER_INPUT], [call("predict_manager::destroy", [given(0)])])),
    ("S05_FUNCTION", transaction(ADDRESS, [], [call("predict::Mint", [])])),
    # a whole coin, or that for gas, as the argument of a listed call
    ("S33_COMMAND", transaction(ADDRESS, [MANAGER_INPUT, owned("c1")], [call("predict_manager::deposit", [given(0), given(1)])])),
    ("S33_COMMAND", transaction(ADDRESS, [MANAGER_INPUT], [call("predict_manager::deposit", [given(0), GAS_COIN])])),
    ("S33_COMMAND", transaction(ADDRESS, [AMOUNT], [split(GAS_COIN, [given(0)])])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1"), AMOUNT], [split(given(0), [given(1)]), split(result(0), [given(1)])])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1"), pure(b"\5")], [split(given(0), [given(1)])])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1")], [merge(given(0), [GAS_COIN])])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1")], [merge(GAS_COIN, [given(0)])])),
    # what was taken out of the manager goes to another address, or the recipient is not written out
    ("S33_COMMAND", transaction(ADDRESS, [MANAGER_INPUT, AMOUNT, pure(bytes.fromhex(STRANGER[2:]))], [call("predict_manager::withdraw", [given(0), given(1)]), transfer([result(0)], given(2))])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1"), AMOUNT], [transfer([given(0)], given(1))])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1")], [transfer([given(0)], result(0))])),
    ("S33_COMMAND", transaction(ADDRESS, [owned("c1")], [transfer([given(0)], given(7))])),
    ("S33_COMMAND", transaction(ADDRESS, [], [call("predict::create_manager", [given(3)])])),
    # the counted number is missing or of another width
    ("S33_COMMAND", transaction(ADDRESS, [], [call("predict::mint", [])])),
    ("S33_COMMAND", transaction(ADDRESS, [pure(b"\5")], [call("predict::mint", [given(0)] * 6)])),
]  # fmt: skip


@pytest.mark.parametrize(("code", "tx"), HANDED_OVER)
def test_what_does_more_than_a_listed_call_is_refused(signer: RestartableSuiSigner, code: str, tx: bytes) -> None:
    assert signer.ask("a", tx)["code"] == code
    assert signer.describe()["transactions_left"] == 8


BYTES = mint(ADDRESS)


@pytest.mark.parametrize(
    "tx",
    [
        b"", BYTES[:-1], BYTES + b"\0", mint(ADDRESS, kind=b"\0\1"), mint(ADDRESS, kind=b"\1\0"), mint(ADDRESS, expiry=b"\0"),
        mint(ADDRESS, expiry=b"\2" + u64(1) * 4), mint(ADDRESS, kind=b"\x80\0\0"), transaction(ADDRESS, [], [b"\4\0\0"]),
        transaction(ADDRESS, [], [b"\5\0\0"]), transaction(ADDRESS, [], [b"\6\0\0"]), transaction(ADDRESS, [b"\2"], []),
        transaction(ADDRESS, [b"\1\2" + bytes(73)], []), transaction(ADDRESS, [shared(MANAGER, True)[:-1] + b"\2"], []),
        "no base64!", text(BYTES)[:-1], 5, None,
    ],
)  # fmt: skip
def test_bytes_that_are_no_transaction_of_that_kind_are_refused(signer: RestartableSuiSigner, tx: Any) -> None:
    assert signer.ask("a", tx)["code"] == "S01_MALFORMED"


def test_another_network_is_refused(signer: RestartableSuiSigner) -> None:
    assert signer.ask("a", mint(ADDRESS), "mainnet")["code"] == "S18_NETWORK"


def test_a_day_is_limited_in_gas_amounts_coins_and_transactions_over_restarts(signer: RestartableSuiSigner) -> None:
    assert signer.ask("mint", mint(ADDRESS, 10_000_000))["ok"]
    signer.start()
    assert signer.ask("more", mint(ADDRESS, 1))["code"] == "S11_DAY_SPEND"
    assert signer.ask("deposit", deposit(ADDRESS, 30_000_001))["code"] == "S11_DAY_SPEND"
    assert signer.ask("deposit", deposit(ADDRESS, 30_000_000))["ok"]
    signer.at -= DAY_MS
    assert signer.ask("more", mint(ADDRESS, 1))["code"] == "S11_DAY_SPEND"
    signer.at += 2 * DAY_MS
    replies = [signer.ask(f"r{number}", mint(ADDRESS, number + 1, budget=1_000)) for number in range(9)]
    assert [reply.get("code") for reply in replies] == [None] * 8 + ["S12_DAY_COUNT"]


def test_gas_budgets_of_a_day_are_added_up(signer: RestartableSuiSigner) -> None:
    for number in range(8):
        signer.ask(f"r{number}", mint(ADDRESS, number + 1))
    assert signer.describe()["gas_left_mist"] == 100_000_000
    policy = POLICY.model_copy(update={"caps": POLICY.caps.model_copy(update={"transactions_per_day": 99})})
    signer.handler = RequestHandler(KEY, SuiScheme(policy), signer.journal, lambda: signer.at)
    codes = [signer.ask(f"s{number}", mint(ADDRESS, 100 + number)).get("code") for number in range(3)]
    assert codes == [None, None, "S11_DAY_SPEND"]


def test_the_same_request_gets_the_same_signature_and_counts_once(signer: RestartableSuiSigner) -> None:
    first = signer.ask("a", mint(ADDRESS))
    signer.start()
    assert signer.ask("a", mint(ADDRESS)) == first
    assert signer.describe()["transactions_left"] == 7
    assert signer.ask("a", mint(ADDRESS, 5))["code"] == "S13_ID_CONFLICT"
    assert signer.ask("b", mint(ADDRESS))["code"] == "S13_ID_CONFLICT"


def test_neither_description_nor_files_hold_the_key(signer: RestartableSuiSigner) -> None:
    signer.ask("a", mint(ADDRESS))
    shown = (
        json.dumps(signer.describe())
        + json.dumps(SuiScheme(POLICY).show(signer.journal, signer.at))
        + repr(signer.handler)
    )
    for form in (KEY.hex(), base64.b64encode(KEY).decode(), base64.b64encode(b"\0" + KEY).decode()):
        assert form not in shown
        assert all(form.encode() not in path.read_bytes() for path in signer.folder.iterdir())
    assert all(KEY not in path.read_bytes() for path in signer.folder.iterdir())


def test_keys_are_read_in_the_formats_of_wallets() -> None:
    exported = "suiprivkey1qzdlfxn2qa2lj5uprl8pyhexs02sg2wrhdy7qaq50cqgnffw4c2477kg9h3"
    key = key_of_text(exported)
    assert key_of_text(base64.b64encode(b"\0" + key).decode()) == key
    wrong = (exported[:-1] + "4", exported + "x", base64.b64encode(b"\1" + KEY).decode(), KEY.hex(), "nonsense", "")
    for bad in wrong:
        with pytest.raises(UserError) as caught:
            key_of_text(bad)
        assert not bad or bad not in caught.value.message


@given_values(st.binary(max_size=400) | st.integers(0, len(BYTES) - 1).map(lambda cut: BYTES[:cut]))
def test_any_bytes_are_read_or_refused_and_never_raise(data: bytes) -> None:
    with suppress(UnreadableTransaction):
        read_sui_transaction(data)


def corrupted_transaction(chance: random.Random) -> bytes:
    tx = bytearray(chance.choice((mint(ADDRESS, chance.randrange(1, 4_000_000)), deposit(ADDRESS, chance.randrange(1, 9_000_000)), fence(ADDRESS))))  # fmt: skip
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        place = chance.randrange(len(tx))
        tx[place] = chance.choice((chance.randrange(256), tx[place] ^ 1 << chance.randrange(8), 0))
    return bytes(tx)


def attack(folder: Path, seed: int, requests: int) -> tuple[int, int]:
    """Flip bytes of allowed transactions; what is signed must differ from an allowed one in harmless places only."""
    folder.mkdir(parents=True, exist_ok=True)
    signer, chance, signed, refused = RestartableSuiSigner(folder), random.Random(seed), 0, 0
    for number in range(requests):
        signer.at += chance.randrange(DAY_MS // 4)
        tx = corrupted_transaction(chance)
        reply = signer.ask(f"r{number}", tx)
        if not reply["ok"]:
            assert reply["code"] in MEANINGS
            refused += 1
            continue
        signed += 1
        assert tx.count(bytes.fromhex(ADDRESS[2:])) >= 2
        assert bytes.fromhex(STRANGER[2:]) not in tx
        content = read_sui_transaction(tx)
        assert content.gas_budget <= 50_000_000
        assert {command.package for command in content.commands if command.kind == "call"} <= {PACKAGE}
        changed = {"0x" + one.value.hex() for one in content.inputs if one.kind == "shared" and one.mutable}
        assert changed <= {PREDICT, MANAGER}
    return signed, refused


def test_of_thousands_of_spoiled_transactions_none_that_reaches_further_is_signed(tmp_path: Path) -> None:
    signed, refused = attack(tmp_path, 5, 1_500)
    assert signed > 300
    assert refused > 300
