"""Two scripted models for the demo: an auditor and a reviewer. Programs that read the same prompt as a model, and no models.

The auditor writes its decisions as a tool call, the reviewer as plain JSON text; the runner takes both.
"""

import json
from collections.abc import Mapping
from typing import Any

REPORT_TITLE = "withdraw pays the same deposit out again and again"
AMOUNT = "10"

Context = Mapping[str, Any]
Action = dict[str, Any]


def context_of(question: Mapping[str, Any]) -> Context:
    """The context document of a prompt."""
    text = next(message["content"] for message in question["messages"] if message["role"] == "user")
    return json.loads(text.partition("<context>\n")[2].partition("\n</context>")[0])


def auditor(context: Context) -> tuple[str, list[Action]]:
    """Summary and source; a deposit, which a person has to approve; two withdrawals; a report. Also one forbidden call."""
    community = context["communities"][0]
    contract = community["contracts"][0]
    system = next(row["id"] for row in community["threads"] if row["type"] == "SYSTEM")
    results = context["runnerInbox"]

    def action(name: str, **fields: Any) -> Action:
        return {"action": name, "communitySlug": community["slug"], **fields}

    def call(function: str, *args: str, **more: str) -> Action:
        address = contract["address"]
        return action("tx", threadId=system, contractAddress=address, functionName=function, args=list(args), **more)

    def mined(function: str) -> list[Mapping[str, Any]]:
        return [
            row["result"]
            for row in results
            if row["type"] == "tx_feedback" and row["functionName"] == function and row["result"].get("status") == 1
        ]

    names = [function["name"] for function in contract["abiFunctions"]]
    summary = f"{contract['name']} has {len(names)} functions: {', '.join(names)}."
    if summary not in [row["body"] for row in community["recentComments"]]:
        source = action("request_contract_source", contractId=contract["id"])
        return "A summary first.", [action("comment", threadId=system, body=summary), source]
    if any(row["type"] == "contract_source_feedback" for row in results):
        forbidden = call("transferOwnership", "0x" + "11" * 20)
        return "withdraw looks wrong. Test it.", [forbidden, call("deposit", value=AMOUNT)]
    if mined("deposit"):
        return "The deposit is in.", [call("withdraw", AMOUNT), call("deposited")]
    if len(mined("withdraw")) == 1 and any(row.get("functionName") == "deposited" for row in results):
        again = call("withdraw", str(int(AMOUNT)))
        return "It still counts as deposited. Withdraw the same amount again.", [again, call("held")]
    if mined("withdraw") and REPORT_TITLE not in [row["title"] for row in community["threads"]]:
        hashes = ", ".join(row["hash"] for row in mined("withdraw"))
        body = (
            f"After one deposit of {AMOUNT} wei, withdraw({AMOUNT}) was mined twice with status 1 (the second: {hashes}). "
            "balances[msg.sender] is never reduced, so any depositor can empty the vault. Reduce it before sending."
        )
        return "Two payouts for one deposit.", [
            action("create_thread", title=REPORT_TITLE, body=body, threadType="REPORT_TO_HUMAN")
        ]
    if any(row.get("result", {}).get("code") == "C17_APPROVAL" for row in results):
        return "A person has to approve the deposit. Ask again.", [call("deposit", value=AMOUNT)]
    return "Nothing new.", []


def reviewer(context: Context) -> tuple[str, list[Action]]:
    """Reads the source, and answers the report of another agent once."""
    community = context["communities"][0]
    report = next((row for row in community["threads"] if row["title"] == REPORT_TITLE), None)
    answer = "Confirmed from the source: withdraw checks balances[msg.sender] and sends, but assigns nothing."
    if report is None or any(row["body"] == answer for row in community["recentComments"]):
        return "Nothing to review.", []
    comment = {"action": "comment", "communitySlug": community["slug"], "threadId": report["id"], "body": answer}
    return "The report is right.", [comment]
