"""The request of a predict backtest, and the parts of a run that only display it. It loads no market data.

`venues/predict/venue.py` executes the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core.money import text
from pitboss.sim.request import BacktestRequest

SURFACES_RECORDED, SURFACES_FITTED = "recorded", "fitted from realised volatility"
INDEXER = "indexer"
"""The data venue of a live run on the protocol's own markets."""
SURFACES_PROTOCOL = "the protocol's own, from its indexer"


@dataclass(frozen=True, slots=True)
class PredictRequest(BacktestRequest):
    """A backtest request of the predict venue. `equity_usd` is in quote units."""

    equity_usd: Decimal = Decimal(200)
    vault_usd: Decimal = Decimal(1_000_000)
    """Balance of the vault, the counterparty of every contract."""
    surfaces: str = ""
    """Path of a file of recorded surfaces; without one they are computed."""


def surfaces_words(params: Mapping[str, Any]) -> str:
    """Describe the kind of surfaces a run used."""
    return SURFACES_RECORDED if params.get("surfaces") else SURFACES_FITTED


def realism(request: PredictRequest) -> dict[str, dict[str, str]]:
    """Describe how realistic the fills of a run are."""
    surfaces = "as asked" if request.surfaces else "default"
    words, vault = (
        surfaces_words({"surfaces": request.surfaces}),
        f"a vault of {text(request.vault_usd)} that nobody else trades with",
    )
    if request.data_venue == INDEXER:
        words, vault = SURFACES_PROTOCOL, "the protocol's vault, as its indexer reports it"
    return {
        "surfaces": {"about": "Surfaces", "value": words, "state": surfaces},
        "fill_price": {
            "about": "Price of a mint",
            "value": "the ask after the trade, quoted again at the first price at or after the decision",
            "state": "conservative",
        },
        "vault": {
            "about": "The other side of every contract",
            "value": vault,
            "state": "default" if request.vault_usd == PredictRequest({}, 0, 0).vault_usd else "as asked",
        },
    }
