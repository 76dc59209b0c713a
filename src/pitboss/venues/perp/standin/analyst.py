"""The trading rules of `standin/analyst` on the perp venue: fixed rules over the prompt text. NOT a language model.

It parses the prompt that any model would get, sometimes calls an offered tool, gives reasons with the numbers it used,
and sometimes exceeds a cap so that a demo shows a refusal by the engine. The same request always gives the same reply.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core.ports import ModelRequest
from pitboss.models.standin import StandIn, StandInReply
from pitboss.prompt import render
from pitboss.venues.perp.standin import lessons, opinion, prompt_reader
from pitboss.venues.perp.standin.opinion import Opinion
from pitboss.venues.perp.standin.prompt_reader import ParsedPrompt, PromptBar, PromptChart, Room

TERMINAL = "propose_order"

ENTER, TURNED = 2.5, 1.0
"""The score from which it opens, and the score against a position from which it closes."""

OVERSTEP_ONE_IN, OVERSTEP_TIMES = 6, 4
STOP_RANGES, TARGET_RANGES = 2.5, 4.0
_FADES = re.compile(r"mean[ -]reversion|edge of the range", re.IGNORECASE)


class Analyst(StandIn):
    """The stand-in that trades perpetuals."""

    def __init__(self) -> None:
        StandIn.__init__(self, answer)


def answer(request: ModelRequest) -> StandInReply:
    """Write lessons if requested, else call one tool or decide."""
    if request.must_call == lessons.TOOL:
        return "Looking back.", lessons.TOOL, lessons.write(request.messages[0].text)
    return _answer(_ParsedRequest.of(request))


@dataclass(frozen=True, slots=True)
class _ParsedRequest:
    """One request: its parsed prompt, the tools offered, and the results of tools called before in this tick."""

    prompt: ParsedPrompt
    fades: bool
    offered: frozenset[str]
    results: Mapping[str, str]
    hash: bytes

    @classmethod
    def of(cls, request: ModelRequest) -> "_ParsedRequest":
        message = next((message.text for message in request.messages if message.role == "user"), "")
        names = frozenset(tool.name for tool in request.tools)
        return cls(
            prompt=prompt_reader.parse_prompt(message),
            fades=bool(_FADES.search(request.system)),
            offered=frozenset({request.must_call}) if request.must_call else names,
            results={message.name: message.text for message in request.messages if message.role == "tool"},
            hash=hashlib.sha256(message.encode("utf-8", "surrogatepass")).digest(),
        )

    def chance(self, die: int, one_in: int) -> bool:
        """Return a pseudo-random choice that depends only on the prompt; `die` selects the byte of its hash."""
        return self.hash[die] % one_in == 0

    def may_ask(self, tool: str) -> bool:
        """Return whether a tool is offered and was not called before in this tick."""
        return tool in self.offered and tool not in self.results

    def opinion(self, symbol: str) -> Opinion | None:
        """Return the opinion on a symbol; bars fetched in this tick count as the higher timeframe."""
        chart = self.prompt.charts[symbol]
        if self.fades:
            return opinion.against_the_move(chart)
        return opinion.with_the_move(chart, self.prompt.mood.get(symbol, 0.0), self._wider(symbol, chart))

    def _wider(self, symbol: str, chart: PromptChart) -> Sequence[PromptBar]:
        fetched = self.results.get("fetch_recent_bars", "")
        if fetched.startswith(f"{symbol} "):
            return prompt_reader.rows_of(fetched)[::-1]
        return list(chart.tables.values())[-1] if len(chart.tables) > 1 else ()


def _answer(request: _ParsedRequest) -> StandInReply:
    if TERMINAL not in request.offered:
        return _talk(request)
    views = {symbol: view for symbol in sorted(request.prompt.charts) if (view := request.opinion(symbol)) is not None}
    if not views:
        return _nothing(request, "there are too few bars in the prompt to form a view")
    if "invalid" in request.results.get(TERMINAL, "")[:20]:
        return _nothing(request, "my proposal was not understood, so I stand down")
    look = _look(request, views)
    if look is not None:
        return look
    return _manage(request, views) or _enter(request, views)


def _talk(request: _ParsedRequest) -> StandInReply:
    regimes = ", ".join(f"{symbol} {chart.regime}" for symbol, chart in sorted(request.prompt.charts.items()))
    return f"I can look but not decide here. Regimes: {regimes or 'nothing to see'}.", "", {}


def _look(request: _ParsedRequest, views: Mapping[str, Opinion]) -> StandInReply | None:
    """Return a tool call before the decision if the opinions call for one and the hash of the prompt selects it."""
    symbol = max(views, key=lambda name: (abs(views[name].score), name))
    if request.may_ask("fetch_recent_bars") and abs(views[symbol].score) >= 2 and request.chance(0, 3):
        tables = request.prompt.charts[symbol].tables
        interval = next((name for name in ("4h", "1d", "1h") if name not in tables), "1d")
        arguments = {"symbol": symbol, "interval": interval, "lookback": 30}
        return f"Looking at wider {interval} bars of {symbol} first.", "fetch_recent_bars", arguments
    if request.may_ask("get_portfolio") and request.prompt.positions and request.chance(1, 6):
        return "Checking the account before I touch a position.", "get_portfolio", {}
    return None


# Open positions -----------------------------------------------------------------------------------------------------


def _manage(request: _ParsedRequest, views: Mapping[str, Opinion]) -> StandInReply | None:
    """Close a position that the opinion has turned against; reduce a winner that loses strength."""
    for symbol, position in sorted(request.prompt.positions.items()):
        view = views.get(symbol)
        if view is None or symbol in request.prompt.working:
            continue
        against, result = -position.side * view.score, render.amount(position.unrealised_usd)
        side = "long" if position.side > 0 else "short"
        if against >= TURNED:
            why = f"my view turned against the {side} ({_score(view)}); result so far {result} USD. {_facts(view)}"
            return _decide(f"Closing {symbol}.", action="close", symbol=symbol, reason=why)
        ahead = position.side * (position.mark - position.entry)
        if against > -0.5 and ahead > view.range_usd and request.chance(2, 8):
            why = f"the {side} is {result} USD ahead but loses strength ({_score(view)}): taking half. {_facts(view)}"
            return _decide(f"Reducing {symbol}.", action="reduce", symbol=symbol, reduce_pct=50, reason=why)
    return None


# Opens --------------------------------------------------------------------------------------------------------------


def _enter(request: _ParsedRequest, views: Mapping[str, Opinion]) -> StandInReply:
    """Open the strongest opinion without a position, or return a no-op with its reason."""
    prompt = request.prompt
    free = [symbol for symbol in views if symbol not in prompt.positions and symbol not in prompt.working]
    if prompt.halted:
        return _nothing(request, "the engine has halted opens")
    if not free:
        return _nothing(request, "every symbol has a position or a working order, and none needs a change")
    if prompt.refused_symbol in free and abs(views[prompt.refused_symbol].score) >= ENTER:
        symbol = prompt.refused_symbol
    else:
        symbol = max(free, key=lambda name: (abs(views[name].score), name))
    view, room = views[symbol], prompt.room[symbol]
    if abs(view.score) < ENTER:
        return _nothing(
            request, f"no setup: {symbol} has the strongest score with {_score(view)}. {_facts(view)}", symbol
        )
    if room.largest_usd < 1:
        return _nothing(request, f"{symbol} looks right ({_score(view)}) but the caps leave no room for it", symbol)
    simulated, refused_now = (
        request.results.get("simulate_action", ""),
        request.results.get(TERMINAL, "").startswith("refused"),
    )
    if '"refused"' in simulated:
        return _nothing(request, f"{symbol} looks right but the engine would refuse it: {_code(simulated)}", symbol)
    corrected = bool(prompt.refused) or refused_now
    # It does not exceed a cap again at the tick after a refusal.
    overstep = not corrected and request.chance(3, OVERSTEP_ONE_IN)
    proposal = _open(symbol, view, room, overstep, corrected)
    if not overstep and not simulated and request.may_ask("simulate_action") and request.chance(4, 3):
        return f"Asking the engine about {symbol} first.", "simulate_action", proposal
    return f"{proposal['action']} {symbol}.", TERMINAL, proposal


def _open(symbol: str, view: Opinion, room: Room, overstep: bool, corrected: bool) -> dict[str, Any]:
    share = (0.25 if corrected else 0.35) + 0.45 * view.conviction
    size = OVERSTEP_TIMES * max(room.cap_usd, room.largest_usd) if overstep else room.largest_usd * share
    stop = max(STOP_RANGES * view.range_usd, 0.004 * view.price)
    target = stop * TARGET_RANGES / STOP_RANGES
    leverage = max(1, min(room.top_leverage, 1 + int(view.conviction * (room.top_leverage - 1) + 0.5)))
    reasons = [f"{_score(view)}, {_facts(view)}; stop {render.price(stop)} away, {STOP_RANGES:g} usual bar ranges"]
    if corrected:
        reasons.append("smaller than before, to fit the caps")
    if overstep:
        reasons.append("sized by conviction alone")
    return {
        "action": "open_long" if view.side > 0 else "open_short",
        "symbol": symbol,
        "size_usd": _number(size, "{:.2f}"),
        "leverage": leverage,
        "order_type": "market",
        "stop_loss": _number(view.price - view.side * stop, "{:.5g}"),
        "take_profit": _number(view.price + view.side * target, "{:.5g}"),
        "reason": "; ".join(reasons),
        "confidence": _number(view.conviction, "{:.2f}"),
    }


def _nothing(request: _ParsedRequest, why: str, symbol: str = "") -> StandInReply:
    symbol = symbol or min(request.prompt.charts, default="")
    return _decide("Nothing to do.", action="no_op", symbol=symbol, reason=why)


def _decide(text: str, **proposal: Any) -> StandInReply:
    return text, TERMINAL, proposal


def _facts(view: Opinion) -> str:
    return ", ".join(view.facts)


def _score(view: Opinion) -> str:
    return f"score {'+' if view.score > 0 else ''}{render.volume(view.score)}"


def _code(answer: str) -> str:
    match = re.search(r"R\d+_\w+", answer)
    return match[0] if match else "no reason given"


def _number(value: float, form: str) -> Decimal:
    """Convert a float to a decimal with the digits of its formatted text."""
    return Decimal(format(Decimal(form.format(value)), "f"))
