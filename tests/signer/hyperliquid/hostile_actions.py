"""Hostile requests for Hyperliquid's signing scheme, and an independent reading of what was signed. Shares no code with the scheme's checks."""

import json
import random
from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, MINUTE_MS
from signer.hyperliquid.agent_signer import (
    AGENT,
    BANDS,
    DAY_CAP,
    DAY_COUNT,
    EXPIRY_MS,
    LEVERAGE,
    MASTER,
    MINUTE_COUNT,
    ORDER_CAP,
    line,
    order,
    payload,
    signer_of,
    stop,
    verdict,
)

ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, "1", "", [], {}, "NaN", "1e9", "é" * 40, 2**63, 10**30, [[[]]], "0x0")
TYPES = (
    "withdraw3",
    "usdSend",
    "vaultTransfer",
    "approveAgent",
    "batchModify",
    "agentSendAsset",
    "twapOrder",
    "multiSig",
)
KEY_ORDER = ("type", "orders", "grouping", "a", "b", "p", "s", "r", "t", "c", "isMarket", "triggerPx", "tpsl", "cancels", "asset", "cloid", "isCross", "leverage", "time", "o")  # fmt: skip


def hostile_request(chance: random.Random, now: int) -> bytes:
    """One request: an allowed one with up to three places spoiled, a replay, a lie about a verdict, or noise."""
    number = 0
    price = Decimal(chance.choice((499, 500, 2_900, 3_000, 3_001, 10_000, 10_001)))
    size = Decimal(chance.choice(("0.01", "0.01", "0.02", "0.05", "0.1", "0.16667", "0.3", "100")))
    is_buy, reduce_only = chance.random() < 0.6, chance.random() < 0.2
    asset = chance.choice((*[4] * 12, 0, 5, 10_004))
    wire = order(asset=asset, price=price, size=size, is_buy=is_buy, reduce_only=reduce_only)
    rows = [wire.wire()]
    if chance.random() < 0.2:
        rows.append(stop(asset=asset, size=size, is_buy=not is_buy).wire())
    if chance.random() < 0.03:
        rows.append(dict(rows[0]))
    action: dict[str, Any] = {"type": "order", "orders": rows, "grouping": "na"}
    if chance.random() < 0.02:  # the same decision again and again
        asset, is_buy, reduce_only, size, price, number = 4, True, False, Decimal("0.01"), Decimal(3_000), 2_000
        action["orders"] = [order(size=size).wire()]
    roll = chance.random()
    if roll < 0.1:
        action = {"type": "cancel", "cancels": [{"a": asset, "o": chance.randrange(99)}]}
    elif roll < 0.15:
        action = {
            "type": "updateLeverage",
            "asset": asset,
            "isCross": True,
            "leverage": chance.choice((1, 3, 4, 5, 50)),
        }
    elif roll < 0.2:
        action = chance.choice(
            ({"type": "noop"}, {"type": "scheduleCancel"}, {"type": "scheduleCancel", "time": now + 9_000})
        )
    elif roll < 0.25:
        action = {**action, "type": chance.choice(TYPES)}
    if chance.random() < 0.01:
        action["builder"] = {"b": MASTER, "f": 100}
    decided = _verdict(chance, action, asset, is_buy, reduce_only, size, price, number)
    content: dict[str, Any] = {
        **payload(action, None, now),
        "expires_after": now + chance.choice((1, *[10_000] * 9, EXPIRY_MS, EXPIRY_MS, EXPIRY_MS + 1, 0, 60_000)),
        "verdict": decided,
    }
    if chance.random() < 0.02:
        content[chance.choice(("network", "vault"))] = chance.choice(("mainnet", MASTER, None))
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        if chance.random() < 0.3:
            _spoil(chance, content)
    if chance.random() < 0.02:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(120))) + b"\n"
    request_id: Any = f"r{chance.randrange(10**9)}" if chance.random() < 0.9 else f"r{chance.randrange(30)}"
    if chance.random() < 0.02:
        request_id = chance.choice((*ODD, "x" * 65, "a b"))
    return line(request_id, content)


def _verdict(
    chance: random.Random, action: Any, asset: int, is_buy: bool, reduce_only: bool, size: Any, price: Any, number: int
) -> Any:
    if chance.random() < 0.1 or (action["type"] in ("cancel", "noop", "scheduleCancel") and chance.random() < 0.8):
        return None
    kind = "close" if reduce_only else "open"
    intent = f"i{number}" if number == 2_000 else f"i{chance.randrange(10**12)}"
    terms = {"asset": asset, "is_buy": is_buy, "size": size, "limit": price, "leverage": 50}
    if chance.random() < 0.02:  # a true digest of other terms than those of the order
        other = {"asset": 0, "is_buy": not is_buy, "size": size * Decimal("0.9"), "limit": price * 2, "leverage": 0}
        name = chance.choice(tuple(terms))
        terms[name] = other[name]
    decided = verdict(kind, intent=intent, **terms).wire()
    if chance.random() < 0.01:
        decided["terms"][chance.choice(tuple(decided["terms"]))] = deepcopy(
            chance.choice((*ODD, "0.2", "9000", "open", "close"))
        )
    if chance.random() < 0.002:
        decided["digest"] = chance.choice(("", "0" * 64, decided["digest"].upper()))
    return decided


