"""The scheme `hyperliquid_action`: orders, cancels and leverage of one account on Hyperliquid, signed by an agent's key.

Every opening order stands on a verdict (`hyperliquid/verdict_terms.py`): the action must keep its terms, and one verdict opens once. If it
does not, what leaves would not be what was decided, and the process halts: from then on it signs reduce-only orders and cancels alone, over
restarts too, until a person lifts the halt. The caps hold even if the asking process forges action and verdict.
"""

import hashlib
from typing import Any, cast

import msgpack

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import CONTEXT, text
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.action_hash import ActionSignature, Network, sign_action
from pitboss.signer.hyperliquid.action_journal import (
    TABLES,
    add_action,
    add_open,
    has_opened,
    recent_actions,
    store_signature,
    stored_action,
    use_of,
)
from pitboss.signer.hyperliquid.actions import LimitWire
from pitboss.signer.hyperliquid.policy import FIRST_SPOT_ASSET, SCHEME_NAME, HyperliquidPolicy, example_policy
from pitboss.signer.hyperliquid.read_action import ExchangeAction, read_action
from pitboss.signer.hyperliquid.verdict_terms import SignedVerdict, read_verdict, terms_problem
from pitboss.signer.journal import SigningJournal, Statement, halt, halt_reason
from pitboss.signer.protocol import (
    ASSET,
    DAY_NOTIONAL,
    EXPIRY,
    HALTED,
    ID_CONFLICT,
    LEVERAGE,
    MALFORMED,
    NETWORK,
    NO_VERDICT,
    ORDER_NOTIONAL,
    ORDER_RATE,
    PRICE,
    REDUCE_ONLY,
    VAULT,
    VERDICT_MISMATCH,
    VERDICT_USED,
    SigningRefusal,
    refuse,
)
from pitboss.signer.scheme_definition import Reservation, SchemeDefinition
from pitboss.signer.secp256k1_keys import SECP256K1

FIELDS = frozenset(["network", "action", "expires_after", "vault", "verdict"])
NEEDS_VERDICT = ("order", "updateLeverage")


@noun
class ActionRequest:
    """The payload of a request. `claimed_digest` is what the asking process says about its verdict."""

    network: str
    action: ExchangeAction
    expires_after: Instant
    vault: str | None
    verdict: SignedVerdict | None
    claimed_digest: str

    @property
    def content_digest(self) -> str:
        """SHA-256 of everything that belongs to a request id."""
        action = msgpack.packb(self.action.wire)
        assert isinstance(action, bytes)
        rest = f"{self.network}|{self.expires_after}|{self.vault}|{self.claimed_digest}|"
        return hashlib.sha256(rest.encode() + action).hexdigest()


@noun
class NumberedAction:
    """An action that has its nonce: all that is signed."""

    action: ExchangeAction
    nonce: int
    expires_after: Instant
    vault: str | None


