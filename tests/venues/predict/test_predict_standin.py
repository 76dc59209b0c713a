"""The stand-in on the predict venue: it follows its mandate, oversteps now and then, and says the same to the same page."""

import asyncio

import pytest

from pitboss.core import codec
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.venues.predict.mandates import mandates
from pitboss.venues.predict.standin import PredictStandIn
from pitboss.venues.predict.system_prompt import compose_mandate

TOOLS = (ToolSpec("submit_decision", "", {}), ToolSpec("list_strikes", "", {}))


def page(number: int, drift: float) -> str:
    closes = " ".join(f"{64_000 + drift * place:.2f}" for place in range(60))
    return f"""## Time
{number}

## BTC price
60 one-minute closes, oldest first, 1% over them: {closes}

## Open markets
BTC-A | 2026-02-22T21:30:00Z | 15m | 64000.00 | 64000: YES 0.4800, NO 0.5400

## Budgets (DUSDC)
B9_SPEND_TICK per tick (a larger spend is cut to it): limit 2, used 0, left 2
B10_SPEND_DAY per UTC day: limit 30, used 0, left 30
"""


def sides(mandate: str, drift: float) -> set[str]:
    """The sides it minted over many pages."""
    found: set[str] = set()
    for number in range(40):
        request = ModelRequest(
            compose_mandate(mandate), (Message("user", page(number, drift)),), TOOLS, "submit_decision"
        )
        first, again = (asyncio.run(PredictStandIn().complete(request)) for _ in range(2))
        assert first == again
        (call,) = first.calls
        decision = codec.loads(call.arguments)
        if decision["action"] == "mint":
            found.add(decision["side"])
            assert decision["confidence"] > {"YES": 0.48, "NO": 0.54}[decision["side"]]
    return found


@pytest.mark.parametrize(("name", "up"), [("momentum", "YES"), ("calibrated", "YES"), ("contrarian", "NO")])
def test_it_goes_with_the_move_or_against_it_as_its_mandate_says(name: str, up: str) -> None:
    down = {"YES": "NO", "NO": "YES"}[up]
    assert sides(mandates()[name], 3.0) == {up}
    assert sides(mandates()[name], -3.0) == {down}


def test_without_a_move_it_holds() -> None:
    assert sides(mandates()["momentum"], 0.0) == set()
