"""The policy and the caps hold against any request: nothing outside them is ever signed."""

import gzip
import json
import random
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import seeds
from manual_clock import ManualClock
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.signer.denied_functions import is_denied
from pitboss.signer.evm.policy import ContractPolicy, EvmPolicy, signature_parts
from pitboss.signer.evm.transaction import EvmTransaction
from pitboss.signer.evm.transaction_journal import use_of_day
from pitboss.signer.journal import SigningJournal
from pitboss.signer.policy_file import read_policy
from pitboss.signer.protocol import MEANINGS
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.evm_transaction import EXAMPLE_POLICY, EvmScheme
from saved_figures import save_figures
from signer.hostile_requests import (
    CALLS,
    DAY_COUNT_CAP,
    DAY_SPEND_CAP,
    FEE_CAP,
    GAS_CAP,
    GWEI,
    KEY,
    OTHER,
    POLICY,
    TOKEN,
    VALUE_CAP,
    VAULT,
    breaches,
    hostile_line,
    line,
    nonce_and_spend,
    payload,
    selector,
)
from simulated_kill import Killed


class RestartableSigner:
    """A handler on a journal in a folder, that can be killed and started again."""

    def __init__(self, folder: Path, policy: EvmPolicy = POLICY) -> None:
        self.clock = ManualClock(20_000 * DAY_MS)
        self.path = folder / "journal.db"
        self.policy = policy
        self.start()

    def start(self) -> None:
        self.journal = SigningJournal(self.path)
        self.handler = RequestHandler(KEY, EvmScheme(self.policy), self.journal, self.clock.now)

    def ask(self, request_id: str = "a", **changes: Any) -> dict[str, Any]:
        return self.handler.handle(line(request_id, payload(**changes)))


@pytest.fixture
def signer(tmp_path: Path) -> RestartableSigner:
    return RestartableSigner(tmp_path)


