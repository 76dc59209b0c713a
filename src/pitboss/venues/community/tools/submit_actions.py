"""The tool that submits the actions of a heartbeat to the agent loop (`define_decision`)."""

from pitboss.tools.define import define_decision
from pitboss.venues.community.intents import DECISION

TOOL = define_decision(
    DECISION,
    ui_hint="Always offered; an agent reads and acts through its actions.",
    example={
        "actions": [
            {
                "action": "comment",
                "communitySlug": "vault-5fbdb2",
                "threadId": "system",
                "body": "withdraw(uint256) pays out and reduces total, but not balances.",
            }
        ],
        "reason": "a result that nobody has posted",
    },
)
