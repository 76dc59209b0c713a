"""The signing process for Hyperliquid signs what a verdict allows within its caps, and halts at the first thing that a verdict does not."""

import copy
import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, MINUTE_MS, SECOND_MS
from pitboss.signer.hyperliquid.actions import (
    LimitWire,
    TriggerWire,
    cancel_action,
    cancel_by_cloid_action,
    noop_action,
    order_action,
    schedule_cancel_action,
    update_leverage_action,
)
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme
from signer.hyperliquid.agent_signer import (
    AGENT,
    DAY_COUNT,
    EXPIRY_MS,
    KEY,
    MASTER,
    MINUTE_COUNT,
    ORDER_CAP,
    POLICY,
    POLICY_FIELDS,
    START,
    RestartableAgentSigner,
    line,
    order,
    payload,
    signer_of,
    stop,
    verdict,
)
from simulated_kill import Killed

CLOID = "0x" + "ab" * 16


@pytest.fixture
def signer(tmp_path: Path) -> RestartableAgentSigner:
    return RestartableAgentSigner(tmp_path)


def test_an_order_that_keeps_its_verdict_is_signed_by_the_agent(signer: RestartableAgentSigner) -> None:
    reply = signer.open()
    assert reply["ok"]
    assert reply["nonce"] == START
    assert reply["expires_after"] == START + 10 * SECOND_MS
    assert signer_of(reply, order_action([order()])) == AGENT


def test_an_open_may_carry_its_stops_and_the_leverage_before_it(signer: RestartableAgentSigner) -> None:
    assert signer.ask("leverage", update_leverage_action(4, True, 3), verdict())["ok"]
    action = order_action([order(cloid=CLOID), stop(), stop(price=Decimal(3_500))], "normalTpsl")
    reply = signer.ask("open", action, verdict())
    assert signer_of(reply, action) == AGENT
    assert signer.describe()["orders_left_day"] == DAY_COUNT - 1


def test_reduce_only_orders_and_cancels_use_nothing_of_the_caps(signer: RestartableAgentSigner) -> None:
    before = signer.describe()
    for number in range(20):
        close, protect = verdict("close", intent=f"c{number}"), verdict("protect", intent=f"p{number}")
        assert signer.ask(f"close-{number}", order_action([order(is_buy=False, reduce_only=True)]), close)["ok"]
        assert signer.ask(f"stop-{number}", order_action([stop()], "positionTpsl"), protect)["ok"]
        assert signer.ask(f"cancel-{number}", cancel_action([(4, 77), (900, 78)]))["ok"]
        assert signer.ask(f"cloid-{number}", cancel_by_cloid_action([(4, CLOID)]), verdict("cancel"))["ok"]
        assert signer.ask(f"later-{number}", schedule_cancel_action(START + MINUTE_MS))["ok"]
        assert signer.ask(f"noop-{number}", noop_action())["ok"]
    assert signer.describe() == before


SELL = {"is_buy": False, "size": Decimal("0.05"), "price": Decimal(3_000)}
"""At the upper end of its band: 500 dollars."""
CHECKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # the code, an open just inside the policy, one just outside
    ("S21_ASSET", {}, {"asset": 5}),
    ("S21_ASSET", {}, {"asset": 10_004}),
    ("S22_PRICE", {"price": Decimal(10_000), "size": Decimal("0.05")}, {"price": Decimal("10000.1"), "size": Decimal("0.01")}),
    ("S22_PRICE", {"price": Decimal(500)}, {"price": Decimal("499.9")}),
    ("S22_PRICE", {}, {"kind": TriggerWire(True, Decimal(3_100), "sl")}),
    ("S23_ORDER_NOTIONAL", {"size": ORDER_CAP / 4_000, "price": Decimal(4_000)}, {"size": Decimal("0.12501"), "price": Decimal(4_000)}),
    ("S23_ORDER_NOTIONAL", SELL, {**SELL, "size": Decimal("0.0501")}),
    ("S23_ORDER_NOTIONAL", SELL, {**SELL, "size": Decimal("0.1"), "price": Decimal(500)}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "inside", "outside"), CHECKS)
