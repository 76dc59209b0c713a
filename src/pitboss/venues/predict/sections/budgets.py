"""`## Budgets`: every hard limit with its usage and remainder. They are ceilings, not targets."""

from pitboss.core.instant import iso
from pitboss.core.verdict import Margin
from pitboss.prompt import render as written
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import contracts, usd

PLACE = 60
_NAMES = {
    "B9_SPEND_TICK": "per tick (a larger spend is cut to it)",
    "B10_SPEND_DAY": "per UTC day",
    "B11_SPEND_TOTAL": "in total",
    "B12_EXPOSURE": "cost of open contracts at expiry",
    "B13_BALANCE": "your balance",
}


def render(observation: PredictObservation) -> str:
    """Return the section; it is always present."""
    caps = observation.caps
    lines = ["## Budgets (DUSDC)", *map(_line, observation.room())]
    lines.append(f"B12_EXPOSURE any expiry: at most {written.size(contracts(caps.max_exposure_per_expiry))}")
    lines.append(f"B3_EXPIRY at least {written.age(caps.min_ms_to_expiry)} before expiry")
    lines.append(f"B7_SLIPPAGE at most {caps.max_slippage_bps} bps above the ask you were last shown")
    if caps.min_edge is not None:
        lines.append(f"B8_EDGE confidence must exceed the ask by at least {written.size(usd(caps.min_edge))}")
    return "\n".join(lines)


def _line(margin: Margin) -> str:
    code, _, expiry = margin.code.partition(" ")
    expiry_text = f" {iso(int(expiry))}" if expiry else ""
    numbers = [
        written.size(part) for part in (margin.limit, margin.used, margin.left) if not isinstance(part, str | None)
    ]
    return f"{code} {_NAMES.get(code, '')}{expiry_text}: limit {numbers[0]}, used {numbers[1]}, left {numbers[2]}"
