"""An order as the writer sends it, and its on-chain result: plain numbers in the protocol's units.

Both are stored in the outbox as canonical JSON, so that another process can continue from the outbox alone.
"""

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.predict import aborts
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.desk import DeskOrder
from pitboss.venues.predict.orders import ContractOrder
from pitboss.venues.predict.state import Contract
from pitboss.venues.predict.sui.chain import ChainEvent, Effects, full_id, is_id

_MODULES = {"predict_manager": "manager"}
_ABORTS = {(abort.module, abort.code): abort for abort in vars(aborts).values() if isinstance(abort, Abort)}


@noun
class SuiOrder:
    """One mint or redeem. A mint costs at most `spend`; slippage is measured from `reference`."""

    action: Literal["mint", "redeem"]
    market_id: str
    side: str
    strike: int
    expiry_at: Instant
    quantity: int
    price: int
    spend: int = 0
    shown: int | None = None
    confidence: Decimal | None = None

    @property
    def reference(self) -> int:
        """Return the ask shown to the model at the tick; if none was shown, the ask at which it was judged."""
        return self.price if self.shown is None else self.shown

    @property
    def oracle(self) -> str:
        """Return the market's id in the chain's notation."""
        return full_id(self.market_id)

    @property
    def contract_order(self) -> ContractOrder:
        """Return the order in the venue's type."""
        up = self.side == "YES"
        contract = Contract(self.market_id, self.strike if up else None, None if up else self.strike)
        return ContractOrder(self.action, contract, self.quantity, self.price, self.spend)


@noun
class ChainTrade:
    """The result of a transaction: quantity, price per contract, and amount."""

    quantity: int
    amount: int
    price: int
    settled: bool = False


def sui_order_of(request: DeskOrder, expiry_at: Instant) -> SuiOrder:
    """Convert the engine's request."""
    order = request.order
    contract = order.contract
    return SuiOrder(
        order.action,
        contract.market_id,
        contract.side,
        contract.strikes[0],
        expiry_at,
        order.quantity,
        order.price,
        order.spend,
        request.shown,
        request.confidence,
    )


def order_id(scope: str, request: DeskOrder) -> str:
    """Return the id of an order: a hash of the scope, the tick and the decision as the engine allowed it.

    Quantity and price are excluded: they follow from the market, and the same decision judged again a moment later is
    the same order.
    """
    order = request.order
    parts = [scope, request.tick_at, order.action, order.contract.key, order.spend]
    return hashlib.sha256(codec.dumps(parts)).hexdigest()


def trade_in(effects: Effects, order: SuiOrder, manager: str) -> ChainTrade | None:
    """Return the trade reported by a transaction, if it belongs to this order.

    Unreadable fields mean an incomplete reply.
    """
    name, amount, price = (
        ("PositionMinted", "cost", "ask_price")
        if order.action == "mint"
        else ("PositionRedeemed", "payout", "bid_price")
    )
    for event in effects.events:
        if event.name == name and _about(event, order, manager):
            fields = event.fields
            settled = fields.get("is_settled") is True
            return ChainTrade(_int(fields, "quantity"), _int(fields, amount), _int(fields, price), settled)
    return None


def _about(event: ChainEvent, order: SuiOrder, manager: str) -> bool:
    fields = event.fields
    return (
        _same(fields.get("manager_id"), manager)
        and _same(fields.get("oracle_id"), order.market_id)
        and _int(fields, "strike") == order.strike
        and fields.get("is_up") is (order.side == "YES")
    )


def _same(value: Any, expected: str) -> bool:
    return isinstance(value, str) and is_id(value) and full_id(value) == full_id(expected)


def _int(fields: Mapping[str, Any], name: str) -> int:
    """Return a number of the chain, which JSON carries as text because it may exceed the precision of a double."""
    value = fields.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise TransientError(f"the node tells no {name} of the trade")
    return value


def failure_text(effects: Effects) -> str:
    """Return why a transaction had no effect, in the venue's terms if the abort is listed."""
    abort = _ABORTS.get((_MODULES.get(effects.module, effects.module), -1 if effects.code is None else effects.code))
    if abort is not None:
        return f"{abort.reason} ({abort.name})"
    code = f"{effects.module}:{effects.code}" if effects.module or effects.code is not None else ""
    message = " ".join(effects.error.split())[:200]
    return ": ".join(part for part in ("the chain refuses it", code, message) if part)


def first_number(outputs: Iterable[Iterable[bytes]]) -> int | None:
    """Return the number that the first command of a simulation returned."""
    for command in outputs:
        for value in command:
            return int.from_bytes(value, "little") if len(value) == 8 else None
        return None
    return None
