"""Caps of a deployment: tighter passes, looser is named, and what cannot be compared is not allowed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.skill.tighter_caps import loosened, tightened


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"max_leverage": 5}, {"max_leverage": 3}),
        ({"max_leverage": 5}, {"max_leverage": 5}),
        ({"daily_loss_halt_pct": None}, {"daily_loss_halt_pct": Decimal(3)}),
        ({"min_order_usd": 10}, {"min_order_usd": 50}),
        ({"allowed_symbols": []}, {"allowed_symbols": ["BTC"]}),
        ({"allowed_symbols": ["BTC", "ETH"]}, {"allowed_symbols": ["ETH"]}),
        ({"transactions": {"per_day": 5}}, {"transactions": {"per_day": 4}}),
    ],
)
def test_tighter_caps_pass(before, after):
    assert loosened(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ({"max_leverage": 3}, {"max_leverage": 5}, "risk.max_leverage"),
        ({"daily_loss_halt_pct": 5}, {"daily_loss_halt_pct": None}, "risk.daily_loss_halt_pct"),
        ({"daily_loss_halt_pct": 5}, {}, "risk.daily_loss_halt_pct"),
        ({"min_order_usd": 50}, {"min_order_usd": 10}, "risk.min_order_usd"),
        ({"allowed_symbols": ["BTC"]}, {"allowed_symbols": ["BTC", "ETH"]}, "risk.allowed_symbols"),
        ({"allowed_symbols": ["BTC"]}, {"allowed_symbols": []}, "risk.allowed_symbols"),
        ({"require_stop": True}, {"require_stop": False}, "risk.require_stop"),
        ({"mode": "strict"}, {"mode": "loose"}, "risk.mode"),
        ({"transactions": {"per_day": 5}}, {"transactions": {"per_day": 6}}, "risk.transactions.per_day"),
        ({"transactions": {"per_day": 5}}, {"transactions": None}, "risk.transactions"),
    ],
)
def test_a_looser_cap_is_named(before, after, path):
    assert loosened(before, after) == [path]


CAPS = st.dictionaries(
    st.sampled_from(["max_leverage", "max_position_pct", "min_order_usd", "halt_pct"]),
    st.none() | st.integers(0, 100),
)


@given(CAPS, CAPS)
def test_two_documents_that_tighten_each_other_are_the_same(one, other):
    if not loosened(one, other) and not loosened(other, one):
        same = {name: value for name, value in one.items() if value is not None}
        assert same == {name: value for name, value in other.items() if value is not None}


@given(CAPS, CAPS)
def test_of_a_mixed_change_the_tighter_part_loosens_nothing_and_leaves_only_raises(before, wanted):
    now = tightened(before, wanted)
    assert loosened(before, now) == []
    assert loosened(before, wanted) == loosened(now, wanted)
    assert tightened(now, wanted) == now


def test_the_tighter_part_of_nested_caps():
    before = {"transactions": {"per_day": 5, "usd": 10}, "allowed": ["A"]}
    wanted = {"transactions": {"per_day": 6, "usd": 9}, "allowed": ["A", "B"]}
    assert tightened(before, wanted) == {"transactions": {"per_day": 5, "usd": 9}, "allowed": ["A"]}