def test_each_limit_of_an_open_allows_what_is_at_it_and_refuses_what_is_above(
    signer: RestartableAgentSigner, code: str, inside: dict[str, Any], outside: dict[str, Any]
) -> None:
    def open_order(request_id: str, changes: dict[str, Any]) -> dict[str, Any]:
        wire = order(**changes)
        decided = verdict(intent=request_id, asset=wire.asset, is_buy=wire.is_buy, size=wire.size, limit=wire.price)
        return signer.ask(request_id, order_action([wire]), decided)

    assert open_order("outside", outside)["code"] == code
    assert open_order("inside", inside)["ok"]
    assert not signer.describe()["halted"]


def test_the_opening_orders_of_a_minute_and_of_a_day_are_limited(signer: RestartableAgentSigner) -> None:
    size = Decimal("0.01")
    codes = [signer.open(number, size=size).get("code") for number in range(MINUTE_COUNT + 1)]
    assert codes == [None] * MINUTE_COUNT + ["S25_ORDER_RATE"]
    signer.at -= 2 * MINUTE_MS  # a clock that goes back opens nothing
    assert signer.open(90, size=size)["code"] == "S25_ORDER_RATE"
    signer.at += 2 * MINUTE_MS
    for number in range(MINUTE_COUNT, DAY_COUNT):
        signer.at += MINUTE_MS
        assert signer.open(number, size=size)["ok"]
    signer.at += MINUTE_MS
    assert signer.open(91, size=size)["code"] == "S25_ORDER_RATE"
    signer.start()
    assert signer.open(91, size=size)["code"] == "S25_ORDER_RATE"
    assert signer.describe()["orders_left_day"] == 0
    signer.at += DAY_MS
    assert signer.open(91, size=size)["ok"]


def test_the_notional_opened_in_a_day_is_limited_over_restarts(signer: RestartableAgentSigner) -> None:
    for number in range(6):  # 300 dollars each
        signer.at += MINUTE_MS
        assert signer.open(number)["ok"]
    signer.start()
    assert signer.describe()["opened_notional_left_usd"] == "200"
    assert signer.open(7)["code"] == "S24_DAY_NOTIONAL"
    assert signer.open(8, size=Decimal("0.0666"))["ok"]


@pytest.mark.parametrize(("ahead_ms", "code"), [(EXPIRY_MS, None), (1, None), (0, "S27_EXPIRY"), (-1, "S27_EXPIRY"), (EXPIRY_MS + 1, "S27_EXPIRY")])  # fmt: skip
def test_an_action_expires_within_fifteen_seconds(
    signer: RestartableAgentSigner, ahead_ms: int, code: str | None
) -> None:
    assert signer.ask("a", cancel_action([(4, 1)]), expires_after=START + ahead_ms).get("code") == code


def test_leverage_is_bound_by_the_policy_and_by_the_verdict(signer: RestartableAgentSigner) -> None:
    assert signer.ask("a", update_leverage_action(4, False, 3), verdict())["ok"]
    assert signer.ask("b", update_leverage_action(4, False, 4), verdict(leverage=4))["code"] == "S26_LEVERAGE"
    assert signer.ask("c", update_leverage_action(7, False, 1), verdict(asset=7))["code"] == "S21_ASSET"
    assert signer.ask("d", update_leverage_action(4, False, 3), verdict(leverage=2))["code"] == "S29_VERDICT_MISMATCH"