def attack(folder: Path, seed: int, requests: int) -> tuple[int, int]:
    """Send hostile requests; check everything that is signed. Return the numbers of signatures and of refusals."""
    folder.mkdir(parents=True, exist_ok=True)
    signer, chance = RestartableSigner(folder), random.Random(seed)
    by_id: dict[str, set[int]] = defaultdict(set)
    by_nonce: dict[int, set[str]] = defaultdict(set)
    spends: dict[int, dict[str, int]] = defaultdict(dict)
    signatures: set[str] = set()
    answered = refused = 0
    for number in range(requests):
        if chance.random() < 0.001:
            signer.clock.at += chance.choice((DAY_MS, DAY_MS // 2, -DAY_MS // 4))
        if chance.random() < 0.0005:
            signer.start()  # the old one is killed: nothing is closed
        sent = hostile_line(chance)
        reply = signer.handler.handle(sent)
        json.dumps(reply)
        if not reply["ok"]:
            assert reply["code"] in MEANINGS, number
            refused += 1
            continue
        answered += 1
        if reply["raw"] in signatures:
            continue
        signatures.add(reply["raw"])
        assert breaches(reply["raw"]) == []
        request_id = json.loads(sent)["request_id"]
        nonce, spend = nonce_and_spend(reply["raw"])
        by_id[request_id].add(nonce)
        by_nonce[nonce].add(request_id)
        day = use_of_day(signer.journal, signer.clock.now()).day
        spends[day][request_id] = max(spend, spends[day].get(request_id, 0))
    assert all(len(nonces) == 1 for nonces in by_id.values())
    assert all(len(ids) == 1 for ids in by_nonce.values())
    for per_request in spends.values():
        assert sum(per_request.values()) <= DAY_SPEND_CAP
        assert len(per_request) <= DAY_COUNT_CAP
    assert answered > 0
    return len(signatures), refused


@pytest.mark.parametrize("seed", seeds(1, 2, quick=1))
def test_of_thousands_of_hostile_requests_nothing_outside_the_policy_is_signed(tmp_path: Path, seed: int) -> None:
    signatures, refused = attack(tmp_path, seed, 4_000)
    assert signatures >= 5
    assert refused > 2_000


@pytest.mark.proof
def test_of_a_million_hostile_requests_nothing_outside_the_policy_is_signed(tmp_path: Path) -> None:
    results = [attack(tmp_path / str(seed), seed, 20_000) for seed in range(50)]
    signatures, refused = sum(result[0] for result in results), sum(result[1] for result in results)
    assert signatures > 500
    save_figures(
        "hostile requests to the signer",
        {"requests": 1_000_000, "signatures": signatures, "refused": refused, "breaches": 0},
    )


@given(st.binary(max_size=300) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20), lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=12), one, max_size=4), max_leaves=12))  # fmt: skip
def test_any_line_gets_an_answer_and_never_an_exception(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    signer = RestartableSigner(tmp_path_factory.mktemp("signer"))
    sent = content if isinstance(content, bytes) else line(payload=content)
    assert signer.handler.handle(sent)["ok"] is False


APPROVE = "0x" + selector("approve(address,uint256)") + "00" * 64
REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # the code, what is just allowed, what is refused
    ("S03_CHAIN", {}, {"chain_id": 1}),
    ("S04_CONTRACT", {}, {"to": OTHER}),
    ("S05_FUNCTION", {}, {"data": "0x" + selector("withdraw(uint128)") + "00" * 32}),
    ("S05_FUNCTION", {}, {"data": "0x"}),
    ("S06_DENIED_FUNCTION", {}, {"data": "0x" + selector("transferOwnership(address)") + "00" * 32}),
    ("S06_DENIED_FUNCTION", {"to": TOKEN, "data": APPROVE}, {"data": APPROVE}),
    ("S07_ARGUMENTS", {}, {"data": "0x" + CALLS[1] + "00"}),
    ("S07_ARGUMENTS", {}, {"data": "0x" + CALLS[1] + "00" * 32}),
    ("S07_ARGUMENTS", {}, {"data": "0x" + CALLS[1][:-2]}),
    ("S08_VALUE", {}, {"value": 1}),
    ("S08_VALUE", {"data": "0x" + CALLS[0], "value": VALUE_CAP}, {"data": "0x" + CALLS[0], "value": VALUE_CAP + 1}),
    ("S09_GAS", {"gas": GAS_CAP}, {"gas": GAS_CAP + 1}),
    ("S10_FEE", {"max_fee_per_gas": FEE_CAP}, {"max_fee_per_gas": FEE_CAP + 1}),
    ("S10_FEE", {"max_priority_fee_per_gas": 3 * GWEI}, {"max_priority_fee_per_gas": 3 * GWEI + 1}),
    ("S10_FEE", {}, {"max_fee_per_gas": GWEI - 1}),
    ("S01_MALFORMED", {}, {"nonce": "1"}),
    ("S01_MALFORMED", {}, {"to": "0x" + "A1b2" * 10}),
]


@pytest.mark.parametrize(("code", "allowed", "refused"), REFUSALS)
def test_each_limit_allows_what_is_at_it_and_refuses_what_is_above(
    signer: RestartableSigner, code: str, allowed: dict[str, Any], refused: dict[str, Any]
) -> None:
    assert signer.ask("refused", **refused)["code"] == code
    assert use_of_day(signer.journal, signer.clock.now()).count == 0
    assert breaches(signer.ask("allowed", **allowed)["raw"]) == []


def test_the_same_request_gets_the_same_bytes_after_a_restart_and_counts_once(signer: RestartableSigner) -> None:
    first = signer.ask("a", nonce=4)
    signer.start()
    assert signer.ask("a", nonce=4) == first
    assert use_of_day(signer.journal, signer.clock.now()).count == 1


@pytest.mark.parametrize("change", [{"nonce": 5}, {"gas": 99_000}, {"data": "0x" + CALLS[0]}, {"to": TOKEN, "data": "0x" + selector("transfer(address,uint256)") + "00" * 64}])  # fmt: skip
def test_another_content_under_a_used_id_is_refused(signer: RestartableSigner, change: dict[str, Any]) -> None:
    assert signer.ask("a", nonce=4)["ok"]
    assert signer.ask("a", **{"nonce": 4, **change})["code"] == "S13_ID_CONFLICT"


