"""A node that limits its requests has not executed a call: the agent is not told that its contract reverts."""

import asyncio
import json
from typing import Any

import pytest

from pitboss.core.errors import TransientError
from pitboss.venues.community.chain.json_rpc import JsonRpcClient, RpcRejection
from pitboss.venues.community.chain.node_reader import MessageCall, NodeReader

CALL = MessageCall("0x" + "1" * 40, "0x" + "2" * 40, "0x")


class RefusingNode:
    """Answers every request but that for its chain with one error."""

    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}

    async def post(self, body: bytes) -> tuple[bytes, int]:
        request = json.loads(body)
        answer: dict[str, Any] = {"result": "0x1"} if request["method"] == "eth_chainId" else {"error": self.error}
        return json.dumps({"id": request["id"], **answer}).encode(), 1


def reader(code: int, message: str) -> NodeReader:
    return NodeReader(JsonRpcClient(RefusingNode(code, message), 1))


@pytest.mark.parametrize(
    ("code", "message"),
    [(-32005, "limit exceeded"), (-32002, "resource unavailable"), (429, "your app has exceeded its capacity")],
)
def test_a_limit_of_the_node_is_no_revert(code: int, message: str) -> None:
    node = reader(code, message)
    for asking in (node.call(CALL), node.estimate(CALL)):
        with pytest.raises(TransientError, match="limits its requests"):
            asyncio.run(asking)


@pytest.mark.parametrize(
    ("code", "message"), [(3, "execution reverted: no"), (-32000, "execution reverted"), (-32603, "VM")]
)
def test_what_nodes_answer_to_a_call_that_reverts_is_a_value(code: int, message: str) -> None:
    node = reader(code, message)
    assert asyncio.run(node.call(CALL)) == RpcRejection(code, message)
    assert asyncio.run(node.estimate(CALL)) == RpcRejection(code, message)
