"""Decisions of the predict venue as rows of the decision table, with the outcome of each call."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from pitboss.report import figures
from pitboss.report.source import Plain, instant, number
from pitboss.venues.predict.intents import ALIASES, read, with_own_names
from pitboss.venues.predict.outcome import MarketCall

ACTIONS = {"mint": "Mint", "redeem": "Redeem"}
MOST_NAME = 60


def decision_rows(rows: Iterable[Plain], calls: Sequence[MarketCall]) -> list[Plain]:
    """Rows of the table: decision, reason and outcome."""
    pending: dict[tuple[int, str, str, str], deque[MarketCall]] = defaultdict(deque)
    for call in calls:
        pending[call.at, call.action, call.side, f"{call.strike:f}"].append(call)
    result: list[Plain] = []
    for row in rows:
        plain = {name: row[name] for name in row if name not in ("symbol", "action")}
        if row.get("outcome") == "noop":
            result.append({**plain, "reason": row.get("reasoning")})
            continue
        plain = with_own_names(plain)
        call = _call(row, pending)
        if call is not None and call.duplicate:
            plain |= {"outcome": "refused", "code": call.code, "margins": ()}
        result.append(
            {
                **plain,
                "action": _describe(plain, row),
                "reason": row.get("reasoning"),
                "size_usd": plain.get("spend"),
                "detail": "; ".join(
                    filter(None, (str(row.get("detail") or ""), "" if call is None else call_outcome(call)))
                ),
            }
        )
    return result


def _call(row: Plain, pending: dict[tuple[int, str, str, str], deque[MarketCall]]) -> MarketCall | None:
    """The call that belongs to a row; None if there is none."""
    names = ("action", "market_id", "side", "strike", "spend", "confidence", *ALIASES, "reasoning")
    decision, _ = read({name: row[name] for name in names if name in row})
    at = instant(row.get("tick_at"))
    if decision is None or decision.strike is None or at is None:
        return None
    queue = pending.get((at, decision.action, str(decision.side), f"{decision.strike:f}"))
    return queue.popleft() if queue else None


def _describe(plain: Plain, row: Plain) -> str:
    """`Mint YES 63,200 on BTC-…`, with the parts that the decision has."""
    name = ACTIONS.get(str(row.get("action")), str(row.get("action") or "Malformed"))
    strike, market = number(plain.get("strike")), str(plain.get("market_id") or "")
    parts = [name, str(plain.get("side") or "")]
    parts.append("" if strike is None else figures.amount(strike))
    parts.append(f"on {market}" if market else "")
    return " ".join(part[:MOST_NAME] for part in parts if part)


def call_outcome(call: MarketCall) -> str:
    """The outcome of a call in one line."""
    parts: list[str] = []
    if call.traded is not None:
        verb = "bought" if call.action == "mint" else "sold back"
        parts.append(f"{verb} {figures.amount(call.traded.quantity)} at {figures.plain(call.traded.price, 4)}")
        if call.fair is not None:
            parts.append(f"fair {figures.plain(call.fair, 4)}")
    elif call.late:
        parts.append(f"refused by {call.code} at execution")
    elif call.ask is not None:
        parts.append(f"ask {figures.plain(call.ask, 4)}")
    if call.action == "mint" and call.forecast:
        parts.append("not settled yet" if call.won is None else "its side won" if call.won else "its side lost")
    return "; ".join(parts)
