"""The rules of the community venue: each allows and each refuses, and no decision of a hostile model passes them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS
from pitboss.core.verdict import Verdict
from pitboss.engine.guard import Judgement, guard
from pitboss.venues.community.agent_world import AgentWorld, post_digest
from pitboss.venues.community.caps import AgentDayUse, CommunityCaps
from pitboss.venues.community.chain.abi import AbiFunction, EncodedCall, encode_call, read_abi, selector_of
from pitboss.venues.community.denied_functions import NAMES, NAMES_BY_SELECTOR, denied_name
from pitboss.venues.community.rule_book import CommunityOrder, CommunityRuleBook, approval_key
from pitboss.venues.community.rules import RULES

AT = 20_000 * DAY_MS + 3_600_000
VAULT, OTHER = "0x" + "ab" * 20, "0x" + "cd" * 20


def function(name: str, *types: str, mutability: str = "nonpayable") -> dict[str, Any]:
    inputs = [{"name": f"a{number}", "type": kind} for number, kind in enumerate(types)]
    return {"type": "function", "name": name, "inputs": inputs, "outputs": [], "stateMutability": mutability}


ABI = [
    function("withdraw", "uint256"),
    function("deposit", mutability="payable"),
    function("balanceOf", "address", mutability="view"),
    function("approve", "address", "uint256"),
    function("set", "uint256"),
    function("set", "string"),
]
COMMUNITY = {
    "id": "c1",
    "slug": "vault",
    "status": "ACTIVE",
    "contracts": [
        {"id": "k1", "name": "Vault", "chain": "Sepolia", "address": VAULT, "abi": ABI},
        {"id": "k2", "name": "Other", "chain": "Mainnet", "address": OTHER, "abi": ABI},
    ],
    "threads": [
        {"id": "t1", "title": "Registry", "type": "SYSTEM", "body": None, "author": "system"},
        {"id": "t2", "title": "Please fund", "type": "REQUEST_TO_HUMAN", "body": "I need gas.", "author": "alpha"},
        {"id": "t3", "title": "Fund me", "type": "REQUEST_TO_HUMAN", "body": "too", "author": "beta"},
    ],
    "recentComments": [{"id": "m1", "threadId": "t1", "body": "A known summary.", "author": "beta"}],
}
WORLD = AgentWorld("a1", "alpha", COMMUNITY)
CAPS = CommunityCaps(
    value_wei=Decimal(1_000),
    spend_wei_per_day=Decimal(10**18),
    chain="Sepolia",
    posts_per_day=3,
    transactions_per_day=2,
    approval_above_wei=Decimal(500),
)


def judge(raw: Any, world: AgentWorld = WORLD, **changes: Any) -> Judgement:
    return guard(CommunityRuleBook(replace(CAPS, **changes), world, AT), {}, raw, AT)


def verdict(raw: Any, world: AgentWorld = WORLD, **changes: Any) -> Verdict:
    return judge(raw, world, **changes).verdict


def thread(**changes: Any) -> dict[str, Any]:
    return {"action": "create_thread", "communitySlug": "vault", "title": "A result", "body": "It holds.", **changes}


def comment(**changes: Any) -> dict[str, Any]:
    return {"action": "comment", "communitySlug": "vault", "threadId": "t1", "body": "A result.", **changes}


def tx(name: str = "withdraw", *args: Any, **changes: Any) -> dict[str, Any]:
    arguments = list(args) or ["5"]
    return {
        "action": "tx",
        "communitySlug": "vault",
        "threadId": "t1",
        "contractAddress": VAULT,
        "functionName": name,
        "args": arguments,
        **changes,
    }


def status(thread_id: str = "t2") -> dict[str, Any]:
    return {"action": "set_request_status", "communitySlug": "vault", "threadId": thread_id, "status": "resolved"}


def source(address: str = VAULT) -> dict[str, Any]:
    return {"action": "request_contract_source", "communitySlug": "vault", "contractAddress": address}


COMMENTS = {"action": "request_thread_comments", "communitySlug": "vault", "threadId": "t1"}
TWO_CHAINS = replace(
    WORLD,
    community={
        **COMMUNITY,
        "contracts": [
            {"id": "m1", "name": "Vault", "chain": "Mainnet", "address": VAULT, "abi": []},
            {"id": "s1", "name": "Vault", "chain": "Sepolia", "address": VAULT, "abi": ABI},
        ],
    },
)
BUSY = replace(WORLD, use=AgentDayUse(20_000, posts=3, transactions=2, spend_wei=Decimal(10**18)))
CLOSED = replace(WORLD, community={**COMMUNITY, "status": "CLOSED"})
POSTED = replace(WORLD, own_posts=(post_digest("t1", "", "A result."),), thread_ticks=(AT,))
NO_ADDRESS = replace(
    WORLD,
    community={**COMMUNITY, "contracts": [{"id": "k4", "chain": "Sepolia", "address": 5, "abi": ABI}, {"abi": ABI}]},
)
DEPOSIT = tx("deposit", args=[], value="600")


@pytest.mark.parametrize(
    ("raw", "world", "caps"),
    [
        (thread(), WORLD, {}),
        (comment(), WORLD, {}),
        (status(), WORLD, {}),
        (source(), WORLD, {}),
        (source(VAULT.upper().replace("X", "x")), WORLD, {}),
        (COMMENTS, WORLD, {}),
        (COMMENTS, CLOSED, {}),
        (source(), CLOSED, {}),
        (tx(), WORLD, {}),
        (tx(), TWO_CHAINS, {}),
        (tx(), WORLD, {"contracts": (VAULT,), "functions": ("withdraw(uint256)",)}),
        (tx("set(uint256)", 5), WORLD, {}),
        (tx("set", "text"), WORLD, {}),
        (tx("balanceOf", OTHER), BUSY, {}),
        (tx("deposit", args=[], value="500"), WORLD, {}),
        (DEPOSIT, WORLD, {"approval_above_wei": None}),
        (tx("approve", OTHER, 5), WORLD, {"allowed_denied": ("approve",)}),
        (comment(), replace(BUSY, use=AgentDayUse(19_999, posts=3)), {}),
        (comment(threadId="t2"), POSTED, {}),
        (thread(title="B"), POSTED, {"threads_per_tick": 2}),
    ],
)
def test_the_rules_allow(raw: Any, world: AgentWorld, caps: dict[str, Any]) -> None:
    result = judge(raw, world, **caps)
    assert (result.verdict.outcome, result.verdict.code, result.broken) == ("allowed", None, False)
    assert isinstance(result.order, CommunityOrder)


@pytest.mark.parametrize(
    ("code", "raw", "world", "caps"),
    [
        ("C1_SHAPE", {**comment(), "extra": 1}, WORLD, {}),
        ("C1_SHAPE", 5, WORLD, {}),
        ("C2_SCOPE", comment(communitySlug="other"), WORLD, {}),
        ("C2_SCOPE", comment(), replace(WORLD, community=None), {}),
        ("C2_SCOPE", comment(), CLOSED, {}),
        ("C2_SCOPE", tx(), CLOSED, {}),
        ("C3_THREAD", comment(threadId="t9"), WORLD, {}),
        ("C3_THREAD", tx(threadId="t9"), WORLD, {}),
        ("C4_TEXT", comment(body="x" * 8_001), WORLD, {}),
        ("C4_TEXT", comment(body="😀" * 4_001), WORLD, {}),
        ("C4_TEXT", thread(title="x" * 181), WORLD, {}),
        ("C4_TEXT", thread(body="  "), WORLD, {}),
        ("C5_ONE_THREAD", thread(), POSTED, {}),
        ("C6_DUPLICATE", comment(), POSTED, {}),
        ("C6_DUPLICATE", comment(body="a   KNOWN summary"), WORLD, {}),
        ("C6_DUPLICATE", thread(title="Please fund", body="i need gas"), WORLD, {}),
        ("C7_POSTS_DAY", comment(), BUSY, {}),
        ("C7_POSTS_DAY", comment(), replace(BUSY, use=AgentDayUse(20_001, posts=3)), {}),
        ("C8_STATUS", status("t1"), WORLD, {}),
        ("C8_STATUS", status("t3"), WORLD, {}),
        ("C9_CONTRACT", tx(contractAddress="0x" + "11" * 20), WORLD, {}),
        ("C9_CONTRACT", source("0x" + "11" * 20), WORLD, {}),
        ("C9_CONTRACT", tx(), WORLD, {"contracts": (OTHER,)}),
        ("C9_CONTRACT", tx(contractAddress="5"), NO_ADDRESS, {}),
        ("C9_CONTRACT", tx(contractAddress="None"), NO_ADDRESS, {}),
        ("C10_FUNCTION", tx("drain"), WORLD, {}),
        ("C10_FUNCTION", tx(), WORLD, {"functions": ("deposit()",)}),
        ("C11_ARGUMENTS", tx("withdraw", "-1"), WORLD, {}),
        ("C11_ARGUMENTS", tx("withdraw", 2**256), WORLD, {}),
        ("C11_ARGUMENTS", tx("set", True), WORLD, {}),
        ("C12_DENIED", tx("approve", OTHER, 5), WORLD, {}),
        ("C13_CHAIN", tx(contractAddress=OTHER), WORLD, {}),
        ("C13_CHAIN", tx(), WORLD, {"chain": ""}),
        ("C14_VALUE", tx("deposit", args=[], value="1001"), WORLD, {}),
        ("C14_VALUE", tx(value="1"), WORLD, {}),
        ("C15_TX_DAY", tx(), BUSY, {}),
        ("C16_SPEND_DAY", tx(), replace(BUSY, use=AgentDayUse(20_000, spend_wei=Decimal(10**18))), {}),
        ("C17_APPROVAL", DEPOSIT, WORLD, {}),
    ],
)
def test_the_rules_refuse(code: str, raw: Any, world: AgentWorld, caps: dict[str, Any]) -> None:
    result = judge(raw, world, **caps)
    assert (result.verdict.outcome, result.verdict.code, result.broken) == ("refused", code, False)
    assert result.order is None


def test_every_code_is_tested() -> None:
    refused = {
        mark.args[1][number][0] for mark in test_the_rules_refuse.pytestmark for number in range(len(mark.args[1]))
    }
    assert refused == {rule.code for rule in RULES} - {"C18_VENUE"}


def test_a_large_transaction_passes_once_its_key_is_approved() -> None:
    order = judge(DEPOSIT, approval_above_wei=None).order
    assert order is not None
    assert order.call is not None
    whole_key = approval_key(order.action, order.call)
    key = verdict(DEPOSIT).detail.rpartition(" ")[2]
    assert whole_key.startswith(key)
    assert verdict(DEPOSIT, replace(WORLD, approved=(whole_key,))).outcome == "allowed"
    assert verdict({**DEPOSIT, "value": "601"}, replace(WORLD, approved=(whole_key,))).outcome == "refused"


def test_an_approval_is_good_for_one_transaction_however_its_value_is_written() -> None:
    proposal = judge(DEPOSIT, approval_above_wei=None).order
    key = approval_key(proposal.action, proposal.call)
    order = judge(DEPOSIT, replace(WORLD, approved=(key,))).order
    assert order is not None
    after = replace(WORLD, approved=(key,)).with_transaction(AT, order.spend_wei, order.approval_key)
    assert after.use == AgentDayUse(20_000, transactions=1, spend_wei=order.spend_wei)
    assert verdict(DEPOSIT, after).code == verdict({**DEPOSIT, "value": 600}, after).code == "C17_APPROVAL"


def test_different_actions_have_different_keys() -> None:
    actions = [thread(), thread(threadType="REPORT_TO_HUMAN"), comment(), comment(commentKind="JOKE"), COMMENTS]
    actions += [
        {**COMMENTS, "commentLimit": 5},
        *({**source(), "contractAddress": None, "contractId": one} for one in ("k1", "k2")),
    ]
    orders = [judge(action).order for action in actions]
    assert len({order.key for order in orders if order is not None}) == len(actions)


def test_what_was_checked_is_what_is_sent() -> None:
    order = judge(tx("set", "7")).order
    assert order is None  # "7" fits uint256 and string
    order = judge(tx("set(string)", "7")).order
    assert order is not None
    assert order.call == encode_call(read_abi(ABI), "set(string)", ["7"])
    assert order.contract_address == VAULT


def test_a_harmless_name_with_the_selector_of_a_denied_function_is_denied() -> None:
    approve = AbiFunction("approve", ("address", "uint256"), (), "nonpayable")
    assert NAMES_BY_SELECTOR[approve.selector] == "approve" == denied_name(approve)
    assert denied_name(approve, ["approve"]) is None
    collision = AbiFunction("join_tg_invmru_haha_fd06787", ("address", "bool"), (), "nonpayable")
    assert collision.selector == selector_of("transfer(address,uint256)")
    assert denied_name(collision) == "transfer"
    assert set(NAMES_BY_SELECTOR.values()) <= NAMES


HOSTILE_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**260), 2**260),
    st.sampled_from(["0", "1", "500", "501", "1001", str(2**255), "-1", "1e3", "0x1", "", "NaN", " 1"]),
    st.text(max_size=5),
)
HOSTILE_ACTIONS = st.fixed_dictionaries(
    {
        "action": st.sampled_from(["tx", "tx", "tx", "comment", "create_thread", "TX", "send"]),
        "communitySlug": st.sampled_from(["vault", "vault", "vault", "Vault", "other", ""]),
        "threadId": st.sampled_from(["t1", "t1", "t2", "t9", ""]),
        "contractAddress": st.sampled_from([VAULT, VAULT.upper(), OTHER, "0x" + "11" * 20, "", VAULT + "00"]),
        "functionName": st.sampled_from(
            [
                "withdraw",
                "withdraw(uint256)",
                "deposit",
                "approve",
                "Approve",
                "set",
                "set(uint256)",
                "balanceOf",
                "fallback",
                "",
            ]
        ),
        "args": st.lists(HOSTILE_VALUES | st.lists(HOSTILE_VALUES, max_size=2) | st.sampled_from([OTHER]), max_size=3),
    },
    optional={"value": HOSTILE_VALUES, "body": HOSTILE_VALUES, "title": HOSTILE_VALUES, "gas": HOSTILE_VALUES},
)


def check_order(order: CommunityOrder, caps: CommunityCaps) -> None:
    """What may leave for the chain, said without the rules."""
    action, call = order.action, order.call
    assert action.community_slug == "vault"
    if action.action != "tx":
        return
    assert order.contract_address == VAULT
    assert isinstance(call, EncodedCall)
    assert call.function.signature in {
        "withdraw(uint256)",
        "deposit()",
        "balanceOf(address)",
        "set(uint256)",
        "set(string)",
    }
    assert call.data[:10] == selector_of(call.function.signature)
    assert 0 <= action.value_wei <= 500 <= caps.value_wei
    assert not action.value_wei or call.function.signature == "deposit()"


@given(st.lists(HOSTILE_ACTIONS, max_size=12))
def test_no_hostile_decision_leaves_the_limits(actions: list[dict[str, Any]]) -> None:
    world, sent, spent = WORLD, 0, Decimal(0)
    for raw in actions:
        result = judge(raw, world)
        assert not result.broken
        if result.order is None:
            assert result.verdict.outcome == "refused"
            continue
        check_order(result.order, CAPS)
        if result.order.action.action == "tx":
            is_sent = result.order.spend_wei > 0
            sent, spent = sent + is_sent, spent + result.order.spend_wei
            use = world.use.on(AT).plus(transactions=int(is_sent), spend_wei=result.order.spend_wei)
            world = replace(world, use=use)
    assert sent <= CAPS.transactions_per_day
    assert spent <= CAPS.spend_wei_per_day
