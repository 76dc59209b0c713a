"""The tool that submits the decision of a tick to the agent loop (`define_decision`)."""

from pitboss.tools.define import define_decision
from pitboss.venues.predict.intents import DECISION

TOOL = define_decision(
    DECISION,
    ui_hint="Always offered to an agent that decides; need not be listed.",
    example={
        "action": "mint",
        "market_id": "BTC-2026-05-27T13:00:00Z",
        "side": "YES",
        "strike": 63500,
        "spend": 2,
        "confidence": 0.62,
        "reasoning": "steady drift up, the ask of 0.55 leaves an edge of 0.07",
    },
)