def test_a_nonce_belongs_to_one_request_for_ever(signer: RestartableSigner) -> None:
    assert signer.ask("a", nonce=4)["ok"]
    signer.clock.at += 100 * DAY_MS
    assert signer.ask("b", nonce=4)["code"] == "S14_NONCE_USED"


def test_a_replacement_has_the_same_nonce_and_needs_a_tenth_more(signer: RestartableSigner) -> None:
    first = signer.ask("a", nonce=4)
    assert signer.ask("a", nonce=4, max_fee_per_gas=11 * GWEI)["code"] == "S15_FEE_NOT_HIGHER"
    assert signer.ask("a", nonce=4, max_priority_fee_per_gas=2 * GWEI)["code"] == "S15_FEE_NOT_HIGHER"
    second = signer.ask("a", nonce=4, max_fee_per_gas=11 * GWEI, max_priority_fee_per_gas=11 * GWEI // 10)
    assert second["number"] == 2
    assert nonce_and_spend(second["raw"]) == (4, 100_000 * 11 * GWEI)
    assert use_of_day(signer.journal, signer.clock.now()).spend_wei == 100_000 * 11 * GWEI
    assert signer.ask("a", nonce=4) == first  # the first bytes stay what they are


def test_replacements_are_limited(signer: RestartableSigner) -> None:
    codes = [
        signer.ask("a", max_fee_per_gas=fee * GWEI, max_priority_fee_per_gas=fee * GWEI // 20).get("code")
        for fee in (10, 15, 20, 30, 40)
    ]
    assert codes == [None, None, None, None, "S16_REPLACEMENTS"]


def test_the_caps_of_a_day_hold_until_the_next_one_even_if_the_clock_goes_back(signer: RestartableSigner) -> None:
    replies = [signer.ask(f"r{nonce}", nonce=nonce, gas=21_000, max_fee_per_gas=GWEI) for nonce in range(DAY_COUNT_CAP)]
    assert all(reply["ok"] for reply in replies)
    signer.clock.at -= DAY_MS
    assert signer.ask("more", nonce=90)["code"] == "S12_DAY_COUNT"
    signer.clock.at += 2 * DAY_MS
    assert signer.ask("more", nonce=90)["ok"]


def test_value_and_fees_of_a_day_are_capped_together(signer: RestartableSigner) -> None:
    spend = GAS_CAP * FEE_CAP
    replies = [signer.ask(f"r{nonce}", nonce=nonce, gas=GAS_CAP, max_fee_per_gas=FEE_CAP) for nonce in range(12)]
    assert sum(reply["ok"] for reply in replies) == DAY_SPEND_CAP // spend
    assert replies[-1]["code"] == "S11_DAY_SPEND"


def test_a_request_is_counted_before_it_is_signed(signer: RestartableSigner) -> None:
    class DyingScheme(EvmScheme):
        def sign(self, content: Any, key: bytes) -> Any:
            raise Killed

    signer.handler = RequestHandler(KEY, DyingScheme(POLICY), signer.journal, signer.clock.now)
    with pytest.raises(Killed):
        signer.ask("a", nonce=4)
    signer.start()
    assert use_of_day(signer.journal, signer.clock.now()).count == 1
    assert signer.ask("b", nonce=4)["code"] == "S14_NONCE_USED"
    assert signer.ask("a", nonce=4)["ok"]
    assert use_of_day(signer.journal, signer.clock.now()).count == 1


def test_what_cannot_be_counted_is_not_signed(signer: RestartableSigner) -> None:
    other = sqlite3.connect(signer.path, isolation_level=None)
    signer.journal._connection.execute("PRAGMA busy_timeout = 1")
    other.execute("BEGIN IMMEDIATE")
    assert signer.ask("a")["code"] == "S17_UNAVAILABLE"
    other.execute("ROLLBACK")
    other.close()
    assert signer.ask("a")["ok"]


def test_the_example_policy_is_valid_and_private_files_are_required(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE_POLICY)
    path.chmod(0o600)
    assert read_policy(path)[1].chain_id == 11155111
    path.chmod(0o622)
    with pytest.raises(UserError, match="open to other users"):
        read_policy(path)


def test_a_file_of_another_user_is_named_as_one_and_a_chmod_is_not_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE_POLICY)
    path.chmod(0o600)
    owner = path.stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    with pytest.raises(UserError) as error:
        read_policy(path)
    assert str(error.value) == f"{path} belongs to another user"
    assert error.value.hint == f"run the signer as the user with the id {owner}, or give that file to its user"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"withdraw(uint256)"', '"withdraw"', "no full signature"),
        ('"withdraw(uint256)"', '"withdraw(uint)"', "no full signature"),
        ('"withdraw(uint256)"', '"approve(address,uint256)"', "gives rights away"),
        ('payable = ["deposit()"]', 'payable = ["other()"]', "not listed"),
        ("gas = 500_000", "gas = 500_000\nmaximum = 1", "Extra inputs"),
        ("gas = 500_000", 'gas = "500000"', "valid integer"),
        ("0x0000", "0y0000", "address"),
        ("version = 1", "version = 2", "Input should be 1"),
        ("version = 1", "version = ", "cannot be read"),
    ],
)
def test_a_wrong_policy_file_is_refused_with_one_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE_POLICY.replace(old, new))
    path.chmod(0o600)
    with pytest.raises(UserError, match=problem) as error:
        read_policy(path)
    assert "\n" not in error.value.message