def _spoil(chance: random.Random, content: dict[str, Any]) -> None:
    places = [content, content["action"]] if isinstance(content.get("action"), dict) else [content]
    for rows in (places[-1].get("orders"), places[-1].get("cancels")):
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            places.append(rows[0])
    place = chance.choice(places)
    name = chance.choice(tuple(place) or ("x",))
    if chance.random() < 0.2:
        place.pop(name, None)
    elif chance.random() < 0.3:
        place[chance.choice(("builder", "nonce", "key", "x"))] = deepcopy(chance.choice(ODD))
    elif chance.random() < 0.5 and isinstance(place.get(name), str):
        place[name] = place[name] + chance.choice(("0", ".0", " ", "\n", "e3", "00000"))
    else:
        place[name] = deepcopy(chance.choice(ODD))


def canonical(value: Any) -> Any:
    """An action with its keys in the order that the exchange hashes."""
    if isinstance(value, dict):
        return {name: canonical(value[name]) for name in sorted(value, key=_place)}
    return [canonical(part) for part in value] if isinstance(value, list) else value


def _place(name: str) -> int:
    return KEY_ORDER.index(name) if name in KEY_ORDER else -1


@dataclass
class SignedBook:
    """What was signed, counted anew by the numbers of the policy."""

    day: int = 0
    minute: int = 0
    is_halted: bool = False
    last_nonce: int = -1
    signatures: int = 0
    opens: int = 0
    replies: dict[str, str] = field(default_factory=dict[str, str])
    verdicts: set[str] = field(default_factory=set[str])
    orders: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    notional: dict[int, Decimal] = field(default_factory=lambda: defaultdict(Decimal))

    def breaches(self, sent: bytes, reply: dict[str, Any], now: int) -> list[str]:
        """What is wrong with a signature that was given."""
        request = json.loads(sent)
        content, request_id = request["payload"], request["request_id"]
        text = json.dumps(reply)
        if request_id in self.replies:
            return [] if self.replies[request_id] == text else ["a second signature for one request"]
        self.replies[request_id] = text
        self.signatures += 1
        action = canonical(content["action"])
        opens = [row for row in action.get("orders", ()) if row["r"] is not True]
        checks = {
            "the signature is of what was asked": signer_of(reply, action) == AGENT,
            "the nonce rises": reply["nonce"] > self.last_nonce,
            "the expiry": now < reply["expires_after"] <= now + EXPIRY_MS
            and reply["expires_after"] == content["expires_after"],
            "the network": content["network"] == "testnet" and content["vault"] is None,
            "the type": action["type"]
            in ("order", "cancel", "cancelByCloid", "updateLeverage", "scheduleCancel", "noop"),
            "no builder": set(action) <= set(KEY_ORDER),
            "a verdict": action["type"] not in ("order", "updateLeverage") or content["verdict"] is not None,
            "one open": len(opens) <= 1,
            "the halt": not self.is_halted or not (opens or action["type"] in ("updateLeverage", "noop")),
        }
        if action["type"] == "updateLeverage":
            checks["the leverage"] = action["leverage"] <= LEVERAGE.get(action["asset"], 0)
        self.last_nonce = reply["nonce"]
        for row in opens:
            checks |= self._open_checks(row, content["verdict"], now)
        return [name for name, holds in checks.items() if not holds]

    def _open_checks(self, row: dict[str, Any], decided: dict[str, Any], now: int) -> dict[str, bool]:
        self.day, self.minute = max(self.day, now // DAY_MS), max(self.minute, now // MINUTE_MS)
        self.opens += 1
        size, price = Decimal(row["s"]), Decimal(row["p"])
        low, high = BANDS.get(row["a"], (Decimal(1), Decimal(0)))
        worth = size * (price if row["b"] else high)
        for period in (("day", self.day), ("minute", self.minute)):
            self.orders[period] += 1
        self.notional[self.day] += worth
        is_first = decided["digest"] not in self.verdicts
        self.verdicts.add(decided["digest"])
        terms = decided["terms"]
        limit = Decimal(terms["limit"])
        return {
            "the band": low <= price <= high and "limit" in row["t"],
            "the notional": worth <= ORDER_CAP,
            "the day's notional": self.notional[self.day] <= DAY_CAP,
            "the orders": self.orders["day", self.day] <= DAY_COUNT
            and self.orders["minute", self.minute] <= MINUTE_COUNT,
            "the verdict is used once": is_first,
            "the terms": terms["kind"] == "open"
            and (terms["asset"], terms["is_buy"]) == (row["a"], row["b"])
            and size <= Decimal(terms["size"])
            and (price <= limit if row["b"] else price >= limit),
        }
