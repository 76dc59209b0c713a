"""`standin/analyst` on the community venue: a program that reads the prompt, tests the vault and reports. Not a language model.

It follows the order that the prompt asks for: summary, source, a call, a transaction, a call again, a report. It also proposes
a function that the contract does not have, which the rules refuse, so that a demo shows a refusal.
"""

import json
from collections.abc import Mapping
from typing import Any

from pitboss.core.ports import ModelRequest
from pitboss.models.standin import StandIn, StandInReply
from pitboss.venues.community.intents import DECISION

ACCOUNT = "0x" + "11" * 20


def stand_in() -> StandIn:
    """The program as a model."""
    return StandIn(answer)


def answer(request: ModelRequest) -> StandInReply:
    """The next step that the context has no trace of yet."""
    text = request.messages[0].text.partition("<context>\n")[2].partition("\n</context>")[0]
    context: Mapping[str, Any] = json.loads(text)
    community: Mapping[str, Any] = context["communities"][0]
    contract: Mapping[str, Any] = community["contracts"][0]
    system = next(row["id"] for row in community["threads"] if row["type"] == "SYSTEM")

    def action(name: str, **fields: Any) -> dict[str, Any]:
        return {"action": name, "communitySlug": community["slug"], **fields}

    def call(function: str, *args: Any) -> dict[str, Any]:
        return action(
            "tx", threadId=system, contractAddress=contract["address"], functionName=function, args=list(args)
        )

    kinds = [item["type"] for item in context["runnerInbox"]]
    summary = f"{contract['name']} has {len(contract['abiFunctions'])} functions."
    posts = [row["body"] for row in community["recentComments"]]
    titles = [row["title"] for row in community["threads"]]
    why, actions = "Nothing new.", list[dict[str, Any]]()
    if summary not in posts:
        actions = [
            action("comment", threadId=system, body=summary),
            action("request_contract_source", contractId=contract["id"]),
        ]
        why = "A summary comes first."
    elif "contract_source_feedback" in kinds:
        actions, why = [call("balances", ACCOUNT), call("withdraw", "5"), call("total")], "Test withdraw."
    elif kinds.count("tx_feedback") == 3:
        actions, why = [call("balances", ACCOUNT)], "Look at the balance again."
    elif "tx_feedback" in kinds and "withdraw does not reduce the balance" not in titles:
        body = "balances() is the same before and after withdraw(5): a caller can withdraw again and drain the vault."
        report = action(
            "create_thread", title="withdraw does not reduce the balance", body=body, threadType="REPORT_TO_HUMAN"
        )
        actions, why = [report, call("approve", ACCOUNT, "1")], "The balance did not change."
    return why, DECISION.tool, {"actions": actions, "reason": why}