MISMATCHES: list[tuple[str, Any, Any]] = [
    ("a larger size", order_action([order(size=Decimal("0.1001"))]), verdict()),
    ("a worse price", order_action([order(price=Decimal("3000.1"))]), verdict()),
    ("another asset", order_action([order(asset=0, price=Decimal(30_000), size=Decimal("0.001"))]), verdict()),
    ("the other side", order_action([order(is_buy=False)]), verdict()),
    ("a worse sell", order_action([order(is_buy=False, price=Decimal(2_999))]), verdict(is_buy=False)),
    ("two opens", order_action([order(), order()]), verdict()),
    ("an open by a close", order_action([order(is_buy=False)]), verdict("close")),
    ("an open by a stop", order_action([order(is_buy=False)]), verdict("protect")),
    ("an open by a cancel", order_action([order()]), verdict("cancel")),
    ("a close by an open", order_action([order(reduce_only=True)]), verdict()),
    ("a stop above the size", order_action([order(), stop(size=Decimal("0.2"))]), verdict()),
    ("a stop of the same side", order_action([order(), stop(is_buy=True)]), verdict()),
    ("a stop of another asset", order_action([order(), stop(asset=0)]), verdict()),
    (
        "a close above the size",
        order_action([order(is_buy=False, reduce_only=True, size=Decimal(1))]),
        verdict("close"),
    ),
    ("leverage by a close", update_leverage_action(4, True, 1), verdict("close")),
    ("a cancel of another asset", cancel_action([(4, 1), (0, 2)]), verdict("cancel")),
    ("a cancel by an open", cancel_action([(4, 1)]), verdict()),
]


@pytest.mark.parametrize(("action", "decided"), [row[1:] for row in MISMATCHES], ids=[row[0] for row in MISMATCHES])
def test_an_action_that_is_not_what_was_decided_halts(
    signer: RestartableAgentSigner, action: Any, decided: Any
) -> None:
    assert signer.ask("a", action, decided)["code"] == "S29_VERDICT_MISMATCH"
    assert signer.describe()["halted"]
    assert signer.open()["code"] == "S31_HALTED"


@pytest.mark.parametrize("part", ["tick_at", "intent", "deployment", "digest", "size", "limit", "leverage", "asset"])
def test_a_digest_that_is_not_that_of_the_terms_halts(signer: RestartableAgentSigner, part: str) -> None:
    content = payload(order_action([order()]), verdict())
    decided = content["verdict"]
    place = decided["terms"] if part in decided["terms"] else decided
    value = place[part]
    place[part] = value + 1 if isinstance(value, int) else "9" if part in ("size", "limit") else value + "x"
    assert signer.handler.handle(line("a", content))["code"] == "S29_VERDICT_MISMATCH"
    assert signer.describe()["halt_reason"].endswith("the digest is not that of the terms")


def test_further_mismatches_of_the_same_kind_add_no_halt_until_it_is_lifted(signer: RestartableAgentSigner) -> None:
    for number in range(5):
        signer.ask(f"a{number}", order_action([order(size=Decimal(5))]), verdict())
        signer.ask(f"b{number}", cancel_action([(4, 1)]), verdict())
    assert [halt.request_id for halt in signer.journal.halts()] == ["b0", "a0"]
    assert signer.journal.lift("the broker is repaired", signer.at) == 2
    signer.ask("a5", order_action([order(size=Decimal(5))]), verdict())
    assert [halt.request_id for halt in signer.journal.halts()] == ["a5", "b0", "a0"]


def test_a_verdict_opens_once_and_the_second_time_halts(signer: RestartableAgentSigner) -> None:
    assert signer.open()["ok"]
    assert signer.ask("again", order_action([order()]), verdict(intent="open:0"))["code"] == "S30_VERDICT_USED"
    assert signer.open(1)["code"] == "S31_HALTED"


def test_a_halt_lasts_over_restarts_until_a_person_lifts_it_and_lets_exits_pass(signer: RestartableAgentSigner) -> None:
    signer.ask("a", order_action([order(size=Decimal(5))]), verdict())
    for _ in range(3):
        signer.start()
        signer.at += DAY_MS
        number = signer.at
        refused = [
            signer.open(number),
            signer.ask(f"l{number}", update_leverage_action(4, True, 1), verdict()),
            signer.ask(f"n{number}", noop_action()),
            signer.ask(f"d{number}", schedule_cancel_action(None)),
        ]
        assert [reply["code"] for reply in refused] == ["S31_HALTED"] * 4
        exits = [
            signer.ask(f"c{number}", order_action([order(is_buy=False, reduce_only=True)]), verdict("close")),
            signer.ask(f"p{number}", order_action([stop()]), verdict("protect")),
            signer.ask(f"x{number}", cancel_action([(4, 1)])),
            signer.ask(f"y{number}", cancel_by_cloid_action([(4, CLOID)])),
            signer.ask(f"z{number}", schedule_cancel_action(number + MINUTE_MS)),
        ]
        assert all(reply["ok"] for reply in exits)
    with pytest.raises(UserError, match="reason"):
        signer.journal.lift("  ", signer.at)
    assert signer.journal.lift("the broker is repaired", signer.at) == 1
    assert signer.open(1)["ok"]
    (halt,) = signer.journal.halts()
    assert (halt.lift_reason, halt.lifted_at, halt.request_id) == ("the broker is repaired", signer.at, "a")


