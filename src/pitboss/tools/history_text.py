"""A run's history as text for tools: decisions, proposals, verdicts and receipts as short lines.

Text that a model wrote may repeat untrusted text, so it is fenced as data. Costs are left out: they may differ between
two runs of the same inputs, and tool results are part of the record that the digest covers.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import ToolFailed, UserError
from pitboss.core.instant import Instant, iso, parse_instant, parse_range_end, resolved
from pitboss.core.past import PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.verdict import margin_fields
from pitboss.prompt import render

TEXT_CHARS = 280
"""Maximum characters of a text inside a line."""

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}

MOMENT: dict[str, Any] = {"type": "string", "minLength": 4, "maxLength": 40}
"""The schema of an instant in arguments; a tool adds its description."""

_OUTCOMES = {"accepted": "accepted", "refused": "refused", "noop": "no_op"}
_NUMBERS = (
    ("size_usd", "", " USD"),
    ("leverage", "x", ""),
    ("reduce_pct", "", "%"),
    ("limit_price", "limit ", ""),
    ("stop_loss", "stop ", ""),
    ("take_profit", "take_profit ", ""),
)


def count_of(items: str, most: int, few: int) -> dict[str, Any]:
    """The schema of an argument that limits the number of results."""
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "description": f"How many {items} at most; {few} when left out.",
    }


def moment(arguments: Mapping[str, Any], name: str, end: Callable[[], Instant] | None = None) -> Instant:
    """Read an argument as an instant; with an `end` also one before it, such as `-30d`."""
    try:
        at = parse_instant(arguments[name]) if end is None else resolved(parse_range_end(arguments[name]), end)
        iso(at)
    except UserError as error:
        raise ToolFailed(f"{name}: {error.message}; {error.hint}") from None
    except (OverflowError, OSError, ValueError):
        raise ToolFailed(f"{name}: {arguments[name]!r} is outside of the calendar") from None
    return at


def not_after(context_at: Instant, name: str, at: Instant) -> Instant:
    """The instant, unless it is after the tick, which is a `ToolFailed`."""
    if at > context_at:
        raise ToolFailed(f"{name}: {iso(at)} is after now ({iso(context_at)}); nothing from later can be known")
    return at


def decision_line(decision: PastDecision) -> str:
    """One past decision in a line: instant, outcome, proposal and reason."""
    parts = [iso(decision.at), _OUTCOMES.get(decision.outcome, decision.outcome)]
    if decision.flags:
        parts.append(f"({', '.join(decision.flags)})")
    if decision.code:
        parts.append(f"by {decision.code}")
    if decision.proposal:
        parts.append(proposal_text(codec.loads_exact(decision.proposal)))
    if decision.detail:
        parts.append(f"[{_short(decision.detail)}]")
    if decision.text and not decision.proposal:
        parts.append(render.fence(decision.text, TEXT_CHARS))
    parts.append(f"equity {render.amount(decision.equity_usd)}")
    return " ".join(parts)


def proposal_text(proposal: Any) -> str:
    """A short description of a proposal, including a malformed one."""
    if not isinstance(proposal, Mapping):
        return render.fence(str(proposal), TEXT_CHARS)
    parts = [safe_name(proposal.get("action")), safe_name(proposal.get("symbol"))]
    for name, before, after in _NUMBERS:
        value = proposal.get(name)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            parts.append(f"{before}{render.size(value)}{after}")
    if isinstance(proposal.get("order_id"), str):
        parts.append(safe_name(proposal["order_id"]))
    reason = proposal.get("reason")
    if isinstance(reason, str) and reason:
        parts.append(render.fence(reason, TEXT_CHARS))
    return " ".join(part for part in parts if part)


def safe_name(value: Any) -> str:
    """A name written by a model: verbatim if it is a plain name, else fenced as data."""
    if not isinstance(value, str) or not value:
        return ""
    plain = len(value) <= 64 and value.isascii() and value.replace("_", "").replace("-", "").isalnum()
    return value if plain else render.fence(value, 64)


def _short(text: str) -> str:
    return render.fence(text, TEXT_CHARS).removeprefix(render.DATA_OPEN).removesuffix(render.DATA_CLOSE)


def margin_lines(margins: Any, only: str = "") -> list[str]:
    """The margins of a recorded verdict, one line per rule; `only` selects one rule."""
    lines: list[str] = []
    for margin in margin_fields(margins):
        if only and margin["code"] != only:
            continue
        unit = margin.get("unit") or ""
        facts = [f"{name} {number(margin[name], unit)}" for name in ("limit", "used", "left") if margin.get(name)]
        if facts:
            lines.append(f"{margin['code']}: {', '.join(facts)} {unit}".rstrip())
    return lines


def number(value: Any, unit: str = "") -> str:
    """A recorded number formatted for display; other text is cut."""
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        return _short(str(value))
    return render.amount(exact) if unit.lower() == "usd" else render.size(exact)


def receipt_line(receipt: Receipt) -> str:
    """One receipt in a line."""
    parts = [iso(receipt.at), receipt.kind, receipt.symbol, receipt.order_id]
    parts += [f"{name}={_fact(name, value)}" for name, value in sorted(receipt.facts.items())]
    return " ".join(part for part in parts if part)


def _fact(name: str, value: Any) -> str:
    if name.endswith("_usd"):
        return number(value, "usd")
    return number(value) if isinstance(value, int | Decimal) else _rendered(name, value)


def _rendered(name: str, value: Any) -> str:
    if name in ("side", "reason", "kind", "liquidity", "halt"):
        return _short(str(value))
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        return _short(str(value))
    return render.size(exact) if name == "size" else render.price(exact)
