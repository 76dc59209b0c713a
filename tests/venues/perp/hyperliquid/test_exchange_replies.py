"""Every reply is classified order by order; what is not a listed answer is ambiguous."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.perp.hyperliquid.exchange_client import read_reply


def order_reply(*statuses: object) -> str:
    return json.dumps({"status": "ok", "response": {"type": "order", "data": {"statuses": list(statuses)}}})


FILLED = {"filled": {"totalSz": "0.5", "avgPx": "100", "oid": 7}}
RESTING = {"resting": {"oid": 8, "cloid": "0x" + "0" * 32}}
LISTED = {"error": "Insufficient margin to place order. asset=4"}


def test_each_order_of_a_batch_is_judged_on_its_own():
    reply = read_reply(
        200, order_reply(FILLED, RESTING, LISTED, {"error": "Something new"}, None, "waitingForTrigger"), 6
    )
    assert [answer.answer for answer in reply.orders] == [
        "filled", "resting", "refused", "ambiguous", "ambiguous", "resting",
    ]  # fmt: skip
    assert (reply.orders[0].oid, str(reply.orders[0].size)) == (7, "0.5")


@pytest.mark.parametrize("statuses", [(), (FILLED,), (FILLED, RESTING, LISTED)])
def test_another_number_of_statuses_leaves_all_ambiguous(statuses: tuple[object, ...]):
    assert {answer.answer for answer in read_reply(200, order_reply(*statuses), 2).orders} == {"ambiguous"}


@pytest.mark.parametrize(
    ("status", "text", "alarm"),
    [
        (500, "Internal Server Error", ""),
        (502, "<html>", ""),
        (200, "", ""),
        (200, order_reply(FILLED)[:40], ""),
        (200, "null", ""),
        (200, '{"status":"ok"}', ""),
        (200, '{"status":"err","response":"Unknown"}', ""),
        (200, '{"status":"err","response":"User or API Wallet 0x12 does not exist."}', "agent"),
        (200, '{"status":"err","response":"Invalid nonce: duplicate nonce 3"}', "nonce"),
        (200, '{"status":"err","response":"Too many cumulative requests sent (2 > 1)"}', "actions"),
        (429, "null", "throttled"),
        (200, '{"status":"ok","status":"ok","response":{"data":{"statuses":[]}}}', ""),
    ],
)
def test_a_reply_without_statuses_proves_nothing(status: int, text: str, alarm: str):
    reply = read_reply(status, text, 1)
    assert [answer.answer for answer in reply.orders] == ["ambiguous"]
    assert (reply.alarm, reply.accepted) == (alarm, False)


@pytest.mark.parametrize(
    "status",
    [
        {"filled": {"totalSz": "NaN", "oid": 1}},
        {"filled": {"totalSz": 1, "oid": 1}},
        {"filled": {"totalSz": "1"}},
        {"resting": {}},
        {"resting": {"oid": True}},
        {"resting": {"oid": 1}, "filled": {}},
        {"error": None},
        "done",
        7,
        [],
    ],
)
def test_a_status_that_cannot_be_read_is_ambiguous(status: object):
    assert read_reply(200, order_reply(status), 1).orders[0].answer == "ambiguous"


@given(text=st.text(max_size=60), status=st.integers(100, 599), count=st.integers(0, 3))
def test_no_reply_raises(text: str, status: int, count: int):
    assert len(read_reply(status, text, count).orders) == count