def test_orders_and_leverage_without_a_verdict_are_refused(signer: RestartableAgentSigner) -> None:
    for action in (order_action([order()]), order_action([stop()]), update_leverage_action(4, True, 1)):
        assert signer.ask("a", action)["code"] == "S28_NO_VERDICT"


def test_another_network_or_vault_is_refused(signer: RestartableAgentSigner, tmp_path: Path) -> None:
    assert signer.ask("a", noop_action(), network="mainnet")["code"] == "S18_NETWORK"
    assert signer.ask("a", noop_action(), vault=MASTER)["code"] == "S19_VAULT"
    vault = "0x" + "e5" * 20
    (tmp_path / "vault").mkdir()
    other = RestartableAgentSigner(tmp_path / "vault", POLICY.model_copy(update={"vault": vault, "network": "mainnet"}))
    reply = other.ask("a", noop_action(), network="mainnet", vault=vault.upper().replace("X", "x"))
    assert signer_of(reply, noop_action(), "mainnet", vault) == AGENT
    assert other.ask("b", noop_action(), network="mainnet")["code"] == "S19_VAULT"


SDK_TYPES = (
    "CSignerAction", "CUserModify", "CValidatorAction", "CDeposit", "CWithdraw", "SetGlobalAction", "VoteEthDepositAction",
    "ValidatorSignWithdrawalAction", "agentEnableDexAbstraction", "agentSendAsset", "agentSetAbstraction", "approveAgent",
    "approveBuilderFee", "batchModify", "borrowLend", "cDeposit", "cWithdraw", "claimRewards", "convertToMultiSigUser",
    "createSubAccount", "createVault", "evmRawTx", "evmUserModify", "finalizeEvmContract", "gossipPriorityBid",
    "hip3LiquidatorTransfer", "linkStakingUser", "liquidate", "modify", "multiSig", "perpDeploy", "registerReferrer",
    "reserveRequestWeight", "sendAsset", "sendToEvmWithData", "setDisplayName", "setReferrer", "spotDeploy", "spotSend",
    "spotUser", "subAccountModify", "subAccountSpotTransfer", "subAccountTransfer", "tokenDelegate", "topUpIsolatedOnlyMargin",
    "twapCancel", "twapOrder", "updateIsolatedMargin", "usdClassTransfer", "usdSend", "userDexAbstraction", "userPortfolioMargin",
    "userSetAbstraction", "validatorL1Stream", "vaultDistribute", "vaultModify", "vaultTransfer", "withdraw3",
)  # fmt: skip
"""Every other type of action that the exchange's library, or its documentation, names."""


@pytest.mark.parametrize("action", [{"type": "noop", "": 1}, cancel_action([(0, 1)]) | {"": 1}])
def test_a_key_without_a_name_is_unknown_too(signer: RestartableAgentSigner, action: dict[str, Any]) -> None:
    assert signer.ask("a", action)["code"] == "S01_MALFORMED"


@pytest.mark.parametrize("kind", SDK_TYPES)
def test_every_other_type_of_action_is_refused(signer: RestartableAgentSigner, kind: str) -> None:
    for fields in (
        {},
        {"orders": [order().wire()], "grouping": "na"},
        {"usd": 10, "isDeposit": False, "vaultAddress": MASTER},
    ):
        for decided in (None, verdict()):
            assert signer.ask("a", {"type": kind, **fields}, decided)["code"] == "S20_ACTION_TYPE"
    assert len(set(SDK_TYPES)) >= 50


