"""Tool `propose_order`: the decision of a tick, handled by the agent loop (`define_decision`)."""

from pitboss.tools.define import define_decision
from pitboss.venues.perp.intents import DECISION

TOOL = define_decision(
    DECISION,
    ui_hint="Always offered to a trading agent, never to a chat; need not be listed.",
    example={
        "action": "open_long",
        "symbol": "BTC",
        "size_usd": 500,
        "leverage": 2,
        "stop_loss": 58000,
        "take_profit": 66000,
        "reason": "close above the 20-bar high with rising volume",
        "confidence": 0.6,
    },
)
