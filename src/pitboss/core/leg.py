"""`Leg`: the result of advancing a world by some of its steps, such as bars or price updates."""

from typing import Any

from pitboss.core.curve import Curve
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt


@noun
class Leg:
    """The new world, the receipts, one equity point per step, and the offset of the next step."""

    world: Any
    receipts: tuple[Receipt, ...]
    equity: Curve
    index: int
