"""What a backtest of the predict venue is asked for, and that side of a run which is only shown: no market is loaded.

The side that carries a run out is `venues/predict/kit.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.money import text
from pitboss.sim.request import BacktestRequest

SURFACES_RECORDED, SURFACES_FITTED = "recorded", "fitted from realised volatility"


@dataclass(frozen=True, slots=True)
class PredictRequest(BacktestRequest):
    """What was asked for on the predict venue. `equity_usd` is in quote units."""

    equity_usd: Decimal = Decimal(200)
    vault_usd: Decimal = Decimal(1_000_000)
    """What the other side of every contract has."""
    surfaces: str = ""
    """A file of recorded surfaces; without one they are fitted."""


def request_of(params: Mapping[str, Any]) -> PredictRequest:
    """The request a run was started with."""
    return codec.parse(PredictRequest, params)


def surfaces_words(params: Mapping[str, Any]) -> str:
    """Which surfaces a run had."""
    return SURFACES_RECORDED if params.get("surfaces") else SURFACES_FITTED


def realism(request: PredictRequest) -> dict[str, dict[str, str]]:
    """What makes the fills of a run more or less real."""
    surfaces = "as asked" if request.surfaces else "default"
    return {
        "surfaces": {"about": "Surfaces", "value": surfaces_words({"surfaces": request.surfaces}), "state": surfaces},
        "fill_price": {
            "about": "Price of a mint",
            "value": "the ask after the trade, quoted again at the first price at or after the decision",
            "state": "conservative",
        },
        "vault": {
            "about": "The other side of every contract",
            "value": f"a vault of {text(request.vault_usd)} that nobody else trades with",
            "state": "default" if request.vault_usd == PredictRequest({}, 0, 0).vault_usd else "as asked",
        },
    }
