"""`SignedVerdict`: what the engine decided about one order, in the few numbers that an action must keep, with their digest.

The broker writes it beside every order; the signing process computes the digest again and compares the action with the terms. So what
leaves is what was decided: an order that differs is a fault of the asking process, or its hijacking, and halts the signer. The digest is
no secret. Against a process that forges both, the caps of the signer protect, not the verdict.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, cast

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.actions import OrderWire, wire_decimal

VerdictKind = Literal["open", "close", "protect", "cancel"]
VERDICT_KINDS: tuple[VerdictKind, ...] = ("open", "close", "protect", "cancel")
TERMS_KEYS = ("kind", "asset", "is_buy", "size", "limit", "leverage")
VERDICT_KEYS = ("deployment", "tick_at", "intent", "terms", "digest")
MOST_ASSET = 2**31
_NAME = re.compile(r"[A-Za-z0-9_.:/@-]{1,128}")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,8})?")


@noun
class VerdictTerms:
    """The bounds of what may be signed under a verdict.

    `open` takes risk: one order that is not reduce-only, with reduce-only stops behind it, and the leverage set before it. `close` and
    `protect` are reduce-only orders and reduce-only trigger orders. `cancel` cancels orders of the asset.
    """

    kind: VerdictKind
    asset: int
    is_buy: bool = False
    size: Decimal = Decimal(0)
    """The most that may be ordered, in units of the asset."""
    limit: Decimal = Decimal(0)
    """The worst price: a buy is not above it, a sell not below it."""
    leverage: int = 0
    """For an open, the most that the leverage may be set to; 0 if it is left as it is."""

    @property
    def reduce_only(self) -> bool:
        """Whether every order under these terms only reduces a position."""
        return self.kind != "open"

    def wire(self) -> dict[str, Any]:
        """The terms as a request carries them."""
        return {
            "kind": self.kind,
            "asset": self.asset,
            "is_buy": self.is_buy,
            "size": wire_decimal(self.size),
            "limit": wire_decimal(self.limit),
            "leverage": self.leverage,
        }


@noun
class SignedVerdict:
    """One verdict: whose it is, of which tick and intent, and its terms. `intent` is unique within a tick."""

    deployment: str
    tick_at: Instant
    intent: str
    terms: VerdictTerms

    @property
    def digest(self) -> str:
        """SHA-256 of the verdict; it names the one decision that an opening order belongs to."""
        terms = self.terms.wire()
        parts = [self.deployment, str(self.tick_at), self.intent, *(str(terms[key]) for key in TERMS_KEYS)]
        return hashlib.sha256("\n".join(("pitboss verdict 1", *parts)).encode()).hexdigest()

    def wire(self) -> dict[str, Any]:
        """The verdict as a request carries it."""
        return {
            "deployment": self.deployment,
            "tick_at": self.tick_at,
            "intent": self.intent,
            "terms": self.terms.wire(),
            "digest": self.digest,
        }


def read_number(value: Any) -> Decimal | None:
    """Read a number that is not negative, in the one text that `wire_decimal` writes; None for any other."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return None
    number = Decimal(value)
    return number if wire_decimal(number) == value else None


def read_terms(content: Any) -> VerdictTerms | str:
    """Read the terms of a request; a text says what is wrong with them. Never raises."""
    fields = _object(content, TERMS_KEYS)
    if fields is None:
        return "fields of the terms are missing or unknown"
    kind, asset, is_buy, leverage = (fields[key] for key in ("kind", "asset", "is_buy", "leverage"))
    size, limit = read_number(fields["size"]), read_number(fields["limit"])
    if kind not in VERDICT_KINDS:
        return "the kind of the terms is unknown"
    if type(asset) is not int or not 0 <= asset < MOST_ASSET or type(is_buy) is not bool:
        return "asset or side of the terms is out of range"
    if size is None or limit is None or type(leverage) is not int or not 0 <= leverage <= 1_000:
        return "a number of the terms is out of range"
    return VerdictTerms(kind, asset, is_buy, size, limit, leverage)


def read_verdict(content: Any) -> tuple[SignedVerdict, str] | str:
    """Read the verdict of a request with the digest it claims; a text says what is wrong with it. Never raises."""
    fields = _object(content, VERDICT_KEYS)
    if fields is None:
        return "fields of the verdict are missing or unknown"
    deployment, intent, tick_at, digest = (fields[key] for key in ("deployment", "intent", "tick_at", "digest"))
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in (deployment, intent)):
        return "deployment or intent is not 1 to 128 letters, digits or _ . : / @ -"
    if not isinstance(digest, str) or len(digest) > 128 or not digest.isascii():
        return "the digest is not a short text of ASCII characters"
    if type(tick_at) is not int or not 0 <= tick_at < 2**63:
        return "tick_at is out of range"
    terms = read_terms(fields["terms"])
    return terms if isinstance(terms, str) else (SignedVerdict(deployment, tick_at, intent, terms), digest)


def _object(content: Any, keys: Sequence[str]) -> Mapping[str, Any] | None:
    if not isinstance(content, dict) or set(cast("dict[str, Any]", content)) != set(keys):
        return None
    return cast("dict[str, Any]", content)


def terms_problem(terms: VerdictTerms, orders: Sequence[OrderWire]) -> str:
    """Return how the orders of one action go beyond the terms of their verdict; empty if they do not."""
    if terms.kind == "cancel":
        return "the verdict is about a cancel"
    opening = [order for order in orders if not order.reduce_only]
    if terms.kind == "open" and len(opening) != 1:
        return "an open is one order that is not reduce-only"
    if terms.kind != "open" and opening:
        return "the verdict allows reduce-only orders alone"
    for order in orders:
        # What stands behind an open reduces it: the other side, within the same size.
        is_behind = terms.kind == "open" and order.reduce_only
        if order.asset != terms.asset:
            return "the asset differs"
        if order.is_buy != (terms.is_buy != is_behind):
            return "the side differs"
        if order.size > terms.size:
            return "the size is above the terms"
        if not is_behind and (order.price > terms.limit if order.is_buy else order.price < terms.limit):
            return "the price is worse than the limit"
    return ""