@pytest.mark.parametrize("name", ["approve", "permit", "setApprovalForAll", "transferOwnership", "increaseAllowance", "set_owner", "upgradeTo"])  # fmt: skip
def test_functions_that_give_rights_away_are_denied_by_name(name: str) -> None:
    assert is_denied(name)
    assert not is_denied("withdraw")


def test_a_harmless_name_with_the_selector_of_approve_has_to_be_allowed_by_name() -> None:
    signature = "watch_tg_invmru_2f69f1b(address,address)"
    contract = {"address": "0x" + "00" * 20, "functions": [signature]}
    with pytest.raises(ValueError, match="gives rights away"):
        ContractPolicy.model_validate(contract)
    assert ContractPolicy.model_validate({**contract, "allow_denied": [signature]}).functions == (signature,)


def test_a_signature_is_read_in_its_canonical_form_only() -> None:
    assert signature_parts("move((address,uint8)[],bytes)") == ("move", ("(address,uint8)[]", "bytes"))
    for text in ("f(uint)", "f(uint256 )", "f(uint256)[]", "f(uint257)", "f", "()", "f(" + "(" * 900 + ")" * 901):
        assert signature_parts(text) is None, text


def test_the_handler_shows_its_key_nowhere(signer: RestartableSigner) -> None:
    import copy

    assert KEY.hex() not in repr(signer.handler)
    with pytest.raises(TypeError):
        copy.copy(signer.handler)
    described = json.dumps(signer.handler.handle(b'{"version":1,"op":"describe"}'))
    assert KEY.hex() not in described
    assert '"transactions_left": 40' in described
    assert VAULT not in described


VECTORS = Path(__file__).parents[2].parent / "shared" / "data" / "eth" / "typed-transactions.json.gz"


@pytest.mark.skipif(not VECTORS.exists(), reason="../shared/data/eth is not here")
def test_published_signed_transactions_are_reproduced() -> None:
    checked = 0
    for case in json.loads(gzip.decompress(VECTORS.read_bytes())):
        tx = case["tx"]
        if tx["type"] != 2 or "accessList" in tx or "to" not in tx:
            continue
        number = lambda name, tx=tx: int(str(tx.get(name, 0)), 0)  # noqa: E731
        fields = ("chainId", "nonce"), ("value", "gasLimit", "maxFeePerGas", "maxPriorityFeePerGas")
        content = EvmTransaction(
            *map(number, fields[0]), tx["to"].lower(), tx.get("data", "0x").lower(), *map(number, fields[1])
        )
        assert EvmScheme(POLICY).sign(content, bytes.fromhex(case["key"][2:])).raw == case["signed"], case["name"]
        checked += 1
    assert checked > 20
