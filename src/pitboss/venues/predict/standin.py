"""The stand-in of the predict venue: decides by a fixed rule from the closes and asks in the prompt. NOT a model.

It follows the move of the last half hour, or opposes it if its mandate is contrarian, and states a confidence slightly
above or below the ask. Occasionally it exceeds a limit (a spend above the cap, a distant strike) to demonstrate how the
engine reduces and refuses. The same request gives the same reply. Its results do not measure the quality of any
strategy.
"""

import hashlib
import re
from itertools import pairwise
from math import sqrt
from statistics import fmean

from pitboss.core.ports import ModelRequest
from pitboss.models.standin import StandIn, StandInReply
from pitboss.venues.predict.intents import TERMINAL

_CLOSES = re.compile(r"closes, oldest first[^:]*: ([\d. ]+)$", re.MULTILINE)
_MARKET = re.compile(r"^(\S+) \| [^|]+ \| ([^|]+) \| [\d.]+ \| ([\d.]+): YES ([\d.]+), NO ([\d.]+)$", re.MULTILINE)
_LEFT = re.compile(r"^B9_SPEND_TICK .*left ([\d.]+)$", re.MULTILINE)
_BUDGETS = re.compile(r"^B1[013]_\w+ .*left ([\d.]+)$", re.MULTILINE)
_FADES = re.compile(r"against (?:excess|the move)|contrarian", re.IGNORECASE)
"""Matches mandates that trade against a move; the shipped contrarian mandate trades against excess."""
REACH, LEAST_SCORE = 30, 1.2
ACTS_ONE_IN, LOOKS_ONE_IN, OVERSTEPS_ONE_IN = 4, 5, 6
FAR_AWAY = 1.2


class PredictStandIn(StandIn):
    """The stand-in that trades binary contracts."""

    def __init__(self) -> None:
        StandIn.__init__(self, answer)


def answer(request: ModelRequest) -> StandInReply:
    """Return the reply text, the tool to call and its arguments."""
    page = next((message.text for message in request.messages if message.role == "user"), "")
    answered_tools = {message.name for message in request.messages if message.role == "tool"}
    dice = hashlib.sha256(page.encode("utf-8", "surrogatepass")).digest()
    score = _score(page)
    if _FADES.search(request.system):
        score = -score
    markets = _MARKET.findall(page)
    rooms = [float(number) for number in (*_LEFT.findall(page), *_BUDGETS.findall(page))]
    if not markets or not rooms or min(rooms) < 0.01:
        return _hold("no market quotes, or a budget is used up")
    if abs(score) < LEAST_SCORE or dice[0] % ACTS_ONE_IN:
        return _hold(f"the last half hour's move is {score:+.1f} of its usual size, which is not enough")
    name, _, strike, yes, no = markets[dice[1] % min(3, len(markets))]
    offered = {tool.name for tool in request.tools} if not request.must_call else set()
    if "list_strikes" in offered - answered_tools and dice[2] % LOOKS_ONE_IN == 0:
        return f"Looking at the strikes of {name} first.", "list_strikes", {"market_id": name}
    side, ask = ("YES", float(yes)) if score > 0 else ("NO", float(no))
    confidence = round(min(0.97, max(0.03, ask + 0.02 * min(3.0, abs(score)))), 2)
    oversteps = dice[3] % OVERSTEPS_ONE_IN == 0
    far = oversteps and dice[4] % 2 == 0
    decision = {
        "action": "mint",
        "market_id": name,
        "side": side,
        "strike": round(float(strike) * FAR_AWAY) if far else float(strike),
        "spend": round(rooms[0] * (4 if oversteps else 1), 2),
        "confidence": confidence,
        "reasoning": f"my view of the last half hour's move is {score:+.1f} of its usual size; {side} costs {ask:.4f} and I say {confidence}",
    }
    return f"Minting {side} in {name}.", TERMINAL, decision


def _score(page: str) -> float:
    """Return the move of the last closes relative to the size expected by chance."""
    match = _CLOSES.search(page)
    closes = [float(text) for text in match.group(1).split()][-REACH:] if match else []
    if len(closes) < 5:
        return 0.0
    steps = [later / earlier - 1 for earlier, later in pairwise(closes)]
    usual = sqrt(fmean(step * step for step in steps) * len(steps))
    return (closes[-1] / closes[0] - 1) / usual if usual else 0.0


def _hold(why: str) -> StandInReply:
    return f"Holding: {why}.", TERMINAL, {"action": "hold", "reasoning": why}