class HyperliquidScheme:
    """Checks and signs actions under one policy."""

    name = SCHEME_NAME
    tables = TABLES

    def __init__(self, policy: HyperliquidPolicy) -> None:
        self.policy = policy
        self._assets = policy.table()

    def check_key(self, address: str) -> None:
        """Refuse the key of the account itself, or of its vault: only an agent, who cannot withdraw, may sign."""
        if address in (self.policy.account, self.policy.vault):
            raise UserError(
                f"the key of {address} is the master key of the account",
                "make an agent (API) wallet, approve it with the master key elsewhere, and use its key here",
            )

    def read(self, payload: Any) -> ActionRequest | SigningRefusal:
        """Read the payload of a request."""
        if not isinstance(payload, dict) or set(cast("dict[str, Any]", payload)) != FIELDS:
            return refuse(MALFORMED, "fields of the payload are missing or unknown")
        fields = cast("dict[str, Any]", payload)
        network, expires_after, vault = fields["network"], fields["expires_after"], fields["vault"]
        if not isinstance(network, str) or type(expires_after) is not int or not 0 < expires_after < 2**63:
            return refuse(MALFORMED, "network or expires_after cannot be read")
        if vault is not None and not isinstance(vault, str):
            return refuse(MALFORMED, "vault is neither null nor text")
        action = read_action(fields["action"])
        if isinstance(action, SigningRefusal):
            return action
        verdict, digest = None, ""
        if fields["verdict"] is not None:
            content = read_verdict(fields["verdict"])
            if isinstance(content, str):
                return refuse(MALFORMED, content)
            verdict, digest = content
        return ActionRequest(network, action, expires_after, vault and vault.lower(), verdict, digest)

    def check(self, content: ActionRequest) -> SigningRefusal | None:
        """Return whether the request is for another account, without the verdict that it needs, or more than the policy is for."""
        if content.network != self.policy.network:
            return refuse(NETWORK)
        if content.vault != self.policy.vault:
            return refuse(VAULT)
        if self.policy.reduce_only and not content.action.reduces_risk:
            return refuse(REDUCE_ONLY)
        if content.verdict is None and content.action.type in NEEDS_VERDICT:
            return refuse(NO_VERDICT)
        return None

    def reserve(
        self, journal: SigningJournal, request_id: str, content: ActionRequest, now: Instant
    ) -> Reservation | SigningRefusal:
        """Give an action its nonce and count it, or return the one it has; or why it may not be signed."""
        with journal.transaction() as run:
            stored = stored_action(run, request_id)
            if stored is not None:
                if stored.content != content.content_digest:
                    return refuse(ID_CONFLICT)
                if stored.signature is None and not content.action.reduces_risk and halt_reason(run):
                    return refuse(HALTED)
                numbered = NumberedAction(content.action, stored.nonce, content.expires_after, content.vault)
                return Reservation(request_id, numbered, stored.signature)
            mismatch = self._mismatch(run, content)
            if mismatch is not None:
                halt(run, mismatch.message, request_id, now)
                return mismatch
            refusal = self._refusal(run, content, now)
            return refusal or self._add(run, request_id, content, now)

    def _mismatch(self, run: Statement, content: ActionRequest) -> SigningRefusal | None:
        """Return how the action is not the one decision of its verdict."""
        verdict, action = content.verdict, content.action
        if verdict is None:
            return None
        if content.claimed_digest != verdict.digest:
            return refuse(VERDICT_MISMATCH, "the digest is not that of the terms")
        terms = verdict.terms
        problem = ""
        if action.type == "order":
            problem = terms_problem(terms, action.orders)
        elif action.type == "updateLeverage":
            if terms.kind != "open" or action.assets != {terms.asset} or action.leverage > terms.leverage:
                problem = "the leverage is not that of the verdict"
        elif terms.kind != "cancel" or not action.assets <= {terms.asset}:
            problem = "the verdict is not about cancels of this asset"
        if problem:
            return refuse(VERDICT_MISMATCH, problem)
        return refuse(VERDICT_USED) if action.opens and has_opened(run, verdict.digest) else None

    def _refusal(self, run: Statement, content: ActionRequest, now: Instant) -> SigningRefusal | None:
        """Return which limit forbids an action that keeps its verdict."""
        action, caps = content.action, self.policy.caps
        if not now < content.expires_after <= now + caps.expiry_ms:
            return refuse(EXPIRY)
        if not action.reduces_risk and halt_reason(run):
            return refuse(HALTED)
        if any(asset >= FIRST_SPOT_ASSET for asset in action.assets):
            return refuse(ASSET)
        if action.type == "updateLeverage":
            asset = self._assets.get(min(action.assets))
            if asset is None:
                return refuse(ASSET)
            return refuse(LEVERAGE) if action.leverage > asset.leverage else None
        for order in action.opens:
            asset = self._assets.get(order.asset)
            if asset is None:
                return refuse(ASSET)
            if not isinstance(order.kind, LimitWire) or not asset.has_in_band(order.price):
                return refuse(PRICE)
            notional = asset.notional(order)
            if notional > caps.order_notional_usd:
                return refuse(ORDER_NOTIONAL)
            minute, day = use_of(run, "minute", now), use_of(run, "day", now)
            if minute.orders >= caps.orders_per_minute or day.orders >= caps.orders_per_day:
                return refuse(ORDER_RATE)
            if CONTEXT.add(day.notional, notional) > caps.opened_notional_per_day_usd:
                return refuse(DAY_NOTIONAL)
        return None

    def _add(self, run: Statement, request_id: str, content: ActionRequest, now: Instant) -> Reservation:
        action, expires_after = content.action, content.expires_after
        digest = content.verdict.digest if content.verdict is not None else ""
        nonce = add_action(run, request_id, content.content_digest, action.type, expires_after, digest, now)
        for order in action.opens:  # the verdict has made sure that there is one at most
            uses = use_of(run, "minute", now), use_of(run, "day", now)
            add_open(run, digest, nonce, self._assets[order.asset].notional(order), uses)
        return Reservation(request_id, NumberedAction(action, nonce, expires_after, content.vault))

    def sign(self, content: NumberedAction, key: bytes) -> ActionSignature:
        """Sign. Deterministic: equal actions with equal nonces have equal signatures."""
        network: Network = self.policy.network
        return sign_action(content.action.wire, content.nonce, network, key, content.vault, content.expires_after)

    def store(self, journal: SigningJournal, place: Reservation, signed: ActionSignature) -> None:
        """Store a signature before it leaves the process."""
        store_signature(journal, place.content.nonce, signed)

    def reply(self, place: Reservation, signed: ActionSignature) -> dict[str, Any]:
        """The nonce, the expiry and the signature: with the action, all that the exchange wants."""
        content: NumberedAction = place.content
        return {"nonce": content.nonce, "expires_after": content.expires_after, "signature": signed.wire()}

    def describe(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The account, the network, whether the process is halted, and what is left of minute and day."""
        policy, caps = self.policy, self.policy.caps
        with journal.transaction() as run:
            minute, day, reason = use_of(run, "minute", now), use_of(run, "day", now), halt_reason(run)
        return {
            "network": policy.network,
            "account": policy.account,
            "vault": policy.vault,
            "halted": bool(reason),
            "halt_reason": reason,
            "expiry_ms": caps.expiry_ms,
            "reduce_only": policy.reduce_only,
            "order_notional_usd": "0" if policy.reduce_only else text(caps.order_notional_usd),
            "opened_notional_left_usd": text(CONTEXT.subtract(caps.opened_notional_per_day_usd, day.notional)),
            "orders_left_minute": caps.orders_per_minute - minute.orders,
            "orders_left_day": caps.orders_per_day - day.orders,
        }

    def show(self, journal: SigningJournal, now: Instant) -> dict[str, Any]:
        """The policy, what is left and the latest actions."""
        with journal.transaction() as run:
            rows = recent_actions(run, 20)
        names = ("nonce", "request_id", "type", "expires_after", "verdict")
        return {
            **self.describe(journal, now),
            "caps": self.policy.caps.model_dump(mode="json"),
            "assets": [asset.model_dump(mode="json") for asset in self.policy.assets],
            "recent": [dict(zip(names, row, strict=True)) for row in rows],
        }


SCHEME = SchemeDefinition(SCHEME_NAME, HyperliquidPolicy, HyperliquidScheme, example_policy, SECP256K1)
