"""A signing process for Hyperliquid's actions in a test: its policy, its clock, its journal, and requests that it allows."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from coincurve import PublicKey
from eth_account import Account
from eth_utils.crypto import keccak

from pitboss.core.instant import DAY_MS, SECOND_MS
from pitboss.signer.hyperliquid.action_hash import ActionSignature, action_hash, agent_digest
from pitboss.signer.hyperliquid.actions import Action, LimitWire, OrderWire, TriggerWire, order_action
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.hyperliquid.verdict_terms import SignedVerdict, VerdictTerms
from pitboss.signer.journal import SigningJournal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme

KEY = keccak(text="the agent key of these tests")
AGENT = str(Account.from_key(KEY).address).lower()
MASTER = "0x" + "d4" * 20
START = 20_000 * DAY_MS
ORDER_CAP, DAY_CAP, MINUTE_COUNT, DAY_COUNT = Decimal(500), Decimal(2_000), 3, 12
EXPIRY_MS = 15 * SECOND_MS
BANDS = {0: (Decimal(20_000), Decimal(200_000)), 4: (Decimal(500), Decimal(10_000))}
LEVERAGE = {0: 5, 4: 3}
POLICY_FIELDS: dict[str, Any] = {
    "version": 1,
    "scheme": "hyperliquid_action",
    "network": "testnet",
    "account": MASTER,
    "caps": {
        "order_notional_usd": ORDER_CAP,
        "opened_notional_per_day_usd": DAY_CAP,
        "orders_per_minute": MINUTE_COUNT,
        "orders_per_day": DAY_COUNT,
    },
    "assets": [
        {"index": index, "name": f"A{index}", "leverage": LEVERAGE[index], "lowest_price": low, "highest_price": high}
        for index, (low, high) in BANDS.items()
    ],
}
POLICY = HyperliquidPolicy.model_validate(POLICY_FIELDS)


def order(**changes: Any) -> OrderWire:
    """A buy of 0.1 of asset 4 at 3000: 300 dollars."""
    fields: dict[str, Any] = {
        "asset": 4,
        "is_buy": True,
        "price": Decimal(3_000),
        "size": Decimal("0.1"),
        "reduce_only": False,
        "kind": LimitWire("Ioc"),
    }
    return OrderWire(**{**fields, **changes})


def stop(**changes: Any) -> OrderWire:
    """A reduce-only stop behind that buy."""
    kind = TriggerWire(True, Decimal(2_700), "sl")
    return order(**{"is_buy": False, "price": Decimal(2_500), "reduce_only": True, "kind": kind, **changes})


def verdict(kind: Any = "open", tick_at: int = START, intent: str = "open:4", **changes: Any) -> SignedVerdict:
    """The verdict that allows `order()`, or with kind `close` or `protect` a reduce-only sell."""
    is_open = kind == "open"
    fields: dict[str, Any] = {
        "asset": 4,
        "is_buy": is_open,
        "size": Decimal("0.1"),
        "limit": Decimal(3_000) if is_open else Decimal(2_500),
        "leverage": 3 if is_open else 0,
    }
    return SignedVerdict("deployment-1", tick_at, intent, VerdictTerms(kind, **{**fields, **changes}))


def payload(action: Action, decided: SignedVerdict | None, now: int = START, **changes: Any) -> dict[str, Any]:
    return {
        "network": "testnet",
        "action": action,
        "expires_after": now + 10 * SECOND_MS,
        "vault": None,
        "verdict": None if decided is None else decided.wire(),
        **changes,
    }


def line(request_id: Any, content: Any, **changes: Any) -> bytes:
    request = {"version": 1, "op": "sign", "scheme": "hyperliquid_action", "request_id": request_id, "payload": content}
    return json.dumps({**request, **changes}).encode() + b"\n"


class RestartableAgentSigner:
    """A handler on a journal in a folder, that can be killed and started again."""

    def __init__(self, folder: Path, policy: HyperliquidPolicy = POLICY) -> None:
        self.at = START
        self.path = folder / "journal.db"
        self.policy = policy
        self.start()

    def now(self) -> int:
        return self.at

    def start(self, scheme: type[HyperliquidScheme] = HyperliquidScheme) -> None:
        self.journal = SigningJournal(self.path)
        self.handler = RequestHandler(KEY, scheme(self.policy), self.journal, self.now)

    def ask(
        self, request_id: str, action: Action, decided: SignedVerdict | None = None, **changes: Any
    ) -> dict[str, Any]:
        return self.handler.handle(line(request_id, payload(action, decided, self.at, **changes)))

    def open(self, number: int = 0, **changes: Any) -> dict[str, Any]:
        """Ask for the allowed buy, as the request and the decision of a number."""
        wire, decided = order(**changes), verdict(intent=f"open:{number}")
        return self.ask(f"open-{number}", order_action([wire]), decided)

    def describe(self) -> dict[str, Any]:
        return self.handler.handle(b'{"version":1,"op":"describe"}')


def signer_of(reply: dict[str, Any], action: Action, network: Any = "testnet", vault: str | None = None) -> str:
    """Whose signature a reply holds, for the action as it was asked for."""
    digest = agent_digest(action_hash(action, reply["nonce"], vault, reply["expires_after"]), network)
    return recover_address(digest, ActionSignature(**reply["signature"]))


def recover_address(digest: bytes, signature: ActionSignature) -> str:
    """Return the address, in lower case, whose key signed a digest. Raises ValueError for what is no signature."""
    try:
        parts = int(signature.r, 16).to_bytes(32, "big") + int(signature.s, 16).to_bytes(32, "big")
        public = PublicKey.from_signature_and_message(parts + bytes([signature.v - 27]), digest, hasher=None)
    except Exception as error:
        raise ValueError("no signature of this digest") from error
    return "0x" + keccak(public.format(compressed=False)[1:])[-20:].hex()