def changed_order(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """An allowed order with one place of it changed or, for `...`, removed."""
    action = copy.deepcopy(order_action([order(cloid=CLOID), stop()]))
    place: Any = action
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return action


FIRST, SECOND = ("orders", 0), ("orders", 1)


def test_a_policy_that_only_reduces_signs_exits_and_cancels_and_nothing_that_opens(tmp_path: Path) -> None:
    policy = HyperliquidPolicy.model_validate({**POLICY_FIELDS, "reduce_only": True})
    signer = RestartableAgentSigner(tmp_path, policy)
    assert signer.open()["code"] == "S35_REDUCE_ONLY"
    with_exit = order_action([order(), stop()], "normalTpsl")
    assert signer.ask("both", with_exit, verdict())["code"] == "S35_REDUCE_ONLY"
    assert signer.ask("leverage", update_leverage_action(4, True, 1), verdict())["code"] == "S35_REDUCE_ONLY"
    closing = order_action([order(is_buy=False, reduce_only=True)])
    assert signer_of(signer.ask("close", closing, verdict("close")), closing) == AGENT
    assert signer.ask("cancel", cancel_action([(4, 7)]), verdict("cancel"))["ok"]
    described = signer.describe()
    assert (described["reduce_only"], described["order_notional_usd"], described["halted"]) == (True, "0", False)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("grouping",), ...), (("grouping",), "all"), (("builder",), {"b": MASTER, "f": 100}), (("orders",), []),
        (("orders",), {}), (("orders",), [order().wire()] * 21), ((*FIRST, "a"), True), ((*FIRST, "a"), "4"), ((*FIRST, "a"), -1),
        ((*FIRST, "a"), 4.0), ((*FIRST, "b"), 1), ((*FIRST, "b"), None), ((*FIRST, "p"), 3000), ((*FIRST, "p"), "3000.0"),
        ((*FIRST, "p"), "3e3"), ((*FIRST, "p"), "-3000"), ((*FIRST, "p"), "0"), ((*FIRST, "p"), "NaN"), ((*FIRST, "p"), " 3000"),
        ((*FIRST, "p"), "3000\n"), ((*FIRST, "p"), "٣"), ((*FIRST, "s"), "0.10"), ((*FIRST, "s"), "0.000000001"), ((*FIRST, "s"), "1_0"),
        ((*FIRST, "s"), "9" * 19), ((*FIRST, "r"), 0), ((*FIRST, "r"), "false"), ((*FIRST, "t"), {}), ((*FIRST, "t"), "limit"),
        ((*FIRST, "t"), {"limit": {"tif": "FrontendMarket"}}), ((*FIRST, "t"), {"limit": {"tif": "Gtc"}, "trigger": {}}),
        ((*FIRST, "c"), "0x1"), ((*FIRST, "c"), CLOID.upper()), ((*FIRST, "c"), None), ((*FIRST, "x"), 1), ((*FIRST, "t"), ...),
        ((*SECOND, "t", "trigger", "isMarket"), "true"), ((*SECOND, "t", "trigger", "tpsl"), "x"),
        ((*SECOND, "t", "trigger", "triggerPx"), 5), ((*SECOND, "t", "trigger", "more"), 5), ((*SECOND, "t", "trigger", "tpsl"), ...),
    ],
)  # fmt: skip
def test_an_order_that_is_not_exactly_of_its_form_is_refused(
    signer: RestartableAgentSigner, path: tuple[Any, ...], value: Any
) -> None:
    assert signer.ask("a", changed_order(path, value), verdict())["code"] == "S01_MALFORMED"
    assert not signer.describe()["halted"]


