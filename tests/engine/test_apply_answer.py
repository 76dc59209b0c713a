"""What a broker's answer makes of a judgement, for orders of a tick and for those executed between ticks."""

import pytest

from pitboss.core.errors import InvariantError
from pitboss.core.receipt import Receipt
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Placed, apply_answer
from pitboss.engine.guard import Judgement

ALLOWED = Judgement(Verdict("allowed"), "key", order="an order", venue_code="X9_VENUE")
REFUSED = Judgement(Verdict("refused", "X1_SHAPE", "malformed"), "key")
RECEIPT = Receipt("filled", 5, "BTC", "o1", {})


def test_an_accepted_order_gives_the_world_the_order_id_and_the_receipts_of_the_answer() -> None:
    world, verdict, receipts = apply_answer("before", ALLOWED, Placed("after", (RECEIPT,), "o1"))
    assert (world, verdict, receipts) == ("after", Verdict("allowed", order_id="o1"), (RECEIPT,))


def test_a_refusal_of_the_broker_leaves_the_world_and_is_the_last_rule() -> None:
    world, verdict, receipts = apply_answer("before", ALLOWED, Placed("after", (RECEIPT,), refusal="no cash"))
    assert (world, verdict, receipts) == ("before", Verdict("refused", "X9_VENUE", "no cash"), ())


def test_a_refusal_of_the_guard_leaves_the_world_and_the_verdict() -> None:
    assert apply_answer("before", REFUSED, None) == ("before", REFUSED.verdict, ())


def test_an_answer_to_what_the_guard_refused_stops_at_once() -> None:
    with pytest.raises(InvariantError, match="X1_SHAPE malformed"):
        apply_answer("before", REFUSED, Placed("after", (RECEIPT,), "o1"))
