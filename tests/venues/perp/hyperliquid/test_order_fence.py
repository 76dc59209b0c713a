"""In any order of events and messages the fence never treats a live order as dead."""

from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.venues.perp.hyperliquid import order_fence as fence
from pitboss.venues.perp.hyperliquid.order_fence import FENCE_MARGIN_MS, FencedOrder

SIZE = Decimal(2)
EXPIRY = 10_000
LAG_MS = 5_000
"""How long the model venue may not know an order that it has."""


@dataclass
class ModelVenue:
    """What really happens to one order that is sent at 0: it arrives or not, and fills or rests."""

    arrives_at: int | None
    fate: str
    lag_ms: int

    @property
    def is_accepted(self) -> bool:
        return self.arrives_at is not None and self.arrives_at <= EXPIRY and self.fate != "rejected"

    def status(self, now: int) -> str | None:
        """The answer to a question at `now`."""
        if self.arrives_at is None or self.arrives_at > EXPIRY or now < self.arrives_at + self.lag_ms:
            return None
        return {"rejected": "iocCancelRejected", "rests": "open", "fills": "filled", "part": "canceled"}[self.fate]

    def fills(self) -> list[tuple[int, Decimal]]:
        if not self.is_accepted or self.fate == "rests":
            return []
        return [(1, Decimal(1))] if self.fate == "part" else [(1, Decimal(1)), (2, Decimal(1))]


venues = st.builds(
    ModelVenue,
    arrives_at=st.one_of(st.none(), st.integers(0, 60_000)),
    fate=st.sampled_from(["rejected", "rests", "fills", "part"]),
    lag_ms=st.integers(0, LAG_MS),
)
steps = st.lists(
    st.tuples(st.sampled_from(["silence", "text", "time", "ask", "fill", "resend"]), st.integers(0, 4_000)),
    max_size=30,
)


@given(venue=venues, steps=steps, immediate=st.booleans())
@settings(max_examples=400)
def test_no_sequence_of_events_leads_to_a_wrong_verdict_or_a_second_order(
    venue: ModelVenue, steps: list[tuple[str, int]], immediate: bool
):
    if not immediate and venue.fate == "part":
        venue.fate = "fills"
    if immediate and venue.fate == "rests":
        venue.fate = "rejected"
    order, now, read_at, sent = FencedOrder(SIZE, immediate), 0, 0, 0
    for kind, passed in [("resend", 0), *steps]:
        now += passed
        if kind == "resend" and order.may_be_sent:
            order, sent = fence.mark_sent(order, EXPIRY), sent + 1
        elif kind == "silence":
            order = fence.on_answer(order, "ambiguous", "timeout")
        elif kind == "text":
            order = fence.on_answer(order, "ambiguous", "Internal error")
        elif kind == "time":
            read_at = now
        elif kind == "ask":
            status = venue.status(now)
            order = fence.on_unknown(order, read_at) if status is None else fence.on_status(order, status, 7)
        elif kind == "fill" and venue.arrives_at is not None and now >= venue.arrives_at:
            for fill_id, size in venue.fills():
                order = fence.on_fill(order, fill_id, size)
    assert sent == 1
    assert not order.contradiction
    if order.state in ("refused", "expired"):
        assert not venue.is_accepted or not (venue.fills() or venue.fate == "rests")
    if order.state in ("filled", "resting", "cancelled"):
        assert venue.is_accepted or venue.fate == "rejected"
    if order.state == "filled" and not immediate:
        assert venue.fate == "fills"


@given(venue=venues)
def test_a_doubt_ends_once_the_exchanges_time_has_passed_the_expiry(venue: ModelVenue):
    order = fence.on_answer(fence.mark_sent(FencedOrder(SIZE, True), EXPIRY), "ambiguous", "timeout")
    late = EXPIRY + FENCE_MARGIN_MS + 1
    for fill_id, size in venue.fills():
        order = fence.on_fill(order, fill_id, size)
    status = venue.status(late)
    order = fence.on_unknown(order, late) if status is None else fence.on_status(order, status)
    assert order.state != "unresolved"


def test_unknown_is_no_proof_at_the_expiry_and_its_margin():
    order = fence.on_answer(fence.mark_sent(FencedOrder(SIZE, True), EXPIRY), "ambiguous", "timeout")
    assert fence.on_unknown(order, EXPIRY + FENCE_MARGIN_MS).state == "unresolved"
    assert fence.on_unknown(order, EXPIRY + FENCE_MARGIN_MS + 1).state == "expired"


@pytest.mark.parametrize("text", fence.LISTED_REFUSALS)
def test_listed_texts_are_refusals_also_with_the_asset_behind_them(text: str):
    assert fence.is_listed_refusal(f"{text}. asset=4")


@pytest.mark.parametrize("text", ["", "Internal error", "Action already expired", "Invalid nonce: duplicate nonce 3"])
def test_other_texts_are_no_refusals(text: str):
    assert not fence.is_listed_refusal(text)


def test_a_fill_of_a_dead_order_and_an_overfill_are_contradictions():
    dead = fence.on_answer(fence.mark_sent(FencedOrder(SIZE, True), EXPIRY), "refused", "Insufficient margin")
    assert fence.on_fill(dead, 1, SIZE).contradiction
    sent = fence.mark_sent(FencedOrder(SIZE, True), EXPIRY)
    assert not fence.on_fill(sent, 1, SIZE).contradiction
    assert fence.on_fill(fence.on_fill(sent, 1, SIZE), 2, SIZE).contradiction


def test_a_refusal_after_a_fill_is_not_believed():
    order = fence.on_fill(fence.mark_sent(FencedOrder(SIZE, True), EXPIRY), 1, Decimal(1))
    assert fence.on_answer(order, "refused", "Insufficient margin").state == "unresolved"


def test_final_states_do_not_change():
    order = fence.on_answer(fence.mark_sent(FencedOrder(SIZE, True), EXPIRY), "filled", size=SIZE, oid=1)
    for after in (
        fence.on_answer(order, "ambiguous"),
        fence.on_status(order, "canceled"),
        fence.on_unknown(order, 10**12),
        fence.on_answer(order, "refused"),
        fence.mark_sent(order, 1),
        fence.discard(order, ""),
    ):
        assert after == order