@pytest.mark.parametrize(
    "action",
    [
        {"type": "cancel", "cancels": []}, {"type": "cancel", "cancels": [{"a": 4, "o": "1"}]}, {"type": "cancel", "cancels": [{"a": 4}]},
        {"type": "cancel", "cancels": [{"a": 4, "o": 1, "x": 1}]}, {"type": "cancel"}, {"type": "cancel", "cancels": [{"a": 4, "o": 1}] * 201},
        {"type": "cancelByCloid", "cancels": [{"a": 4, "o": 1}]}, {"type": "cancelByCloid", "cancels": [{"asset": 4, "cloid": "1"}]},
        {"type": "updateLeverage", "asset": 4, "isCross": True, "leverage": 0}, {"type": "updateLeverage", "asset": 4, "isCross": 1, "leverage": 2},
        {"type": "updateLeverage", "asset": 4, "isCross": True, "leverage": 2.0}, {"type": "scheduleCancel", "time": "1"},
        {"type": "scheduleCancel", "time": None}, {"type": "noop", "time": 1}, [], "order", None,
    ],
)  # fmt: skip
def test_other_actions_that_are_not_exactly_of_their_form_are_refused(
    signer: RestartableAgentSigner, action: Any
) -> None:
    assert signer.ask("a", action, verdict())["code"] == "S01_MALFORMED"


def test_an_action_without_a_type_is_refused(signer: RestartableAgentSigner) -> None:
    for action in ({}, {"type": 3}, {"type": ["order"]}, {"Type": "noop"}):
        assert signer.ask("a", action)["code"] == "S20_ACTION_TYPE"


@pytest.mark.parametrize(
    "change",
    [
        {"expires_after": None}, {"expires_after": "1"}, {"expires_after": 1.5e12}, {"network": None}, {"vault": 1}, {"verdict": {}},
        {"nonce": 5}, {"verdict": []}, {"verdict": {**verdict().wire(), "more": 1}}, {"verdict": {**verdict().wire(), "intent": "a b"}},
        {"verdict": {**verdict().wire(), "terms": {**verdict().terms.wire(), "kind": "withdraw"}}},
        {"verdict": {**verdict().wire(), "terms": {**verdict().terms.wire(), "size": 1}}},
        {"verdict": {**verdict().wire(), "tick_at": True}}, {"verdict": {**verdict().wire(), "digest": 7}},
    ],
)  # fmt: skip
def test_a_payload_that_is_not_exactly_of_its_form_is_refused(
    signer: RestartableAgentSigner, change: dict[str, Any]
) -> None:
    content = {**payload(order_action([order()]), verdict()), **change}
    assert signer.handler.handle(line("a", content))["code"] == "S01_MALFORMED"
    for name in ("expires_after", "verdict", "vault", "network", "action"):
        missing = {key: value for key, value in payload(noop_action(), None).items() if key != name}
        assert signer.handler.handle(line("a", missing))["code"] == "S01_MALFORMED"


def test_the_same_request_gets_the_same_signature_later_and_after_a_restart_and_counts_once(
    signer: RestartableAgentSigner,
) -> None:
    content = payload(order_action([order()]), verdict())
    first = signer.handler.handle(line("a", content))
    signer.at += DAY_MS
    signer.start()
    assert signer.handler.handle(line("a", content)) == first
    assert not signer.describe()["halted"]
    content["expires_after"] += 1
    assert signer.handler.handle(line("a", content))["code"] == "S13_ID_CONFLICT"
    with signer.journal.transaction() as run:
        assert run("SELECT sum(orders), count(*) FROM hyperliquid_use WHERE period = 'day'").fetchone() == (1, 1)


def test_nonces_rise_even_if_the_clock_goes_back(signer: RestartableAgentSigner) -> None:
    nonces: list[int] = []
    for number, step in enumerate((0, 0, 0, -60 * MINUTE_MS, 0, 120 * MINUTE_MS, -1, 0)):
        signer.at += step
        if number % 3 == 0:
            signer.start()
        nonces.append(signer.ask(f"n{number}", noop_action())["nonce"])
    last = START + 60 * MINUTE_MS
    assert nonces == [START, START + 1, START + 2, START + 3, START + 4, last, last + 1, last + 2]


class DiesSigning(HyperliquidScheme):
    def sign(self, content: Any, key: bytes) -> Any:
        raise Killed


class DiesStoring(HyperliquidScheme):
    def store(self, journal: Any, place: Any, signed: Any) -> None:
        raise Killed


class DiesReplying(HyperliquidScheme):
    def reply(self, place: Any, signed: Any) -> dict[str, Any]:
        raise Killed


