"""Decisions of the predict venue in the form in which the page's decision table shows them, with what came of each."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from pitboss.report import figures
from pitboss.report.source import Plain, instant, number
from pitboss.venues.predict.intents import ALIASES, read
from pitboss.venues.predict.outcome import MarketCall

ACTIONS = {"mint": "Mint", "redeem": "Redeem"}
MOST_NAME = 60


def decision_rows(rows: Iterable[Plain], calls: Sequence[MarketCall]) -> list[Plain]:
    """Rows for the table: what was decided in words, why, and how it ended."""
    waiting: dict[tuple[int, str, str, str], deque[MarketCall]] = defaultdict(deque)
    for call in calls:
        waiting[call.at, call.action, call.side, f"{call.strike:f}"].append(call)
    found: list[Plain] = []
    for row in rows:
        plain = {name: row[name] for name in row if name not in ("symbol", "action")}
        if row.get("outcome") == "noop":
            found.append({**plain, "reason": row.get("reasoning")})
            continue
        for alias, name in ALIASES.items():
            plain.setdefault(name, row.get(alias))
        call = _call(row, waiting)
        if call is not None and call.duplicate:
            plain |= {"outcome": "refused", "code": call.code, "margins": ()}
        found.append(
            {
                **plain,
                "action": _said(plain, row),
                "reason": row.get("reasoning"),
                "size_usd": plain.get("spend"),
                "detail": "; ".join(
                    filter(None, (str(row.get("detail") or ""), "" if call is None else call_outcome(call)))
                ),
            }
        )
    return found


def _call(row: Plain, waiting: dict[tuple[int, str, str, str], deque[MarketCall]]) -> MarketCall | None:
    """The call a row became, if it was one."""
    kept = ("action", "market_id", "side", "strike", "spend", "confidence", *ALIASES, "reasoning")
    decision, _ = read({name: row[name] for name in kept if name in row})
    at = instant(row.get("tick_at"))
    if decision is None or decision.strike is None or at is None:
        return None
    queue = waiting.get((at, decision.action, str(decision.side), f"{decision.strike:f}"))
    return queue.popleft() if queue else None


def _said(plain: Plain, row: Plain) -> str:
    """`Mint YES 63,200 on BTC-…`, of whatever was named."""
    name = ACTIONS.get(str(row.get("action")), str(row.get("action") or "Malformed"))
    strike, market = number(plain.get("strike")), str(plain.get("market_id") or "")
    parts = [name, str(plain.get("side") or "")]
    parts.append("" if strike is None else figures.amount(strike))
    parts.append(f"on {market}" if market else "")
    return " ".join(part[:MOST_NAME] for part in parts if part)


def call_outcome(call: MarketCall) -> str:
    """What came of a call, in a sentence."""
    said: list[str] = []
    if call.traded is not None:
        done = "bought" if call.action == "mint" else "sold back"
        said.append(f"{done} {figures.amount(call.traded.quantity)} at {figures.plain(call.traded.price, 4)}")
        if call.fair is not None:
            said.append(f"fair {figures.plain(call.fair, 4)}")
    elif call.late:
        said.append(f"refused by {call.code} when its price came")
    elif call.ask is not None:
        said.append(f"ask {figures.plain(call.ask, 4)}")
    if call.action == "mint" and call.forecast:
        said.append("not settled yet" if call.won is None else "its side won" if call.won else "its side lost")
    return "; ".join(said)