@pytest.mark.parametrize("scheme", [DiesSigning, DiesStoring, DiesReplying])
def test_a_nonce_is_on_disk_before_it_is_used_wherever_the_process_is_killed(
    signer: RestartableAgentSigner, scheme: Any
) -> None:
    signer.start(scheme)
    with pytest.raises(Killed):
        signer.open()
    other = sqlite3.connect(signer.path)
    assert other.execute("SELECT nonce, request_id FROM hyperliquid_actions").fetchall() == [(START, "open-0")]
    other.close()
    signer.at -= MINUTE_MS  # asked again after a restart, with a clock that is wrong
    signer.start()
    assert signer.ask("next", noop_action())["nonce"] == START + 1
    signer.at += MINUTE_MS
    reply = signer.open()
    assert reply["nonce"] == START
    assert signer_of(reply, order_action([order()])) == AGENT
    assert signer.describe()["orders_left_day"] == DAY_COUNT - 1


def test_an_open_that_was_counted_and_not_signed_is_not_signed_during_a_halt(signer: RestartableAgentSigner) -> None:
    signed = signer.open(1)
    signer.start(DiesSigning)
    with pytest.raises(Killed):
        signer.open(2)
    with pytest.raises(Killed):
        signer.ask("close", order_action([order(is_buy=False, reduce_only=True)]), verdict("close"))
    signer.start()
    assert signer.ask("a", order_action([order(size=Decimal(5))]), verdict())["code"] == "S29_VERDICT_MISMATCH"
    assert signer.open(2)["code"] == "S31_HALTED"
    assert signer.open(1) == signed  # it has left the process before
    assert signer.ask("close", order_action([order(is_buy=False, reduce_only=True)]), verdict("close"))["ok"]
    signer.journal.lift("the broker is repaired", signer.at)
    assert signer.open(2)["ok"]


def test_what_cannot_be_counted_is_not_signed(signer: RestartableAgentSigner) -> None:
    other = sqlite3.connect(signer.path, isolation_level=None)
    signer.journal._connection.execute("PRAGMA busy_timeout = 1")
    other.execute("BEGIN IMMEDIATE")
    assert signer.open()["code"] == "S17_UNAVAILABLE"
    other.execute("ROLLBACK")
    other.close()
    assert signer.open()["ok"]


def test_a_master_key_is_refused(signer: RestartableAgentSigner) -> None:
    for change in ({"account": AGENT}, {"account": "0x" + AGENT[2:].upper()}, {"vault": AGENT}):
        policy = HyperliquidPolicy.model_validate({**POLICY_FIELDS, **change})
        with pytest.raises(UserError, match="master key"):
            RequestHandler(KEY, HyperliquidScheme(policy), signer.journal, signer.now)


def test_the_description_tells_whose_key_it_is_and_what_is_left_and_never_the_key(
    signer: RestartableAgentSigner,
) -> None:
    signer.open()
    description = signer.describe()
    assert description["address"] == AGENT
    assert description["account"] == MASTER
    assert description["network"] == "testnet"
    assert description["opened_notional_left_usd"] == "1700"
    assert description["orders_left_minute"] == MINUTE_COUNT - 1
    everything = json.dumps(description) + json.dumps(HyperliquidScheme(POLICY).show(signer.journal, signer.at))
    assert KEY.hex() not in everything + repr(signer.handler)
    assert str(int.from_bytes(KEY, "big")) not in everything


def test_the_side_of_a_limit_is_what_a_verdict_bounds(signer: RestartableAgentSigner) -> None:
    better_buy, better_sell = (
        order(price=Decimal(2_900)),
        order(is_buy=False, price=Decimal(3_100), size=Decimal("0.04")),
    )
    assert signer.ask("buy", order_action([better_buy]), verdict(intent="b"))["ok"]
    assert signer.ask("sell", order_action([better_sell]), verdict(intent="s", is_buy=False))["ok"]
    gtc = order(kind=LimitWire("Gtc"), size=Decimal("0.01"))
    assert signer.ask("rest", order_action([gtc]), verdict(intent="g"))["ok"]
